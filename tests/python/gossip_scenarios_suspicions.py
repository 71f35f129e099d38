"""What the workers of the Gossip tests do: scenarios of test_gossip_suspicions.py.

Each returns what Gossip has warned of.
"""

import copy
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_support import batch, loss_of, mlp, train
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, AdamW
from torch.optim.swa_utils import AveragedModel

STEPS = 7  # more than any check looks at


def said(run: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught if "[Gossip]" in str(each.message)]


def trained(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    rank: int,
    calls: nn.Module | None = None,
    **options: Any,
) -> list[str]:
    """Trains, averages and closes; ``calls`` is the wrapper that the loop calls."""

    def run() -> None:
        with gossiping(model, optimizer, **options) as gossip:
            train(calls or model, optimizer, range(STEPS), rank)
            with gossip.averaged():
                pass

    return said(run)


# Each has a mistake.


def ddp_around(rank: int, size: int) -> Any:
    model = mlp()
    parallel = DistributedDataParallel(model)
    return trained(model, SGD(model.parameters(), lr=0.1), rank, calls=parallel)


def ddp_in_a_wrapper(rank: int, size: int) -> Any:
    parallel = nn.Sequential(DistributedDataParallel(mlp()))
    try:
        trained(parallel, SGD(parallel.parameters(), lr=0.1), rank)
    except ValueError as error:
        return [str(error)]
    return []


def equal_batches(rank: int, size: int) -> Any:
    model = mlp()
    return trained(model, SGD(model.parameters(), lr=0.1), rank=0)


def step_bound_before(rank: int, size: int) -> Any:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    step = optimizer.step

    def run() -> None:
        with gossiping(model, optimizer):
            for number in range(STEPS):
                optimizer.zero_grad()
                loss_of(model, batch(number, rank)).backward()
                step()

    return said(run)


class Sam(SGD):
    """Sharpness-aware: two half steps under names of its own, or one with a closure."""

    @torch.no_grad()
    def first_step(self) -> None:
        for p in self._all():
            self.state[p]["old_p"] = p.clone()
            p.add_(p.grad, alpha=0.05)

    @torch.no_grad()
    def second_step(self) -> None:
        for p in self._all():
            p.copy_(self.state[p]["old_p"])
        super().step()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> None:
        self.first_step()
        self.zero_grad()
        with torch.enable_grad():
            closure()
        self.second_step()

    def _all(self) -> list[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"] if p.grad is not None]


def sam_by_halves(rank: int, size: int) -> Any:
    model = mlp()
    optimizer = Sam(model.parameters(), lr=0.1)

    def run() -> None:
        with gossiping(model, optimizer):
            for number in range(STEPS):
                for half in (optimizer.first_step, optimizer.second_step):
                    optimizer.zero_grad()
                    loss_of(model, batch(number, rank)).backward()
                    half()

    return said(run)


def halves(model: nn.Sequential) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    return SGD(model[0].parameters(), lr=0.1), AdamW(model[2].parameters(), lr=0.01)


def train_both(
    model: nn.Module, optimizers: Iterable[torch.optim.Optimizer], rank: int, steps: int = STEPS
) -> None:
    for number in range(steps):
        model.zero_grad()
        loss_of(model, batch(number, rank)).backward()
        for optimizer in optimizers:
            optimizer.step()


def one_gossip_of_two(rank: int, size: int) -> Any:
    model = mlp()
    optimizers = halves(model)

    def run() -> None:
        with gossiping(model, optimizers[0]):
            train_both(model, optimizers, rank)

    return said(run)


class Masters(SGD):
    """Steps copies in float32 and writes them into the parameters."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for p in self.param_groups[0]["params"]:
            master = self.state[p].setdefault("master", p.float())
            master.sub_(p.grad.float(), alpha=self.param_groups[0]["lr"])
            p.copy_(master)


def master_copies(rank: int, size: int) -> Any:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = mlp().bfloat16()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x.bfloat16()).float()

    model = Half()
    return trained(model, Masters(model.parameters(), lr=0.1), rank)


class AllReducing(SGD):
    def step(self, closure: None = None) -> None:
        for p in self.param_groups[0]["params"]:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        super().step()


def own_traffic(rank: int, size: int) -> Any:
    model = mlp()
    return trained(model, AllReducing(model.parameters(), lr=0.1), rank)


class ScheduleFree(SGD):
    """Steps z; parameters are between z and its average."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for p in self.param_groups[0]["params"]:
            z = self.state[p].setdefault("z", p.clone())
            p.lerp_(z, 0.3)
            p.sub_(p.grad, alpha=0.01)
            z.sub_(p.grad, alpha=0.1)


def second_sequence(rank: int, size: int) -> Any:
    model = mlp()
    return trained(model, ScheduleFree(model.parameters(), lr=0.1), rank)


class Lookahead(SGD):
    """Every other step goes half of the way from slow weights, and leaves them there."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        self.count = getattr(self, "count", 0) + 1
        for p in self.param_groups[0]["params"]:
            slow = self.state[p].setdefault("slow", p.clone())
            p.sub_(p.grad, alpha=0.1)
            if self.count % 3 == 0:
                slow.lerp_(p, 0.5)
                p.copy_(slow)


def slow_weights(rank: int, size: int) -> Any:
    model = mlp()
    return trained(model, Lookahead(model.parameters(), lr=0.1), rank)


# None has a mistake.


def torchs_optimizers(rank: int, size: int) -> Any:
    """By name; a model without biases, which Muon does not take."""
    found = {}
    kinds = [each for each in vars(torch.optim).values() if isinstance(each, type)]
    for kind in kinds:
        name = kind.__name__
        if name in ("Optimizer", "SparseAdam", "LBFGS"):
            continue
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7, bias=False), nn.Linear(7, 3, bias=False))
        found[name] = trained(model, kind(model.parameters(), lr=0.01), rank)
    assert len(found) >= 12
    return found


def own_subclass(rank: int, size: int) -> Any:
    """As torch's, but of a module that the checks do not know."""

    class Momentum(SGD):
        pass

    model = mlp()
    return trained(model, Momentum(model.parameters(), lr=0.1, momentum=0.9), rank)


def closures(rank: int, size: int) -> Any:
    """LBFGS, and SAM with a closure that communicates, as batch norm over all workers does."""

    def closure(model: nn.Module, number: int) -> torch.Tensor:
        model.zero_grad()
        dist.all_reduce(torch.ones(1))
        loss = loss_of(model, batch(number, rank))
        loss.backward()
        return loss

    def run() -> None:
        for make in (partial(torch.optim.LBFGS, lr=0.1, max_iter=2), partial(Sam, lr=0.1)):
            model = mlp()
            optimizer = make(model.parameters())
            with gossiping(model, optimizer):
                for number in range(STEPS):
                    closure(model, number)
                    optimizer.step(partial(closure, model, number))

    return said(run)


def no_step_yet(rank: int, size: int) -> Any:
    """Eight backwards per step, and averaged() before the first one."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)

    def run() -> None:
        with gossiping(model, optimizer) as gossip:
            for part in range(8):
                loss_of(model, batch(part, rank)).backward()
                with gossip.averaged():
                    pass
            optimizer.step()

    return said(run)


def averages(rank: int, size: int) -> Any:
    """An EMA beside the model, and DDP around a copy of it."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    ema = AveragedModel(model)
    parallel = DistributedDataParallel(copy.deepcopy(model))
    other = SGD(parallel.parameters(), lr=0.1)

    def run() -> None:
        with gossiping(model, optimizer):
            for number in range(STEPS):
                train(model, optimizer, [number], rank)
                train(parallel, other, [number], rank)
                ema.update_parameters(model)

    return said(run)


def adversaries(rank: int, size: int) -> Any:
    """A GAN's loop: the generator's backward reaches the discriminator."""
    maker, judge = mlp(0, outputs=5), mlp(1)
    optimizers = AdamW(maker.parameters(), lr=0.01), AdamW(judge.parameters(), lr=0.01)

    def run() -> None:
        with gossiping(maker, optimizers[0]), gossiping(judge, optimizers[1]):
            for number in range(STEPS):
                for optimizer, model, sign in zip(optimizers, (maker, judge), (1, -1), strict=True):
                    model.zero_grad()
                    (sign * loss_of(judge, maker(batch(number, rank)))).backward()
                    optimizer.step()

    return said(run)


def two_gossips(rank: int, size: int) -> Any:
    """In a run that a check sees to its end, and in one that is shorter."""

    def run() -> None:
        for steps in (STEPS, 2):
            model = mlp()
            optimizers = halves(model)
            with gossiping(model, optimizers[0]), gossiping(model, optimizers[1]):
                train_both(model, optimizers, rank, steps)

    return said(run)


def head_only(rank: int, size: int) -> Any:
    """The rest is trainable and in no optimizer, and does not change."""
    model = mlp()
    return trained(model, SGD(model[2].parameters(), lr=0.1), rank)


def patterns(rank: int, size: int) -> Any:
    """By pattern, where gradients are averaged as well."""
    found = {}
    for pattern, update in (
        ("allreduce", "step"),
        ("gradient_gossip", "step"),
        ("gradient_gossip", "backward"),
        ("cwa", "backward"),
    ):
        model = mlp()
        optimizer = SGD(model.parameters(), lr=0.1)
        found[f"{pattern} {update}"] = trained(
            model, optimizer, rank, topology="complete", pattern=pattern, update=update
        )
    return found


MISTAKES = {
    ddp_around: "is also inside a DistributedDataParallel",
    ddp_in_a_wrapper: "is wrapped in DistributedDataParallel",
    equal_batches: "workers 0 and 1 had the same gradient",
    step_bound_before: "optimizer.step() of the optimizer that Gossip has was never called",
    sam_by_halves: "optimizer.step() of the optimizer that Gossip has was never called",
    one_gossip_of_two: "parameters '2.weight', '2.bias' of the model change, but are in no Gossip",
    master_copies: "Masters keeps a copy of the parameters in torch.float32 (state['master'])",
    own_traffic: "AllReducing.step() communicates by itself (4 operations in step 2)",
    second_sequence: "ScheduleFree keeps the parameters a second time, in state['z']",
    slow_weights: "Lookahead keeps the parameters a second time, in state['slow']",
}
"""With what is said of each."""
CLEAN = (
    torchs_optimizers,
    own_subclass,
    closures,
    no_step_yet,
    averages,
    adversaries,
    two_gossips,
    head_only,
    patterns,
)
SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    function.__name__: function for function in (*MISTAKES, *CLEAN)
}
