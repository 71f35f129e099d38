"""A Gossip by its method's name: ``topology=gossamer.Method("gradient_gossip@aer:int8:rounds=2")``.

The name is that of all commands, so that what `plan` and `simulate` say is what is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer import _core

_DEFAULTS: dict[str, Any] = {
    "pattern": "cwa",
    "pattern_options": None,
    "codec": "fp32",
    "update": "step",
    "late": "wait",
    "staleness": 1,
    "stagger": True,
}
"""What a name says, with the defaults that say nothing."""


def _check_no_name(topology: Any) -> None:
    """Raises ValueError for the name of a method, as commands print it."""
    if not isinstance(topology, str) or not {":", "@"} & set(topology):
        return
    try:
        _core.Method(topology)
    except ValueError:
        return  # perhaps a file, or what topologies say of it
    raise ValueError(
        f"[Gossip] topology must be the name of a topology or a file, got {topology!r}, the name "
        f"of a method; give topology=gossamer.Method({topology!r})"
    )


def expanded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Gossip with what the method's name says, if they have one.

    Raises ValueError for arguments that would say it twice, and for methods that no Gossip runs.
    """
    method = arguments["topology"]
    if not isinstance(method, _core.Method):
        _check_no_name(method)
        return dict(arguments)
    for name, default in _DEFAULTS.items():
        value = arguments[name]
        if value != default:
            raise ValueError(
                f"[Gossip] topology={method!r} says {name} as well, got {name}={value!r}; leave it "
                "out, or put it into the method's name"
            )
    if method.pattern == "ddp":
        raise ValueError(
            f"[Gossip] {method!r} is DistributedDataParallel, which is what to use for it; or take "
            'gossamer.Method("allreduce")'
        )
    if ":group=" in method.name:
        raise ValueError(
            f"[Gossip] groups average hierarchically here, got {method!r}; leave group= out"
        )
    options = {k: int(v) if v == int(v) else v for k, v in method.pattern_options.items()}
    return {
        **arguments,
        "pattern": method.pattern,
        "pattern_options": options or None,
        "codec": method.codec,
        "update": "step" if method.averages_gradients else method.update,
        "late": method.late,
        "staleness": method.staleness,
        "stagger": method.stagger,
    }
