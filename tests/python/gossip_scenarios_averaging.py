"""What the workers of the tests of averaged gradients do: each case beside means made by hand."""

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch._dynamo
import torch.distributed as dist
from gossip_scenarios_basic import gossiping
from gossip_support import batch, difference, loss_of, mlp
from torch import nn
from torch.optim import LBFGS, SGD, Adagrad, Adam, SparseAdam
from torch.utils.checkpoint import checkpoint

STEPS = 4
Loss = Callable[[nn.Module, int], torch.Tensor]


def mean(value: torch.Tensor) -> torch.Tensor:
    total = value.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def average_by_hand(tensors: Iterable[torch.Tensor]) -> None:
    """A missing gradient counts as zero, unless it is missing everywhere."""
    for tensor in tensors:
        there = mean(torch.tensor(float(tensor.grad is not None)))
        if float(there) == 0 or not tensor.requires_grad:
            continue
        grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        tensor.grad = mean_of_rows(grad) if grad.is_sparse else mean(grad)


def mean_of_rows(grad: torch.Tensor) -> torch.Tensor:
    grad = grad.coalesce()
    marks = torch.zeros(grad.shape[0]).index_fill_(0, grad.indices()[0], 1.0)
    rows = mean(marks).nonzero().view(-1)
    values = mean(grad.to_dense())[rows]
    return torch.sparse_coo_tensor(rows.unsqueeze(0), values, grad.shape, check_invariants=True)


class Twins:
    """A model that gossips and its twin, whose gradients are averaged by hand."""

    def __init__(self, model: nn.Module, make: Callable[..., torch.optim.Optimizer]) -> None:
        self.model, self.twin = model, copy.deepcopy(model)
        self.optimizer = make(list(self.model.parameters()))
        self.other = make(list(self.twin.parameters()))

    def train(self, step: Callable[..., None], **options: Any) -> float:
        """Runs ``step(model, optimizer, average, k)`` for both; returns how far apart they end.

        ``average`` does nothing for the one that gossips.
        """
        with gossiping(self.model, self.optimizer, pattern="allreduce", **options):
            for k in range(STEPS):
                step(self.model, self.optimizer, lambda: None, k)
                average = functools.partial(average_by_hand, list(self.twin.parameters()))
                step(self.twin, self.other, average, k)
        return difference(self.model, self.twin)


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return SGD(parameters, lr=0.1, momentum=0.9)


def thawed(rank: int) -> float:
    """Frozen at the start, thawed, frozen again, so that the set changes in every step."""
    trained = {0: (2,), 1: (0, 2), 2: (0,), 3: (0, 2)}

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        for layer in (0, 2):
            model[layer].requires_grad_(layer in trained[k])
        optimizer.zero_grad()
        loss_of(model, batch(k, rank)).backward()
        average()
        nn.utils.clip_grad_norm_(model.parameters(), 0.2)  # of means, also just after the thaw
        optimizer.step()

    model = mlp()
    model[0].requires_grad_(False)
    return Twins(model, sgd).train(step, bucket_bytes=64)


def assigned(rank: int) -> float:
    """Gradients of torch.autograd.grad, a part of them beside a backward."""

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        first = list(model[0].parameters()) if k % 2 else list(model.parameters())
        if k % 2:
            loss_of(model, batch(k, rank)).backward(inputs=list(model[2].parameters()))
        grads = torch.autograd.grad(loss_of(model, batch(k, rank)), first)
        for parameter, grad in zip(first, grads, strict=True):
            parameter.grad = grad
        average()
        optimizer.step()

    return Twins(mlp(), sgd).train(step)


def never_synchronised(rank: int) -> float:
    twins = Twins(mlp(), sgd)

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        for part in range(2):
            loss = loss_of(model, batch(2 * k + part, rank))
            if model is twins.model:
                with optimizer._gossip.no_sync(), optimizer._gossip.no_sync():
                    loss.backward()
            else:
                loss.backward()
        average()
        optimizer.step()

    return twins.train(step)


def several_backwards(rank: int) -> float:
    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        for part in range(3):
            loss_of(model, batch(3 * k + part, rank)).backward()
            average()
        optimizer.step()

    return Twins(mlp(), sgd).train(step)


def without_a_batch(rank: int) -> float:
    """Rank 1 has one in every other step only."""

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        if rank == 0 or k % 2:
            loss_of(model, batch(k, rank)).backward()
        average()
        optimizer.step()

    return Twins(mlp(), sgd).train(step)


def penalty_and_clipping(rank: int) -> float:
    """Double backward, a scaled loss, then unscaling and clipping of what has been averaged."""

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        loss = loss_of(model, batch(k, rank))
        grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        (256 * (loss + sum(grad.square().sum() for grad in grads))).backward()
        average()
        for parameter in model.parameters():
            parameter.grad.div_(256)
        assert nn.utils.clip_grad_norm_(model.parameters(), 0.2) > 0.2
        optimizer.step()

    return Twins(mlp(), Adam).train(step)


def closure(rank: int) -> float:
    """LBFGS calls it several times a step; the gradients are assigned in it."""

    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        def evaluate() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, batch(0, rank))
            grads = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, grad in zip(model.parameters(), grads, strict=True):
                parameter.grad = grad
            average()
            return mean(loss.detach())

        optimizer.step(evaluate)

    return Twins(mlp(), lambda p: LBFGS(p, lr=0.1, max_iter=3)).train(step)


def checkpointed(rank: int) -> float:
    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        inner = checkpoint(model[0], batch(k, rank).requires_grad_(), use_reentrant=True)
        model[2](checkpoint(model[1], inner, use_reentrant=True)).square().mean().backward()
        average()
        optimizer.step()

    return Twins(mlp(), sgd).train(step)


def compiled(rank: int) -> float:
    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        compiler = torch.compile(backend="eager")
        with torch._dynamo.compiled_autograd._enable(compiler):
            loss_of(model, batch(k, rank)).backward()
        average()
        optimizer.step()

    return Twins(mlp(), sgd).train(step)


def in_the_backward(rank: int) -> float:
    """One Gossip per parameter, each of which steps in a hook of its parameter."""
    model, twin = mlp(), mlp()
    other = SGD(twin.parameters(), lr=0.1)
    of = {p: SGD([p], lr=0.1) for p in model.parameters()}
    gossips = [gossiping(model, optimizer, pattern="allreduce") for optimizer in of.values()]
    for gossip in gossips:
        gossip.__enter__()

    def hook(parameter: torch.Tensor) -> None:
        of[parameter].step()
        of[parameter].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(hook) for p in model.parameters()]
    for k in range(STEPS):
        loss_of(model, batch(k, rank)).backward()
        other.zero_grad()
        loss_of(twin, batch(k, rank)).backward()
        average_by_hand(twin.parameters())
        other.step()
    for handle in handles:
        handle.remove()
    for gossip in gossips:
        gossip.__exit__(None, None, None)
    return difference(model, twin)


def in_the_middle(rank: int) -> float:
    """A step of the whole in the hook of one parameter; what comes after it waits for the next."""

    def train_with_hook(model: Any, optimizer: Any, average: Any) -> None:
        def hook(_: torch.Tensor) -> None:
            average()
            optimizer.step()
            optimizer.zero_grad()

        handle = model[2].weight.register_post_accumulate_grad_hook(hook)
        for k in range(STEPS):
            loss_of(model, batch(k, rank)).backward()
            average()
        handle.remove()

    twins = Twins(mlp(), sgd)
    with gossiping(twins.model, twins.optimizer, pattern="allreduce"):
        train_with_hook(twins.model, twins.optimizer, lambda: None)
    train_with_hook(twins.twin, twins.other, lambda: average_by_hand(twins.twin.parameters()))
    return difference(twins.model, twins.twin)


def any_order(rank: int) -> float:
    """Several Gossips over one model, whose parts follow each other in another order per rank."""
    torch.manual_seed(0)
    model = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])
    twin = copy.deepcopy(model)
    parts = [SGD(part.parameters(), lr=0.1) for part in model]
    other = SGD(twin.parameters(), lr=0.1)
    gossips = [gossiping(model, part, pattern="allreduce") for part in parts]
    for gossip in gossips:
        gossip.__enter__()
    order = [0, 1, 2] if rank == 0 else [2, 1, 0]
    for k in range(STEPS):
        for each in (model, twin):
            value = batch(k, rank)
            for i in order:
                value = each[i](value)
            value.square().mean().backward()
        average_by_hand(twin.parameters())
        for optimizer in (*parts, other):
            optimizer.step()
            optimizer.zero_grad()
    for gossip in gossips:
        gossip.__exit__(None, None, None)
    return difference(model, twin)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(9, 4, sparse=True, padding_idx=0)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.table(words).square().sum()


def sparse(rank: int, make: Callable[..., torch.optim.Optimizer]) -> float:
    def step(model: Any, optimizer: Any, average: Any, k: int) -> None:
        optimizer.zero_grad()
        words = torch.tensor([rank + 1, k, k, (3 * k + rank) % 9])
        model(words if k != 1 or rank == 0 else torch.zeros(4, dtype=torch.long)).backward()
        average()
        assert model.table.weight.grad.is_sparse
        optimizer.step()

    return Twins(Words(), make).train(step)


CASES: dict[str, Callable[[int], float]] = {
    "thawed": thawed,
    "assigned": assigned,
    "never synchronised": never_synchronised,
    "several backwards": several_backwards,
    "without a batch": without_a_batch,
    "penalty and clipping": penalty_and_clipping,
    "closure": closure,
    "checkpointed": checkpointed,
    "compiled": compiled,
    "in the backward": in_the_backward,
    "in the middle": in_the_middle,
    "any order": any_order,
    "SparseAdam": lambda rank: sparse(rank, lambda p: SparseAdam(p, lr=0.1)),
    "Adagrad": lambda rank: sparse(rank, lambda p: Adagrad(p, lr=0.1)),
}


def averaged_gradients(rank: int, size: int) -> Any:
    return {name: case(rank) for name, case in CASES.items()}


def unequal_passes(rank: int, size: int) -> Any:
    """What a rank is told that runs another number of backwards than the other, or freezes."""
    said = {}
    for case in ("passes", "frozen"):
        model = mlp()
        optimizer = sgd(model.parameters())
        with gossiping(model, optimizer, pattern="allreduce"):
            try:
                model[0].requires_grad_(case != "frozen" or rank == 0)
                for k in range(4):
                    loss_of(model, batch(k, rank)).backward()
                    if case != "passes" or k % 2 or rank == 0:
                        optimizer.step()
            except (RuntimeError, ValueError) as error:
                said[case] = str(error)
    return said


SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    "averaged_gradients": averaged_gradients,
    "unequal_passes": unequal_passes,
}
