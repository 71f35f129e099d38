"""What happens between two steps: the optimizer, the mix, and all that goes around them."""
