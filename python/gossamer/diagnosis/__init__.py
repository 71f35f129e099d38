"""What `gossamer doctor` looks at."""
