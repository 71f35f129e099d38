VERSION: str
"""Gossamer's version."""

TORCH_VERSION: str
"""Of the torch that the extension was built for."""
