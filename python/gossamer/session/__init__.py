"""What a Gossip was told to do, and the workers that were told the same."""
