"""What those who know DistributedDataParallel try on a Gossip, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from gossamer.step.run import Run

_SAVE = "inside `with gossip.averaged() as model:` save model.state_dict()"
_INSTEAD = {
    "module": "there is no wrapper: the model itself is what it was, use that",
    "forward": "call the model itself",
    "parameters": "use model.parameters()",
    "named_parameters": "use model.named_parameters()",
    "buffers": "use model.buffers()",
    "state_dict": _SAVE + ", or use gossip.save(folder) to go on from",
    "load_state_dict": "use model.load_state_dict(...) on every rank, or gossip.load(folder)",
    "train": "use model.train()",
    "eval": "use model.eval(), inside gossip.averaged() for the mean of all workers",
    "to": "move the model before the optimizer and Gossip are made",
    "cuda": "move the model before the optimizer and Gossip are made",
    "zero_grad": "use optimizer.zero_grad()",
    "join": "for unequal numbers of batches use gossip.uneven()",
    "register_comm_hook": "choose with pattern= and codec= of Gossip",
}


class NoModule:
    """For those who take it for a wrapped model."""

    if not TYPE_CHECKING:  # to a type checker every name would be there

        def __getattr__(self, name: str) -> Any:
            """Only for names that are not there."""
            kind = type(self).__name__
            text = f"'{kind}' object has no attribute '{name}'"
            if name in _INSTEAD:
                text = f"[Gossip] a Gossip is no model and has no {name}; {_INSTEAD[name]}"
            raise AttributeError(text, name=name, obj=self)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Raises TypeError."""
        raise TypeError(
            "[Gossip] a Gossip is no model and cannot be called; call the model itself: "
            "output = model(input)"
        )


def described(run: Run) -> str:
    """The repr of a Gossip: who mixes what with whom."""
    settings, world, trained = run.session.settings, run.session.world, run.trained
    hosts = ", ".join(map(str, world.workers_per_host))
    parts = [
        f"{type(trained.model).__name__} with {trained.optimizers.word}",
        f"rank {world.rank} of {world.size} on hosts of ({hosts})",
        f"pattern={settings.pattern!r}",
        "fused" if run.state is not None else "own step",
    ]
    if settings.pattern != "allreduce":
        parts.insert(2, f"topology={settings.topology_name!r}")
    if settings.codec != "fp32":
        parts.append(f"codec={settings.codec!r}")
    if run.is_closed:
        parts.append("closed")
    return f"<Gossip: {', '.join(parts)}>"
