"""`gossamer doctor`: what training needs, and whether it is here.

Alone it looks at this machine and sends something from Gloo to Gloo inside this process. Under a
launcher (``torchrun --nproc-per-node 4 -m gossamer doctor``) rank 0 also tells how fast the links
between the workers are. Facts go to stdout; what is odd or will not work goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TimeLimitError
from dataclasses import asdict
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from gossamer import _core
from gossamer.diagnosis import clocks, device_links, encryption, links, ranks
from gossamer.workers import machine, versions
from gossamer.workers.wording import first_line

Result = TypeVar("Result")

LIMIT_S = 10.0
"""How long a healthy examination takes at most unless the command says otherwise, with the start of
Python."""

_LEAST_S = 4.0  # for meeting and measuring, however late it is
_MARGIN_S = 0.5
_SMALL_SHM = 64 << 20  # what a container gets when nobody asks for more
_FAILED = 2


def main(arguments: list[str]) -> int:
    """The command; returns 0 where training will work and 2 where something keeps it from it."""
    options = _parse(arguments)
    mine = _look_around()
    clock = ranks.Clock(max(options.timeout_s - machine.age_s(), min(_LEAST_S, options.timeout_s)))
    inner = ranks.Clock(clock.left_s() - _MARGIN_S)
    is_alone = ranks.launched_workers() == 1
    team: ranks.Team | None = ranks.Team([platform.node()], [mine], [])
    is_stuck = has_failed = False
    try:
        if is_alone:
            _in_time(lambda: _talk_to_myself(mine, inner), clock)
        else:
            team = _in_time(lambda: ranks.examine(mine, inner), clock)
    except TimeLimitError:
        is_stuck = has_failed = True
        mine.problems.append(f"{_who()} was still {mine.stage} when the time was up")
    except RuntimeError as error:
        has_failed = True
        mine.problems.append(f"{_who()}, {mine.stage}: {first_line(error)}")
    code = 0  # rank 0 speaks for all that were heard
    if team is not None and (is_alone or os.environ.get("RANK") == "0"):
        code = _report(mine, team, options.json)
    elif has_failed:
        time.sleep(clock.left_s() + _MARGIN_S)  # a launcher ends all its workers with the first one
        code = _say_findings([mine])
    if is_stuck:
        sys.stdout.flush()
        os._exit(code)  # does not wait for the thread
    return code


def _who() -> str:
    return f"rank {os.environ.get('RANK', '0')}"


def _in_time(work: Callable[[], Result], clock: ranks.Clock) -> Result:
    """What the work returns or raises; TimeLimitError, with the work going on, when that takes too
    long: Gloo may wait for much longer than it is told to."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result(clock.left_s())


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gossamer doctor",
        description="Checks what training needs here. Under a launcher, as in `torchrun "
        "--nproc-per-node 4 -m gossamer doctor`, also measures the links between the workers.",
        epilog="exit code: 0 fine, 2 something keeps training from working; "
        "example: gossamer doctor --timeout-s 60",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--timeout-s",
        type=_seconds,
        default=LIMIT_S,
        metavar="S",
        help="seconds for all of it (default: %(default)g), more where workers start late",
    )
    return parser.parse_args(arguments)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time; say seconds, for example 60")
    return value


# What is here.


def _look_around() -> ranks.Findings:
    mine = ranks.Findings()
    mine.facts["versions"] = {
        **versions.own(),
        "built for torch": _core.__torch_version__,
        "python": platform.python_version(),
        "kernels": _kernels(mine),
    }
    mine.facts["backends"] = _backends(mine)
    mine.facts["interfaces"] = _interfaces(mine)
    mine.facts["host"] = _host(mine)
    mine.facts["token"] = _token(mine)
    mine.facts["encryption"] = dict(encryption.ABOUT)
    return mine


def _kernels(mine: ranks.Findings) -> str:
    try:
        return _core.isa_name()
    except ValueError as error:
        mine.problems.append(str(error))
        return "none"


def _backends(mine: ranks.Findings) -> list[str]:
    if not dist.is_available():
        mine.problems.append("this torch is built without torch.distributed; install another one")
        return []
    there = {
        "gloo": dist.is_gloo_available(),
        "nccl": dist.is_nccl_available(),
        "mpi": dist.is_mpi_available(),
        "ucc": dist.is_ucc_available(),
    }
    if not there["gloo"]:
        mine.problems.append("this torch is built without Gloo; install one that has it")
    return [name for name, here in there.items() if here]


def _interfaces(mine: ranks.Findings) -> dict[str, Any]:
    found = machine.interfaces()
    choice = machine.gloo_choice(found)
    useful = [each.name for each in found if each.addresses and not each.leads_nowhere]
    remedy = f"set GLOO_SOCKET_IFNAME to the right one of {', '.join(useful) or 'none'}"
    if not choice.address:
        mine.problems.append(f"Gloo finds no address to listen on: {choice.why}; {remedy}")
    chosen = next((each for each in found if each.name == choice.interface), None)
    # Exact from torchrun; whether it matters shows when the workers meet.
    local = int(os.environ.get("LOCAL_WORLD_SIZE", ranks.launched_workers()))
    if chosen and chosen.leads_nowhere and ranks.launched_workers() > local:
        mine.warnings.append(
            f"Gloo listens on {chosen.name}, {choice.address}, where other machines cannot reach "
            f"it ({choice.why}); if the workers are on several machines, {remedy}"
        )
    up = {each.name: list(each.addresses) for each in found if each.is_up and each.addresses}
    return {"up": up, "gloo": asdict(choice)}


def _token(mine: ranks.Findings) -> str:
    try:
        if _core.token_by_secret("") is not None:
            return "from this user's secret"
    except (ValueError, OSError) as error:
        mine.problems.append(str(error))
        return "none"
    return "from the launcher's store, which anybody reads who reaches its port"


def _host(mine: ranks.Findings) -> dict[str, Any]:
    size, free = machine.shared_memory()
    workers = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    cores = machine.cores()
    if size <= _SMALL_SHM:
        mine.warnings.append(
            f"/dev/shm has {size >> 20} MiB, too little for data loaders with worker processes; "
            "start the container with --shm-size=1g or --ipc=host"
        )
    if torch.cuda.is_available() and torch.cuda.device_count() < workers:
        mine.warnings.append(
            f"{workers} workers share {torch.cuda.device_count()} GPUs; start one per GPU, or "
            "train on the CPU"
        )
    if workers > cores:
        mine.warnings.append(
            f"{workers} workers share {cores:g} cores, so they wait for cores when they seem to "
            "wait for each other; start fewer per host"
        )
    return {"cores": cores, "workers": workers, "shm_bytes": size, "shm_free_bytes": free}


def _talk_to_myself(mine: ranks.Findings, clock: ranks.Clock) -> None:
    """Both ends of a link in this process: shows that the extension, TLS and Gloo work."""
    mine.stage = "sending to itself over TLS"
    try:
        encryption.try_here(clock.left_s() / 2)
        mine.facts["encryption"]["TLS"] += "; tried here, works"
    except (_core.TransportError, _core.IoError, ValueError) as error:
        mine.facts["encryption"]["TLS"] += "; tried here, fails"
        mine.warnings.append(f"TLS was tried, got: {error}; without tls=True nothing is encrypted")
    mine.stage = "sending to itself over Gloo"
    try:
        speed, listeners = links.measure_here(0.4, clock.left_s())
    except _core.TransportError as error:
        mine.problems.append(str(error))
        return
    mine.facts["loop"] = asdict(speed)
    mine.facts["listens"] = [str(listener) for listener in listeners]
    everywhere = [str(listener) for listener in listeners if listener.is_everywhere]
    if everywhere:
        mine.problems.append(f"Gossamer listens on every interface, at {', '.join(everywhere)}")


# What is said.


def _say_findings(all_findings: list[ranks.Findings]) -> int:
    """To stderr, equal words once; the exit code."""
    problems = dict.fromkeys(text for each in all_findings for text in each.problems)
    warnings = dict.fromkeys(text for each in all_findings for text in each.warnings)
    for kind, texts in (("warning", warnings), ("problem", problems)):
        for text in texts:
            print(f"{kind}: {text}", file=sys.stderr)
    return _FAILED if problems else 0


def _judge(mine: ranks.Findings, team: ranks.Team) -> None:
    for rank, findings in enumerate(team.findings):
        if findings is None:
            mine.problems.append(f"rank {rank} on {team.hosts[rank]} did not tell what it found")
    told = {rank: each.facts["versions"] for rank, each in enumerate(team.findings) if each}
    if problem := versions.other_gossamers(told):
        mine.problems.append(problem)
    if doubt := versions.other_torches(told):
        mine.warnings.append(doubt)
    for link in team.links:
        if link.error:
            words = mine.warnings if link.error == ranks.NO_TIME else mine.problems
            words.append(f"workers {link.low} and {link.high}: {link.error}")
    mine.warnings += clocks.warnings(team.hosts, team.clocks())


def _report(mine: ranks.Findings, team: ranks.Team, as_json: bool) -> int:
    _judge(mine, team)
    others = [each for rank, each in enumerate(team.findings) if each is not None and rank > 0]
    everybody = [mine, *others]
    if as_json:
        print(json.dumps(_as_json(everybody, team)))
    else:
        _print_facts(mine)
        _print_links(mine, team)
        _print_clocks(team)
    sys.stdout.flush()
    return _say_findings(everybody)


def _as_json(everybody: list[ranks.Findings], team: ranks.Team) -> dict[str, Any]:
    problems = list(dict.fromkeys(text for each in everybody for text in each.problems))
    return {
        "ok": not problems,
        "problems": problems,
        "warnings": list(dict.fromkeys(text for each in everybody for text in each.warnings)),
        "hosts": team.hosts,
        "workers": [each.facts if each is not None else None for each in team.findings],
        "links": [asdict(link) for link in team.links],
        "clocks": [clock and asdict(clock) for clock in team.clocks()],
    }


def _print_table(title: str, rows: dict[str, str]) -> None:
    print(title)
    for name, text in rows.items():
        print(f"  {name:<16}{text}")


def _print_facts(mine: ranks.Findings) -> None:
    facts = mine.facts
    _print_table("versions", facts["versions"])
    gloo = facts["interfaces"]["gloo"]
    _print_table(
        "network",
        {
            "backends": ", ".join(facts["backends"]) or "none",
            **{name: ", ".join(here) for name, here in facts["interfaces"]["up"].items()},
            "Gloo takes": f"{gloo['interface']} {gloo['address']}: {gloo['why']}",
            "listening": ", ".join(facts.get("listens", [])) or "nowhere",
            "token": facts["token"],
            **facts["encryption"],
        },
    )
    host = facts["host"]
    gib = 1 << 30
    _print_table(
        "this host",
        {
            "cores": f"{host['cores']:g}, workers: {host['workers']}",
            "/dev/shm": f"{host['shm_free_bytes'] / gib:.2f} GiB free of "
            f"{host['shm_bytes'] / gib:.2f} GiB",
            "parameters": device_links.describe(),
        },
    )


def _print_links(mine: ranks.Findings, team: ranks.Team) -> None:
    if not team.links:
        loop = mine.facts.get("loop")
        if loop:
            print("links")
            print(
                f"  inside this process, over Gloo: {loop['latency_us']:.0f} us, "
                f"{links.in_bits(loop['there_gb_per_s'])}; start it with torchrun for those "
                "between workers"
            )
        return
    over = "shared memory" if len(set(team.hosts)) == 1 else "shared memory and TCP"
    print(f"links, over {over}, one pair and one direction at a time")
    print(f"  {'pair':<10}{'hosts':<24}{'latency us':>10}{'->':>13}{'<-':>13}")
    for link in team.links:
        pair, hosts = f"{link.low} {link.high}", (team.hosts[link.low], team.hosts[link.high])
        place = hosts[0] if hosts[0] == hosts[1] else " ".join(hosts)
        if link.speed is None:
            print(f"  {pair:<10}{place:<24}{link.error}")
            continue
        speed = link.speed
        print(
            f"  {pair:<10}{place:<24}{speed.latency_us:>10.0f}"
            f"{links.in_bits(speed.there_gb_per_s):>13}{links.in_bits(speed.back_gb_per_s):>13}"
        )


def _print_clocks(team: ranks.Team) -> None:
    """Workers of one host have one clock."""
    found = clocks.by_host(team.hosts, team.clocks())
    if found:
        rows = {host: clocks.words(clock, team.hosts[0]) for host, clock in found.items()}
        _print_table("clocks", rows)
