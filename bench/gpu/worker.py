"""One worker of bench/gpu/run.py: a model on a device, or in CPU memory, that gossips."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import places
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy

import gossamer

PART = 4_000_000  # parameters of one tensor of the large model


class OwnAdamW(torch.optim.AdamW):
    """Takes its own step on every device, so that workers on all of them agree."""


class Wide(nn.Module):
    """Parameters without a forward: what is computed meanwhile is products of matrices."""

    def __init__(self, count: int) -> None:
        super().__init__()
        sizes = [PART] * (count // PART) + ([count % PART] if count % PART else [])
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(size)) for size in sizes])


class Compute:
    """Products of matrices that take about ``seconds`` on a device."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self._is_cpu = device.type == "cpu"
        self._seconds = seconds
        self._count = 0
        if self._is_cpu:
            return
        size = 8192 if device.type == "cuda" else 64
        self._a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
        self._c = torch.empty_like(self._a)
        self.run(2)
        one = min(_timed(device, lambda: self.run(8)) for _ in range(3)) / 8
        self._count = max(1, round(seconds / one))

    def run(self, count: int) -> None:
        """``count`` products."""
        for _ in range(count):
            torch.mm(self._a, self._a, out=self._c)

    def step(self) -> None:
        """One forward and backward."""
        if not self._is_cpu:
            self.run(self._count)


def wait_for(device: torch.device) -> None:
    """Until the device has done everything."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def _timed(device: torch.device, work: Callable[[], None]) -> float:
    wait_for(device)
    begin = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - begin


def _cpu_by_thread() -> dict[str, float]:
    """Seconds of CPU that the threads of this process have used."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            found[task.name] = (int(fields[11]) + int(fields[12])) / tick
    return found


def step_time(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """Seconds of a step with gossip and without, in turn, with the same products of matrices."""
    model = Wide(arguments.parameters).to(device)
    fused = device.type in ("cuda", "cpu")
    optimizer = OwnAdamW(model.parameters(), lr=1e-4, fused=fused)
    compute = Compute(device, arguments.compute)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)

    def steps(count: int) -> None:
        for _ in range(count):
            compute.step()
            optimizer.step()

    steps(2)
    alone = [_timed(device, lambda: steps(arguments.steps)) for _ in range(arguments.rounds)]
    before = torch.accelerator.memory_allocated(device) if device.type == "cuda" else 0
    gossip = gossamer.Gossip(
        model, optimizer, topology="complete", codec=arguments.codec, check_gradients=True
    )
    after = torch.accelerator.memory_allocated(device) if device.type == "cuda" else 0
    host_s: list[float] = []

    def timed_steps(count: int) -> None:
        for _ in range(count):
            compute.step()
            begin = time.perf_counter()
            optimizer.step()
            host_s.append(time.perf_counter() - begin)

    timed_steps(3)
    host_s.clear()
    cpu = _cpu_by_thread()
    together = []
    for _ in range(arguments.rounds):
        together.append(_timed(device, lambda: timed_steps(arguments.steps)))
    after_cpu = _cpu_by_thread()
    spent = {task: used - cpu.get(task, 0.0) for task, used in after_cpu.items()}
    total = arguments.rounds * arguments.steps
    used = [round(each / total, 4) for each in spent.values() if each > 0]
    exposed = gossip.last_step.exposed_s if gossip.last_step else 0.0
    with gossip.averaged():
        pass
    gossip.close()
    count = arguments.steps
    return {
        "alone_s": [each / count for each in alone],
        "gossip_s": [each / count for each in together],
        "ratio": statistics.median(together) / statistics.median(alone),
        "in_step_s": statistics.median(host_s),
        "exposed_s": exposed,
        "cpu_s_per_step": sum(used),
        "main_thread_cpu_s": spent[str(os.getpid())] / total,
        "cpu_s_by_thread": sorted(used, reverse=True),
        "device_bytes_per_parameter": (after - before) / arguments.parameters,
    }


def _classes(device: torch.device, rank: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    data = torch.Generator().manual_seed(100 * rank + batch)
    x = torch.randn(32, 20, generator=data)
    return x.to(device), (x.sum(1) > 0).long().to(device)


def losses(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """Losses of a small net, to be compared with those of another run on other devices."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 2)).to(device)
    optimizer = OwnAdamW(model.parameters(), lr=1e-2)
    found = []
    with closing(
        gossamer.Gossip(
            model, optimizer, topology="complete", codec=arguments.codec, pattern=arguments.pattern
        )
    ) as gossip:
        for batch in range(arguments.steps):
            x, y = _classes(device, dist.get_rank(), batch)
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        apart = gossip.disagreement()
        with gossip.averaged():
            mean = float(sum(p.detach().double().abs().sum() for p in model.parameters()))
    return {"losses": [float(each) for each in found], "apart": apart, "mean": mean}


def amp(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """AMP, clipping and the step, with every wait for the device an error."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)).to(device)
    optimizer = OwnAdamW(model.parameters(), lr=1e-2, fused=device.type == "cuda")
    gossip = gossamer.Gossip(model, optimizer, topology="complete", pattern=arguments.pattern)
    is_cuda = device.type == "cuda"  # the device of the tests knows no autocast
    scaler = torch.amp.GradScaler(device.type, enabled=is_cuda)
    batches = [_classes(device, dist.get_rank(), k) for k in range(arguments.steps)]
    last = None
    for k, (x, y) in enumerate(batches):
        if is_cuda and k >= 13:  # by then all checks of the first steps are done
            torch.cuda.set_sync_debug_mode("error")
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16) if is_cuda else nullcontext():
            last = cross_entropy(model(x), y)
        scaler.scale(last).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        if is_cuda:
            torch.cuda.set_sync_debug_mode("default")  # the scaler's own update reads a number
        scaler.update()
    gossip.close()
    return {"loss": float(last.detach()) if last is not None else 0.0}


def passes(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """Milliseconds on the device: torch's fused AdamW, the mix beside it, a copy."""
    model = Wide(arguments.parameters).to(device)
    parameters = [p.detach() for p in model.parameters()]
    staged = [torch.zeros_like(p) for p in parameters]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)

    def mix() -> None:
        torch._foreach_add_(parameters, staged)
        torch._foreach_copy_(staged, parameters)

    def ten(once: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(10):
                once()

        return run

    whole = torch.zeros(arguments.parameters, device=device)
    other = torch.zeros_like(whole)
    work: dict[str, Callable[[], object]] = {
        "adamw": optimizer.step,
        "mix": mix,
        "copy": lambda: other.copy_(whole),
    }
    found: dict[str, object] = {}
    for name, once in work.items():
        once()
        found[f"{name} ms"] = 100 * min(_timed(device, ten(once)) for _ in range(5))
    return found


def until_killed(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """Steps until the other worker dies: how long after that the error comes, and its words."""
    model = Wide(arguments.parameters).to(device)
    optimizer = OwnAdamW(model.parameters(), lr=1e-4)
    compute = Compute(device, arguments.compute)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
    gossip = gossamer.Gossip(model, optimizer, topology="complete", timeout_s=60)
    mine = dist.get_rank() == arguments.dies
    for k in range(1000):
        compute.step()
        begin = time.time()
        try:
            optimizer.step()
        except gossamer.TransportError as error:
            wait_for(device)
            return {"said": str(error)[:200], "after_s": time.time() - begin}
        if mine and k == 6:
            os.kill(os.getpid(), signal.SIGKILL)  # what was queued is under way
    gossip.close()
    return {"said": "nothing"}


# Arguments of Gossip by contender; DDP takes Gloo, since NCCL wants a GPU for each worker.
CONTENDERS: dict[str, dict[str, str]] = {
    "alone": {},
    "DDP": {},
    "DDP, bf16": {},
    "cwa": {},
    "cwa, int8": {"codec": "int8"},
    "allreduce": {"pattern": "allreduce"},
    "allreduce, int8": {"pattern": "allreduce", "codec": "int8"},
    "gradient_gossip, int8": {"pattern": "gradient_gossip", "codec": "int8"},
}


class Contender:
    """A model that one of CONTENDERS trains, and its seconds per step, round by round."""

    def __init__(self, name: str, device: torch.device, width: int) -> None:
        torch.manual_seed(0)
        layers = [layer for _ in range(16) for layer in (nn.Linear(width, width), nn.ReLU())]
        self._model: nn.Module = nn.Sequential(*layers).to(device)
        fused = device.type == "cuda"
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=fused)
        torch.manual_seed(1 + dist.get_rank())
        self._x = torch.randn(4 * width, width, device=device)
        self._device = device
        self.seconds: list[float] = []
        self._gossip: gossamer.Gossip | None = None
        if "DDP" in name:
            ddp = nn.parallel.DistributedDataParallel(self._model)
            if "bf16" in name:
                ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
            self._model = ddp
        elif name != "alone":
            self._gossip = gossamer.Gossip(self._model, self._optimizer, **CONTENDERS[name])

    def round(self, count: int) -> None:
        """All workers begin a round of steps at once, while the exchange of a step before is under
        way. It is over when the next contender begins."""

        def steps(count: int) -> None:
            for _ in range(count):
                self._optimizer.zero_grad()
                self._model(self._x).square().mean().backward()
                self._optimizer.step()

        dist.barrier()
        steps(1)
        self.seconds.append(_timed(self._device, lambda: steps(count)) / count)
        if self._gossip is not None:
            with self._gossip.averaged():
                pass

    def close(self) -> None:
        """Ends its gossip."""
        if self._gossip is not None:
            self._gossip.close()


def ddp(device: torch.device, arguments: argparse.Namespace) -> dict[str, object]:
    """Seconds of a step with DDP, gossip and neither, in turn. Two workers may share the device."""
    names = [name for name in CONTENDERS if device.type == "cuda" or "DDP" not in name]
    contenders = {name: Contender(name, device, arguments.width) for name in names}
    for _ in range(1 + arguments.rounds):
        for contender in contenders.values():
            contender.round(arguments.steps)
    found: dict[str, object] = {}
    for name, contender in contenders.items():
        contender.close()
        found[name] = contender.seconds[1:]
    return found


WORK = {each.__name__: each for each in (step_time, losses, amp, passes, until_killed, ddp)}


def main() -> int:
    """Prints what one worker found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--device", required=True)
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--codec", default="fp32")
    parser.add_argument("--pattern", default="cwa")
    parser.add_argument("--dies", type=int, default=0, help="the rank that kills itself")
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=2048, help="of the model of ddp")
    parser.add_argument("--compute", type=float, default=0.05, help="seconds of a step")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    places.make_known(arguments.device)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 3))  # as fast as its neighbour
    dist.init_process_group(arguments.backend)
    found = WORK[arguments.work](torch.device(arguments.device), arguments)
    print("RESULT " + json.dumps(found), flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
