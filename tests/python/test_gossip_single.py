"""A worker alone: Gossip is the optimizer that torch has."""

import warnings
from functools import partial
from typing import Any

import pytest
import torch
from gossip_support import FUSED, Make, batch, difference, loss_of, mlp, pair, same_state, train
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop

from gossamer import AccumAdam, AccumAdamW, Gossip

STEPS = range(100)
NEAR = 1e-6
OPTIMIZERS: dict[str, Make] = {
    "sgd": partial(SGD, lr=0.1),
    "sgd_decay": partial(SGD, lr=0.1, weight_decay=0.02),
    "sgd_maximize": partial(SGD, lr=0.001, weight_decay=0.1, maximize=True),
    "momentum": partial(SGD, lr=0.05, momentum=0.9),
    "dampening": partial(SGD, lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.01),
    "nesterov": partial(SGD, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": partial(Adam, lr=0.01),
    "adam_options": partial(Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-5, weight_decay=0.1),
    "adam_maximize": partial(Adam, lr=0.001, weight_decay=0.1, maximize=True),
    "adam_decoupled": partial(Adam, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "adam_tensor_lr": partial(Adam, lr=torch.tensor(0.01)),
    "adamw": partial(AdamW, lr=0.01, weight_decay=0.1),
    "accum_adam": partial(AccumAdam, lr=0.01, weight_decay=0.01, accumulate=3),
    # 100 steps end within a period: after its end the accumulated gradient means nothing.
    "accum_adamw": partial(AccumAdamW, lr=0.01, weight_decay=0.1, accumulate=6),
    # These take their own step.
    "adam_amsgrad": partial(Adam, lr=0.01, amsgrad=True),
    "rmsprop": partial(torch.optim.RMSprop, lr=0.01, momentum=0.5),
    "adagrad": partial(torch.optim.Adagrad, lr=0.05),
    "nadam": partial(torch.optim.NAdam, lr=0.01),
}
OURS = {"accum_adam", "accum_adamw"}
OWN = {"adam_amsgrad", "rmsprop", "adagrad", "nadam"}
PATTERNS = ("cwa", "atc", "allreduce")


@pytest.mark.parametrize("name", OPTIMIZERS.keys() - OURS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_is_torch_bit_for_bit_over_100_steps(name: str, pattern: str) -> None:
    """See Note [A worker alone]."""
    model, plain = pair()
    optimizer, reference = (
        OPTIMIZERS[name](model.parameters()),
        OPTIMIZERS[name](plain.parameters()),
    )
    gossip = Gossip(model, optimizer, pattern=pattern)
    assert not gossip.is_fused
    train(model, optimizer, STEPS)
    train(plain, reference, STEPS)
    assert difference(model, plain) == 0
    assert same_state(optimizer, reference, within=0)
    assert gossip.steps_done == 100


@pytest.mark.parametrize("name", OPTIMIZERS.keys() - OWN)
@pytest.mark.parametrize("how", [{"update": "backward"}, FUSED])
def test_the_kernels_equal_torch_over_100_steps(name: str, how: dict[str, Any]) -> None:
    """Where the engine steps, see Note [A worker alone]."""
    model, plain = pair()
    optimizer, reference = (
        OPTIMIZERS[name](model.parameters()),
        OPTIMIZERS[name](plain.parameters()),
    )
    assert Gossip(model, optimizer, **how).is_fused
    train(model, optimizer, STEPS)
    train(plain, reference, STEPS)
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)


EXACT: dict[str, Make] = {
    **{name: OPTIMIZERS[name] for name in ("sgd", "momentum", "nesterov", "rmsprop", "adam")},
    **{name: OPTIMIZERS[name] for name in ("adamw", "adam_amsgrad")},
    "adam_foreach": partial(Adam, lr=0.01, foreach=True),
    "adamw_fused": partial(AdamW, lr=0.01, fused=True),
    "adamw_amsgrad_fused": partial(AdamW, lr=0.01, amsgrad=True, fused=True),
    "sgd_fused": partial(SGD, lr=0.1, momentum=0.9, fused=True),
}


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_is_torch_bit_for_bit_with_groups_clipping_and_a_schedule(name: str, scaled: bool) -> None:
    ends = []
    for gossips in (False, True):
        model = mlp()
        first, second = groups_of(model)
        optimizer = EXACT[name]([{"params": first["params"]}, {**second, "lr": 0.005}])
        gossip = Gossip(model, optimizer) if gossips else None
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**100, enabled=scaled, growth_interval=7)
        clipped = 0
        for step in STEPS:
            optimizer.zero_grad()
            scaler.scale(loss_of(model, 5 * batch(step))).backward()
            scaler.unscale_(optimizer)
            clipped += bool(nn.utils.clip_grad_norm_(model.parameters(), 0.5) > 0.5)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        assert clipped > 10
        assert gossip is None or gossip.steps_done == 100
        ends.append((model, optimizer, scaler.get_scale()))
    (plain, reference, scale), (model, optimizer, other_scale) = ends
    assert scale == other_scale
    assert difference(model, plain) == 0
    assert same_state(optimizer, reference, within=0)


def test_parameters_in_half_precision_keep_their_masters() -> None:
    model = mlp().bfloat16()
    assert Gossip(model, Adam(model.parameters())).is_fused


def test_another_optimizers_state_is_refused_where_torch_steps() -> None:
    model, other = pair()
    optimizer, momentum = Adam(model.parameters()), RMSprop(other.parameters())
    assert not Gossip(model, optimizer).is_fused
    train(other, momentum, [0])
    with pytest.raises(ValueError, match="state_dict is another optimizer's"):
        optimizer.load_state_dict(momentum.state_dict())


@pytest.mark.parametrize("how", [{"update": "backward"}, FUSED])
def test_tensors_of_several_large_pages_train_as_small_ones(how: dict[str, Any]) -> None:
    """Of 5.4 MB, which begin anywhere; their state is in pages of 2 MiB."""
    model, plain = pair(lambda: mlp(hidden=270_001))
    optimizer, reference = (
        SGD(each.parameters(), lr=0.01, momentum=0.9) for each in (model, plain)
    )
    with Gossip(model, optimizer, **how) as gossip:
        assert gossip.is_fused
        train(model, optimizer, range(4))
    train(plain, reference, range(4))
    assert difference(model, plain) < NEAR
    assert same_state(optimizer, reference, within=1e-5)
    train(model, optimizer, range(4, 6))
    train(plain, reference, range(4, 6))
    assert difference(model, plain) < NEAR, "what was kept is torch's own now"


def test_notices_another_learning_rate() -> None:
    model, plain = pair()
    optimizer = Adam(model.parameters(), lr=0.01)
    Gossip(model, optimizer)
    train(model, optimizer, STEPS)
    train(plain, Adam(plain.parameters(), lr=0.010001), STEPS)
    assert difference(model, plain) > NEAR


@pytest.mark.parametrize("pattern", ["cwa", "extra"])
def test_the_table_of_fused_optimizers_is_used(pattern: str) -> None:
    fused = {}
    for name, make in OPTIMIZERS.items():
        model = mlp()
        with Gossip(model, make(model.parameters()), pattern=pattern) as gossip:
            fused[name] = gossip.is_fused
    step_themselves = OWN if pattern == "extra" else OPTIMIZERS.keys() - OURS
    assert fused == {name: name not in step_themselves for name in OPTIMIZERS}


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_accum_adam_with_a_period_of_one_is_adam(decay: float) -> None:
    for kind, reference_kind in ((AccumAdam, Adam), (AccumAdamW, AdamW)):
        model, plain = pair()
        optimizer = kind(model.parameters(), lr=0.01, weight_decay=decay, accumulate=1)
        Gossip(model, optimizer)
        train(model, optimizer, STEPS)
        train(plain, reference_kind(plain.parameters(), lr=0.01, weight_decay=decay), STEPS)
        assert difference(model, plain) < NEAR


def groups_of(model: nn.Module) -> list[dict[str, object]]:
    weights = [p for p in model.parameters() if p.ndim > 1]
    biases = [p for p in model.parameters() if p.ndim == 1]
    return [
        {"params": weights, "lr": 0.02, "weight_decay": 0.3},
        {"params": biases, "lr": 0.05, "weight_decay": 0.0},
    ]


@pytest.mark.parametrize("kind", [AccumAdam, AccumAdamW])
def test_accum_adam_alone_takes_a_closure(kind: Make) -> None:
    model, other = pair()
    optimizer, plain = kind(model.parameters()), kind(other.parameters())

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, batch(0))
        loss.backward()
        return loss

    for _ in range(3):
        expected = loss_of(other, batch(0)).item()
        train(other, plain, [0])
        with torch.no_grad():  # as in a loop that evaluates
            assert optimizer.step(closure).item() == expected
    assert difference(model, other) == 0
    assert optimizer.step(None) is None


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW, AccumAdamW, partial(SGD, momentum=0.9)])
def test_parameter_groups_keep_their_own_settings(kind: Make) -> None:
    model, plain = pair()
    optimizer = kind(groups_of(model))
    Gossip(model, optimizer)
    train(model, optimizer, STEPS)
    train(plain, kind(groups_of(plain)), STEPS)
    assert difference(model, plain) < NEAR


def test_momentum_in_one_group_only() -> None:
    model, plain = pair()

    def make(of: nn.Module) -> torch.optim.Optimizer:
        first, second = groups_of(of)
        return SGD([{**first, "momentum": 0.9}, {**second, "momentum": 0.0}])

    optimizer = make(model)
    Gossip(model, optimizer)
    train(model, optimizer, STEPS)
    train(plain, make(plain), STEPS)
    assert difference(model, plain) < NEAR


def test_settings_that_change_between_steps() -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    Gossip(model, optimizer)
    for of, its in ((model, optimizer), (plain, reference)):
        train(of, its, range(5))
        its.param_groups[0]["lr"] = 0.03
        its.param_groups[0]["momentum"] = 0.9  # another row of the table
        train(of, its, range(5, 15))
        its.param_groups[0]["momentum"] = 0.0
        train(of, its, range(15, 20))
    assert difference(model, plain) < NEAR


@pytest.mark.parametrize("first", ["scheduler", "gossip"])
@pytest.mark.parametrize("make", [partial(AdamW, lr=0.05), partial(torch.optim.RMSprop, lr=0.05)])
def test_schedulers_made_before_and_after(make: Make, first: str) -> None:
    model, plain = pair()
    optimizer, reference = make(model.parameters()), make(plain.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if first == "gossip":
            Gossip(model, optimizer)
        schedulers = [
            torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30),
        ]
        if first == "scheduler":
            Gossip(model, optimizer)
        others = [
            torch.optim.lr_scheduler.StepLR(reference, 10, gamma=0.5),
            torch.optim.lr_scheduler.CosineAnnealingLR(reference, 30),
        ]
        for step in range(50):
            for of, its, both in ((model, optimizer, schedulers), (plain, reference, others)):
                train(of, its, [step])
                both[step % 2].step()
    assert difference(model, plain) < NEAR
    assert optimizer.param_groups[0]["lr"] == reference.param_groups[0]["lr"]


def test_gradients_clipped_by_the_global_norm() -> None:
    model, plain = pair()
    optimizer, reference = SGD(model.parameters(), lr=0.1), SGD(plain.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer, **FUSED, bucket_bytes=64)
    for step in range(20):
        for of, its in ((model, optimizer), (plain, reference)):
            its.zero_grad()
            loss_of(of, 50 * batch(step)).backward()
            nn.utils.clip_grad_norm_(of.parameters(), 0.5)
            its.step()
        assert gossip.last_step is not None
        assert gossip.last_step.grad_norm == pytest.approx(0.5, rel=1e-3)
    assert difference(model, plain) < NEAR


@pytest.mark.parametrize("make", [partial(SGD, lr=0.1), partial(torch.optim.RMSprop, lr=0.01)])
def test_closure(make: Make) -> None:
    model, plain = pair()
    optimizer, reference = make(model.parameters()), make(plain.parameters())
    Gossip(model, optimizer)
    losses: dict[int, list[float]] = {0: [], 1: []}
    for step in range(10):
        for i, (of, its) in enumerate(((model, optimizer), (plain, reference))):

            def closure(of: nn.Module = of, its: torch.optim.Optimizer = its) -> torch.Tensor:
                its.zero_grad()
                loss = loss_of(of, batch(step))  # noqa: B023  called within this pass
                loss.backward()
                return loss

            with torch.no_grad():
                losses[i].append(float(its.step(closure)))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert difference(model, plain) < NEAR


def test_lbfgs_takes_its_own_step() -> None:
    model, plain = pair()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
    reference = torch.optim.LBFGS(plain.parameters(), lr=0.1)
    Gossip(model, optimizer)
    for of, its in ((model, optimizer), (plain, reference)):

        def closure(of: nn.Module = of, its: torch.optim.Optimizer = its) -> torch.Tensor:
            its.zero_grad()
            loss = loss_of(of, batch(0))
            loss.backward()
            return loss

        for _ in range(3):
            its.step(closure)
    assert difference(model, plain) < NEAR


def test_double_precision() -> None:
    model, plain = pair(lambda: mlp().double())
    optimizer, reference = Adam(model.parameters(), lr=0.01), Adam(plain.parameters(), lr=0.01)
    Gossip(model, optimizer)
    for step in range(20):
        for of, its in ((model, optimizer), (plain, reference)):
            its.zero_grad()
            loss_of(of, batch(step).double()).backward()
            its.step()
    assert difference(model, plain) < 1e-14


def test_two_gossips_in_one_process() -> None:
    models = [mlp(seed) for seed in (1, 2)]
    plains = [mlp(seed) for seed in (1, 2)]
    optimizers = [AdamW(model.parameters(), lr=0.01) for model in models]
    gossips = [Gossip(*both) for both in zip(models, optimizers, strict=True)]
    references = [AdamW(plain.parameters(), lr=0.01) for plain in plains]
    for step in range(20):
        for i in (0, 1):
            train(models[i], optimizers[i], [step])
            train(plains[i], references[i], [step])
    gossips[0].close()
    train(models[1], optimizers[1], range(20, 25))
    train(plains[1], references[1], range(20, 25))
    assert [difference(*both) < NEAR for both in zip(models, plains, strict=True)] == [True, True]
    assert gossips[1].stats()["steps"] == 25


def test_what_is_logged_where_nobody_is_given_lines_is_left_out() -> None:
    model = mlp()
    with Gossip(model, SGD(model.parameters(), lr=0.1)) as gossip:
        gossip.log(loss=1.0)
        train(model, gossip._optimizers[0], range(1))
        assert gossip.steps_done == 1


def test_a_worker_alone_is_its_own_average() -> None:
    model = mlp()
    gossip = Gossip(model, SGD(model.parameters(), lr=0.1))
    assert gossip.disagreement() == 0
    before = [p.clone() for p in model.parameters()]
    with gossip.averaged() as average:
        assert average is model
        assert all(map(torch.equal, before, model.parameters()))
    stats = {"steps": 0, "exposed_s": 0.0, "hidden_s": 0.0, "skipped": 0, "lost": {}, "edges": {}}
    assert gossip.stats() == stats


def test_averaged_sees_half_precision_as_it_is_now() -> None:
    model = nn.Linear(3, 2).bfloat16()
    optimizer = RMSprop(model.parameters())
    with Gossip(model, optimizer) as gossip:
        for value in (2.0, 3.0):
            with torch.no_grad():
                model.weight.fill_(value)
            with gossip.averaged():
                assert model.weight.eq(value).all()
            assert model.weight.eq(value).all()
            loss_of(model, batch(0, inputs=3).bfloat16()).backward()
            optimizer.step()
