"""What a run leaves for its user: numbers, lines and traces."""
