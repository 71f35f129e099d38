"""update="backward": buckets step while the backward goes on; and gradients checked on arrival."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_backward import MAKERS, MODELS, PATTERNS, STEPS, Plain
from gossip_support import FUSED, batch, difference, flat, loss_of, mlp, pair, train
from torch import nn
from torch.nn import functional
from torch.optim import SGD, AdamW, RMSprop

from gossamer import Gossip

SCENARIOS = {
    2: "backward_and_step",
    3: "backward_and_step consensus_in_between backward_and_ddp averaged_by_others "
    "backward_not_finite",
}


@functools.cache
def ranks(workers: int) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(SCENARIOS[workers].split(), [1] * workers)


def early(model: nn.Module, optimizer: torch.optim.Optimizer, **options: Any) -> Gossip:
    return Gossip(model, optimizer, update="backward", bucket_bytes=256, **options)


# The same numbers.


@pytest.mark.parametrize("optimizer", MAKERS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("workers", SCENARIOS)
def test_the_same_bits_as_stepping_after_the_backward(
    workers: int, model: str, pattern: str, optimizer: str
) -> None:
    for found in gossip_ranks.results(ranks(workers), "backward_and_step"):
        assert found[f"{model} {pattern} {optimizer}"]["same"]


@pytest.mark.parametrize("workers", SCENARIOS)
def test_buckets_step_in_the_backward(workers: int) -> None:
    for found in gossip_ranks.results(ranks(workers), "backward_and_step"):
        for pattern in PATTERNS:
            counts = {name: found[f"{name} {pattern} adamw"]["early"] for name in MODELS}
            buckets = counts["plain"][0]
            assert buckets > 4
            assert counts["plain"] == counts["checkpointed"] == [buckets] * STEPS
            assert all(0 < count <= buckets for count in counts["unused"])
            # A step that freezes or thaws is left to optimizer.step().
            assert all(0 <= count <= buckets for count in counts["frozen"])
            assert counts["frozen"][1] > 0
            assert min(counts["unused"]) < buckets
            assert counts["frozen"][-1] == buckets  # the layer has thawed


def test_averages_and_loaded_values_between_steps() -> None:
    for found in gossip_ranks.results(ranks(3), "consensus_in_between"):
        assert found["same"]
        assert "between the backward and optimizer.step()" in found["refused"]


def test_ddp_inside_is_refused() -> None:
    for said in gossip_ranks.results(ranks(3), "backward_and_ddp"):
        assert "DistributedDataParallel" in said
        assert 'update="step"' in said


def test_a_gradient_that_is_not_finite_is_refused_by_the_step() -> None:
    said = gossip_ranks.results(ranks(3), "backward_not_finite")
    for words in ("parameter '2.", "worker 1", "step 2", "must be finite, got nan"):
        assert words in said[1]
    for number in (0, 2):  # what goes wrong in the backward is thrown by the step, as what it is
        assert said[number].startswith("TransportError: ")


def test_accumulation_under_no_sync() -> None:
    model, plain = pair()
    optimizer, reference = AdamW(model.parameters(), lr=0.01), AdamW(plain.parameters(), lr=0.01)
    gossip = early(model, optimizer)
    for step in range(5):
        optimizer.zero_grad()
        with gossip.no_sync():
            loss_of(model, batch(2 * step)).backward()
        before = flat(model)
        loss_of(model, batch(2 * step + 1)).backward()
        assert not torch.equal(flat(model), before)  # stepped already
        optimizer.step()
        reference.zero_grad()
        loss_of(plain, batch(2 * step)).backward()
        loss_of(plain, batch(2 * step + 1)).backward()
        reference.step()
    assert difference(model, plain) < 1e-6


def test_a_learning_rate_counts_from_the_next_backward() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)
    train(model, optimizer, range(2))
    optimizer.param_groups[0]["lr"] = 0.0
    before = flat(model)
    train(model, optimizer, range(2, 4))
    assert torch.equal(flat(model), before)


def test_the_optimizer_state_appears_as_in_torch() -> None:
    model, plain = pair()
    optimizer, reference = AdamW(model.parameters(), lr=0.01), AdamW(plain.parameters(), lr=0.01)
    early(model, optimizer)
    train(model, optimizer, range(4))
    train(plain, reference, range(4))
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        assert float(optimizer.state[p]["step"]) == 4
        torch.testing.assert_close(optimizer.state[p]["exp_avg"], reference.state[q]["exp_avg"])


# What autograd still needs.


def test_a_use_without_a_gradient_is_never_silently_wrong() -> None:
    """The first layer's weight is used by the last one too, which autograd does not wait for."""
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    late = nn.Parameter(torch.ones(4, 8))
    model.register_parameter("late", late)
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)

    def loss() -> torch.Tensor:
        hidden = functional.linear(late, model.weight.detach())  # needed last
        return model(hidden.sin()).square().mean()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss().backward()


def test_a_second_backward_over_the_same_graph_is_refused_by_autograd() -> None:
    model = mlp()
    early(model, SGD(model.parameters(), lr=0.1))
    loss = loss_of(model, batch(0))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation|second gradient"):
        loss.backward()


# What does not fit.


def test_a_second_backward_of_a_step() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)  # which keeps its Gossip
    early(model, optimizer)
    loss_of(model, batch(0)).backward()
    with pytest.raises(RuntimeError, match=r"second gradient .*'[02]\..*' .*no_sync\(\)"):
        loss_of(model, batch(1)).backward()


def clip(model: nn.Module, _: torch.optim.Optimizer) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def drop(_: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()


def scale(model: nn.Module, _: torch.optim.Optimizer) -> None:
    for p in model.parameters():
        assert p.grad is not None
        p.grad.data *= 0.5


def replace(model: nn.Module, _: torch.optim.Optimizer) -> None:
    for p in model.parameters():
        p.grad = p.grad.clone() if p.grad is not None else None


@pytest.mark.parametrize("change", [clip, drop, replace, scale])
def test_gradients_that_change_after_their_use(
    change: Callable[[nn.Module, torch.optim.Optimizer], None],
) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)
    loss_of(model, batch(0)).backward()
    change(model, optimizer)
    with pytest.raises(ValueError, match=r"'[02]\..*' on worker 0 was changed .*update=\"step\""):
        optimizer.step()


def test_a_scaler() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(loss_of(model, batch(0))).backward()
    with pytest.raises(RuntimeError, match=r"GradScaler .*update=\"step\""):
        scaler.step(optimizer)


def test_a_closure() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)
    with pytest.raises(RuntimeError, match=r"closure.*update=\"step\""):
        optimizer.step(lambda: 0.0)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (SGD, {"pattern": "allreduce"}, "allreduce"),
        (RMSprop, {}, "takes its own step"),
        (SGD, {"update": "forward"}, "must be one of"),
    ],
)
def test_arguments(make: Callable[..., Any], options: dict[str, str], words: str) -> None:
    model = mlp()
    with pytest.raises(ValueError, match=words):
        Gossip(model, make(model.parameters(), lr=0.1), **{"update": "backward", **options})


def test_a_model_that_is_compiled_as_a_whole_is_warned_of() -> None:
    model = mlp()
    compiled = torch.compile(model, backend="eager")
    with pytest.warns(UserWarning, match="gains nothing"):
        early(compiled, SGD(compiled.parameters(), lr=0.1))


def test_a_warning_where_nothing_is_early() -> None:
    model = nn.Linear(3, 3)
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))
    optimizer = SGD(model.parameters(), lr=0.1)
    early(model, optimizer)  # one bucket, never complete
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
    assert ["gains nothing" in str(w.message) for w in caught] == [True]


# Checked on arrival.


def checked_on_arrival(model: nn.Module, optimizer: torch.optim.Optimizer, gossip: Gossip) -> bool:
    optimizer.step()
    assert gossip.last_step is not None
    return gossip.last_step.grad_norm == 0


def test_gradients_are_checked_on_arrival_and_again_when_changed() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, **FUSED)
    for zero in (True, True, False, False):
        optimizer.zero_grad(set_to_none=zero)
        loss_of(model, batch(0)).backward()
        assert checked_on_arrival(model, optimizer, gossip)
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    assert not checked_on_arrival(model, optimizer, gossip)
    # A step of two backwards: after the first such step only the last one is looked at.
    for _ in range(3):
        optimizer.zero_grad()
        for step in (1, 2):
            loss_of(model, batch(step)).backward()
        assert checked_on_arrival(model, optimizer, gossip)


def in_place(p: nn.Parameter) -> None:
    assert p.grad is not None
    p.grad[0] = float("nan")


def another_at_the_same_place(p: nn.Parameter) -> None:
    assert p.grad is not None
    shape, place = p.grad.shape, p.grad.data_ptr()
    p.grad = None
    for _ in range(20):
        p.grad = torch.full(shape, float("nan"))
        if p.grad.data_ptr() == place:
            return


def division(p: nn.Parameter) -> None:
    assert p.grad is not None
    p.grad /= 0.0


def behind_the_back(p: nn.Parameter) -> None:
    assert p.grad is not None
    p.grad.data.div_(0.0)


@pytest.mark.parametrize("spoil", [in_place, another_at_the_same_place, division, behind_the_back])
def test_what_changes_after_the_arrival_is_still_refused(
    spoil: Callable[[nn.Parameter], None],
) -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    Gossip(model, optimizer)
    train(model, optimizer, [0])
    before = flat(model)
    optimizer.zero_grad()
    loss_of(model, batch(1)).backward()
    spoil(model[0].bias)
    with pytest.raises(RuntimeError, match=r"parameter '0.bias' on worker 0 in step 2 must be"):
        optimizer.step()
    assert torch.equal(flat(model), before)


@pytest.mark.parametrize("who", ["ddp", "script"])
def test_what_others_average_is_checked_as_it_is_in_the_step(who: str) -> None:
    for number, said in enumerate(gossip_ranks.results(ranks(3), "averaged_by_others")):
        assert "must be finite, got nan" in said.get(who, ""), number


def test_what_arrives_not_finite_is_refused_by_the_step_only() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    Gossip(model, optimizer)
    before = flat(model)
    loss = loss_of(model, batch(0)) * float("inf")
    loss.backward()  # does not raise
    with pytest.raises(RuntimeError, match="must be finite"):
        optimizer.step()
    assert torch.equal(flat(model), before)


def test_hooks_of_others_stay_and_run_first() -> None:
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    Gossip(model, optimizer)
    calls = []

    def spoil(p: torch.Tensor) -> None:
        calls.append(p.shape)
        assert p.grad is not None
        p.grad[0] = float("inf")

    model[2].bias.register_post_accumulate_grad_hook(spoil)
    loss_of(model, batch(0)).backward()
    assert calls == [(3,)]
    with pytest.raises(RuntimeError, match=r"'2.bias'.*must be finite"):
        optimizer.step()


@pytest.mark.filterwarnings("ignore:.*gains nothing")
def test_layers_that_thaw_are_heard_of() -> None:
    model, plain = pair()
    for m in (model, plain):
        m[0].requires_grad_(False)
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    gossip = early(model, optimizer)
    counts = []
    for step in range(6):
        for m, its in ((model, optimizer), (plain, reference)):
            m[0].requires_grad_(step >= 3)
            train(m, its, [step])
        counts.append(gossip._run.team.engine.early_buckets)
    assert difference(model, plain) < 1e-6
    assert counts[-1] > counts[0]


def test_a_model_of_one_bucket() -> None:
    model = Plain()
    optimizer = SGD(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, update="backward")
    optimizer.zero_grad()
    model(batch(0), 0).square().mean().backward()
    optimizer.step()
    assert gossip._run.team.engine.early_buckets == 1
