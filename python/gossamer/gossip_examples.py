"""A short example for each member of Gossip, which ``help()`` and the API page show.

They stand here because a class with all of them would be a long file. ``model``, ``optimizer``,
``loader`` and ``loss_of`` are those of a script.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

Made = TypeVar("Made", bound=type)

EXAMPLES = {
    "Gossip": """
gossip = gossamer.Gossip(model, optimizer, topology="one_peer_exponential")
for x, y in loader:
    optimizer.zero_grad()
    loss_of(model, x, y).backward()
    optimizer.step()
""",
    "step": """
loss_of(model, x, y).backward()
optimizer.step()
gossip.step()  # mixes now, where other optimizers of the list have not stepped
""",
    "no_sync": """
with gossip.no_sync():
    loss_of(model, x, y).backward()
loss_of(model, x, y).backward()
optimizer.step()
""",
    "observe": """
loss = loss_of(model, x, y)
loss.backward()
gossip.observe(loss)
optimizer.step()
""",
    "averaged": """
with torch.no_grad(), gossip.averaged() as model:
    val_loss = loss_of(model, x, y).item()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
""",
    "disagreement": """
apart = gossip.disagreement()
if rank == 0:
    print(f"disagreement {apart:.1e}")
""",
    "mean": """
loss = loss_of(model, x, y).detach()
mean_loss = gossip.mean(loss).item()
""",
    "gather": """
import os

said = gossip.gather(f"seen {len(loader)} batches")
if gossip.gather(os.getpid())[min(said)] == os.getpid():
    print(said)  # the first worker that is there prints what all have said
""",
    "uneven": """
with gossip.uneven():
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
""",
    "save": """
gossip.save("checkpoint")
""",
    "load": """
gossip = gossamer.Gossip(model, optimizer)
gossip.load("checkpoint")
""",
    "hand_over": """
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
gossip.hand_over(scheduler=scheduler)  # a worker that comes back loads its state
""",
    "steps_done": """
for step in range(gossip.steps_done, len(loader)):
    x, y = loader[step]
    loss_of(model, x, y).backward()
    optimizer.step()
""",
    "last_step": """
optimizer.step()
print(f"waited {gossip.last_step.exposed_s:.3f} s in step {gossip.last_step.step}")
""",
    "is_fused": """
if not gossip.is_fused:
    print("the optimizer takes its own step before the mix")
""",
    "events": """
for event in gossip.events():
    print(event.kind, event.rank, event.step, event.why)
""",
    "stats": """
stats = gossip.stats()
print(stats["steps"], stats["exposed_s"], stats["edges"])
""",
    "log": """
gossip = gossamer.Gossip(model, optimizer, metrics="run")
gossip.log(loss=loss_of(model, x, y))
""",
    "leave": """
if machine_is_needed_elsewhere:
    gossip.leave()  # the others go on
    sys.exit()
""",
    "close": """
gossip.close()
""",
}

NOT_RUN = {
    "load": "another run has saved",
    "leave": "it ends the script",
    "close": "nothing can be asked of it afterwards",
}
"""Why the tests leave an example out."""


def with_examples(made: Made) -> Made:
    """A class decorator: its docstring and those of its members end with their examples."""
    for name, example in EXAMPLES.items():
        of = made if name == made.__name__ else vars(made)[name]
        text = textwrap.indent(example.strip(), "    ")
        of.__doc__ = f"{inspect.cleandoc(of.__doc__ or '')}\n\nExample::\n\n{text}\n"
    return made
