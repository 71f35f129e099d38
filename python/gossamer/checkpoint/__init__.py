"""Saving all workers and going on from there."""
