"""What would silently be something else than gossip."""
