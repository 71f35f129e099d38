"""What Gossip and the doctor say to mistakes; all of it stands in tests/golden/python_errors.txt,
which GOSSAMER_GOLDEN=renew writes."""

import copy
import os
import re
import socket
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_messages import MISTAKES
from gossip_support import FUSED, ROOT, batch, loss_of, mlp, train
from gossip_wrappers import accelerated
from package_runs import run
from torch import nn
from torch.optim import SGD, Adam

import gossamer
from gossamer import AccumAdam, Gossip
from gossamer.session import patterns
from gossamer.tensors.fused import rule_for
from gossamer.workers.world import Seat, explain

GOLDEN = ROOT / "tests" / "golden" / "python_errors.txt"


def sgd(model: nn.Module) -> SGD:
    return SGD(model.parameters(), lr=0.1)


def rmsprop(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(model.parameters(), lr=0.1)


def parameter(tensor: torch.Tensor) -> nn.Module:
    model = nn.Module()
    model.register_parameter("odd", nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))
    return model


def ddp() -> None:
    wrapped = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(wrapped)
    wrapped.module = mlp()
    Gossip(wrapped, sgd(wrapped))


def twice() -> None:
    model = mlp()
    optimizer = sgd(model)
    Gossip(model, optimizer)
    Gossip(model, optimizer)


def averaging(act: Callable[[Gossip, torch.optim.Optimizer], object]) -> None:
    model = mlp()
    optimizer = sgd(model)
    gossip = Gossip(model, optimizer)
    with gossip.averaged():
        act(gossip, optimizer)


def closed(act: Callable[[Gossip], object]) -> None:
    model = mlp()
    gossip = Gossip(model, sgd(model))
    gossip.close()
    act(gossip)


def under_a_launcher() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLD_SIZE", "4")
        Gossip(mlp(), sgd(mlp()))


def under_an_unknown_launcher() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PMI_RANK", "0")
        patch.setenv("PMI_SIZE", "4")
        Gossip(mlp(), sgd(mlp()))


def not_finite(make: Callable[..., torch.optim.Optimizer], value: float, **options: Any) -> None:
    model = mlp()
    optimizer = make(model.parameters(), lr=0.01)
    Gossip(model, optimizer, **options)
    train(model, optimizer, range(2))
    loss_of(model, batch(2)).backward()
    model[2].weight.grad[1, 2] = value
    before = [p.detach().clone() for p in model.parameters()]
    try:
        optimizer.step()
    finally:
        assert all(map(torch.equal, before, model.parameters()))


def sparse() -> None:
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = Adam(model.parameters())
    Gossip(model, optimizer, **FUSED)
    model(torch.tensor([1, 2])).sum().backward()
    optimizer.step()


def frozen() -> None:
    model = mlp()
    optimizer = SGD([{"params": []}], lr=0.1)
    Gossip(model, optimizer)


def shared() -> None:
    model = mlp(inputs=7)
    model[2].bias.data = model[0].bias.data[:3]
    Gossip(model, sgd(model))


def on_meta() -> None:
    with torch.device("meta"):
        model = mlp()
    Gossip(model, sgd(model))


def compiled_ddp() -> None:
    model = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(model)
    model.module = mlp()
    Gossip(torch.compile(model), sgd(model))


def older_fsdp() -> None:
    model = nn.Sequential(mlp())
    model[0].__class__ = type("FullyShardedDataParallel", (nn.Sequential,), {})
    Gossip(model, sgd(model))


Zero = type("ZeroRedundancyOptimizer", (SGD,), {})


def loading(kind: Callable[..., torch.optim.Optimizer], other: nn.Module) -> None:
    """What another optimizer, of another model perhaps, has saved after a step."""
    model = mlp()
    optimizer, saver = Adam(model.parameters(), lr=0.1), kind(other.parameters(), lr=0.1)
    Gossip(model, optimizer)
    for p in other.parameters():
        p.grad = torch.ones_like(p)
    saver.step()
    state = copy.deepcopy(saver.state_dict())
    optimizer.load_state_dict(state)


def loading_entries_of_another() -> None:
    """The groups are right, the state is not."""
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    Gossip(model, optimizer)
    state = optimizer.state_dict()
    state["state"] = {0: {"exp_avg": torch.zeros(7, 5), "step": torch.ones(())}}
    optimizer.load_state_dict(state)


def with_scaler(act: Callable[[torch.amp.GradScaler, SGD], None]) -> None:
    model = mlp()
    optimizer = sgd(model)
    Gossip(model, optimizer)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(loss_of(model, batch(0))).backward()
    act(scaler, optimizer)


def stepping_twice(scaler: torch.amp.GradScaler, optimizer: SGD) -> None:
    scaler.step(optimizer)
    scaler.step(optimizer)


def unscaling_twice(scaler: torch.amp.GradScaler, optimizer: SGD) -> None:
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def without_a_launcher() -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            patch.delenv(name, raising=False)
        gossamer.init()


def doctor(**environment: str) -> None:
    """Raises with what it says where nothing will work."""
    done = run(["-m", "gossamer", "doctor"], {"GLOO_SOCKET_IFNAME": "lo", **environment})
    problems = [line for line in done.stderr.splitlines() if line.startswith("problem: ")]
    assert done.returncode == 2, done.stderr
    assert len(problems) == 1, done.stderr
    raise SystemError(problems[0])


def doctor_on_a_busy_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        doctor(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)


def a_busy_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        place = f"tcp://127.0.0.1:{busy.getsockname()[1]}"
        gossamer.init(init_method=place, rank=0, world_size=2)


CASES: dict[str, Callable[[], object]] = {
    "another model's optimizer": lambda: Gossip(mlp(), sgd(mlp())),
    "wrapped in DDP": ddp,
    "a second Gossip": twice,
    "compiled and wrapped in DDP": compiled_ddp,
    "compiled as a whole": lambda: Gossip(
        (m := torch.compile(mlp(), backend="eager")), sgd(m), update="backward"
    ),
    "the older FSDP": older_fsdp,
    "ZeRO": lambda: Gossip((m := mlp()), Zero(m.parameters(), lr=0.1)),
    "the arguments exchanged": lambda: Gossip(sgd(m := mlp()), m),
    "no optimizer": lambda: Gossip((m := mlp()), m.parameters()),
    "Accelerate's wrapper with a GradScaler": lambda: Gossip(
        m := mlp(), accelerated(sgd(m), torch.amp.GradScaler("cpu"))
    ),
    "a list in place of a group": lambda: Gossip((m := mlp()), sgd(m), group=[0, 1]),
    "word": lambda: Gossip(mlp(), topologie="ring"),
    "topology": lambda: Gossip((m := mlp()), sgd(m), topology="alternating_exponential_rin"),
    "pattern": lambda: Gossip((m := mlp()), sgd(m), pattern="cta"),
    "a pattern with an own step": lambda: Gossip(
        m := mlp(), rmsprop(m), pattern="gradient_tracking"
    ),
    "a pattern without momentum": lambda: Gossip((m := mlp()), sgd(m), pattern="dmsgd"),
    "eigenvalues": lambda: patterns.check_schedule(
        "exact_diffusion", rule_for(sgd(mlp())), gossamer.make_schedule("ring", [2, 2])
    ),
    "pattern_options": lambda: Gossip((m := mlp()), sgd(m), pattern_options={"outer_lr": 1.0}),
    "buffers": lambda: Gossip((m := mlp()), sgd(m), buffers="average"),
    "transport": lambda: Gossip((m := mlp()), sgd(m), transport="gloo"),
    "tls over Gloo": lambda: Gossip((m := mlp()), sgd(m), transport="c10d", tls=True),
    "bucket_bytes": lambda: Gossip((m := mlp()), sgd(m), bucket_bytes=0),
    "codec": lambda: Gossip((m := mlp()), sgd(m), codec="fp16"),
    "late": lambda: Gossip((m := mlp()), sgd(m), late="skipp"),
    "late after the step": lambda: Gossip((m := mlp()), sgd(m), late="skip", pattern="atc"),
    "staleness": lambda: Gossip((m := mlp()), sgd(m), late="skip", staleness=-1),
    "timeout_s": lambda: Gossip((m := mlp()), sgd(m), timeout_s=-1.0),
    "schedule for others": lambda: Gossip(
        (m := mlp()), sgd(m), topology=gossamer.make_schedule("ring", [4])
    ),
    "hypercube of 6": lambda: gossamer.make_schedule("hypercube", [3, 3]),
    "step inside averaged": lambda: averaging(lambda _, optimizer: optimizer.step()),
    "averaged inside averaged": lambda: averaging(lambda gossip, _: gossip.averaged().__enter__()),
    "disagreement inside averaged": lambda: averaging(lambda gossip, _: gossip.disagreement()),
    "averaged after close": lambda: closed(lambda gossip: gossip.averaged().__enter__()),
    "disagreement after close": lambda: closed(Gossip.disagreement),
    "stats after close": lambda: closed(Gossip.stats),
    "no process group": under_a_launcher,
    "no process group, another launcher": under_an_unknown_launcher,
    "init without a launcher": without_a_launcher,
    "init on a port in use": a_busy_port,
    "doctor: a variable is missing": lambda: doctor(RANK="0", WORLD_SIZE="2", MASTER_PORT="1"),
    "doctor: port in use": doctor_on_a_busy_port,
    "nan": lambda: not_finite(Adam, float("nan"), **FUSED),
    "inf": lambda: not_finite(SGD, float("-inf"), **FUSED),
    "nan with an own step": lambda: not_finite(torch.optim.RMSprop, float("nan")),
    "sparse gradient": sparse,
    "sparse parameter": lambda: Gossip((m := parameter(torch.eye(2).to_sparse())), sgd(m)),
    "no parameters": frozen,
    "shared memory": shared,
    "meta device": on_meta,
    "state of another optimizer": lambda: loading(SGD, mlp()),
    "entries of another optimizer": loading_entries_of_another,
    "state of another model": lambda: loading(Adam, mlp(hidden=9)),
    "state of fewer parameters": lambda: loading(Adam, nn.Linear(5, 3)),
    "GradScaler steps twice": lambda: with_scaler(stepping_twice),
    "GradScaler unscales twice": lambda: with_scaler(unscaling_twice),
    "accumulate": lambda: AccumAdam(mlp().parameters(), accumulate=0),
    "betas": lambda: AccumAdam(mlp().parameters(), betas=(0.9, 1.0)),
}


AMONG_SEVERAL = ("set_up", "training", "dead")
"""Scenarios of three workers that return what each of them is told, by mistake."""


def message_of(act: Callable[[], object]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            act()
        except Exception as error:
            return steady(f"{type(error).__name__}: {error}")
    return "no error"


def steady(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\b\d{5}\b", "PORT", text)
    text = re.sub(r"0x[0-9a-f]+", "ADDRESS", text)
    broken = r"(send|receive) with worker (\d+) failed after [\d.]+ s: .*?; see"
    return re.sub(broken, r"exchange with worker \2 failed after T s: REASON; see", text)


def told(by_rank: dict[int, str]) -> str:
    """A line for each rank that is told something; one for all if each is told the same."""
    alike = {text.replace(f"] rank {rank}: ", "] rank R: ") for rank, text in by_rank.items()}
    if len(alike) == 1:
        return f"rank R: {steady(alike.pop())}"
    told = {rank: steady(text) for rank, text in by_rank.items() if text != "nothing"}
    return "\n".join(f"rank {rank}: {text}" for rank, text in told.items())


@pytest.fixture(scope="module")
def among_several() -> dict[str, str]:
    ranks = gossip_ranks.run(list(AMONG_SEVERAL), [1, 2])
    found: dict[str, dict[int, str]] = {}
    for scenario in AMONG_SEVERAL:
        for number, rank in enumerate(ranks):  # one of them is dead in the end
            said = rank.said.get(scenario, {"result": {}})
            assert "result" in said, said
            for name, text in said["result"].items():
                found.setdefault(name, {})[number] = text
    return {name: told(texts) for name, texts in found.items()}


def recorded() -> dict[str, str]:
    text = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    return dict(part.strip().split("\n", 1) for part in text.split("== ")[1:])


@pytest.mark.skipif(os.environ.get("GOSSAMER_GOLDEN") != "renew", reason="only renews")
def test_renew(among_several: dict[str, str]) -> None:
    alone = {name: message_of(act) for name, act in CASES.items()}
    parts = [f"== {name}\n{text}\n" for name, text in {**alone, **among_several}.items()]
    Path(GOLDEN).write_text("\n".join(parts), encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_says(name: str) -> None:
    found = message_of(CASES[name])
    assert found == recorded()[name]
    assert found != "no error"


@pytest.mark.parametrize("name", MISTAKES)
def test_says_among_several(among_several: dict[str, str], name: str) -> None:
    assert among_several[name] == recorded()[name]
    assert among_several[name] != "rank R: nothing"


def test_each_is_recorded_once() -> None:
    assert GOLDEN.read_text(encoding="utf-8").count("== ") == len(CASES) + len(MISTAKES)
    assert recorded().keys() == {*CASES, *MISTAKES}


def test_an_error_of_the_caller_stays_as_it_is() -> None:
    """Among several workers ours say whose they are; a closure's are not ours."""
    seat = Seat(1, 2, None)
    for text, expected in (
        ("[Gossip] no", "[Gossip] rank 1: no"),
        ("[Gossip] rank 1 has none", "[Gossip] rank 1 has none"),
        ("[mine] no", "[mine] no"),
        ("no", "no"),
    ):
        error = ValueError(text)
        explain(error, seat)
        assert str(error) == expected
    error = ValueError("[Gossip] no")
    explain(error, Seat(0, 1, None))
    assert str(error) == "[Gossip] no"


def test_no_message_carries_a_stack() -> None:
    for text in recorded().values():
        assert "Traceback" not in text
        assert "Exception raised from" not in text
        assert len(text) < 1200


def test_complex_parameters_take_their_own_step() -> None:
    model = nn.Module()
    model.register_parameter("z", nn.Parameter(torch.ones(3, dtype=torch.complex64)))
    optimizer = Adam(model.parameters(), lr=0.1)
    gossip = Gossip(model, optimizer)
    model.z.abs().sum().backward()
    optimizer.step()
    assert not gossip.is_fused
    assert bool((model.z.real < 1).all())


def test_a_gossip_that_failed_leaves_the_optimizer_alone() -> None:
    model = mlp()
    optimizer = sgd(model)
    before = set(vars(optimizer))
    assert "pattern" in message_of(lambda: Gossip(model, optimizer, pattern="no"))
    assert set(vars(optimizer)) == before
    Gossip(model, optimizer)
