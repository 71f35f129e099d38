"""A strategy for Lightning: ``import gossamer.lightning``, then ``Trainer(strategy="gossamer")``.

Works with the package ``lightning`` and with ``pytorch_lightning``, 2.x: with the one that the
script has imported.
"""

from gossamer.lightning.strategy import GossipStrategy

__all__ = ["GossipStrategy"]
