"""What users do between steps; see user_actions.py."""

import os
import warnings
from collections.abc import Callable
from typing import Any

import user_actions


def actions(rank: int, size: int) -> Any:
    first, last, tcp = map(int, os.environ.get("GOSSAMER_ACTIONS", "0 50 0").split())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return user_actions.run(range(first, last), rank, size, tcp=bool(tcp))


SCENARIOS: dict[str, Callable[[int, int], Any]] = {"user_actions": actions}
