"""What a worker that comes back goes on from."""

from __future__ import annotations

from typing import NamedTuple

from gossamer import _core
from gossamer.step.carried import Carried
from gossamer.tensors.trained import Trained


class Back(NamedTuple):
    """``arrival`` has yet to agree with the others on the step to begin with."""

    trained: Trained
    carried: Carried
    arrival: _core.Arrival
