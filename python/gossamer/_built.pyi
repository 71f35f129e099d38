VERSION: str
"""Gossamer's version."""
