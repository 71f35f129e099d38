"""What a user says to a Trainer with gossip, looked at before anything is made."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from gossamer.base import words
from gossamer.gossip import Gossip

_KNOWN = words.known_words(Gossip.__init__)


def check(gossip: Mapping[str, Any], trainer: Mapping[str, Any], classes: Sequence[type]) -> None:
    """Raises TypeError for words that Gossip does not have, and for its words beside ``gossip``."""
    words.check("Gossip", gossip, _KNOWN)
    taken = _words_of(classes)
    for word, value in trainer.items():
        if word in _KNOWN and word not in taken:
            raise TypeError(
                f"[GossipTrainer] {word} is an argument of Gossip, got {word}={value!r} beside "
                f"gossip; give it gossip={{{word!r}: {value!r}}}"
            )


def check_order(mixin: type, classes: Sequence[type]) -> None:
    """Raises TypeError for a class with the mixin behind the Trainer, which would train by DDP."""
    trainers = [each for each in classes if hasattr(each, "training_step")]
    first = next((each for each in trainers if not issubclass(each, mixin)), None)
    if first is not None and classes.index(mixin) > classes.index(first):
        name = classes[0].__name__
        raise TypeError(
            f"[GossipTrainer] class {name} has GossipMixin behind the Trainer, and would train "
            f"with DDP; write class {name}(GossipMixin, ...)"
        )


def _words_of(classes: Sequence[type]) -> set[str]:
    found: set[str] = set()
    for each in classes:
        if "__init__" in vars(each):
            found.update(inspect.signature(vars(each)["__init__"]).parameters)
    return found
