"""Worker processes of the Gossip tests.

forked.py calls main() with: FOLDER PROCESSES,PER,HOST TIMEOUT_S SCENARIO...

Loads torch once and forks the ranks, which find the environment that a launcher would give them.
Each writes a line of JSON per scenario to FOLDER/<rank>.jsonl; prints their exit codes.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # so that there is one thread to fork

import conftest  # noqa: E402, F401  the package's place, before the package
import gossip_scenarios_actions  # noqa: E402
import gossip_scenarios_agree  # noqa: E402
import gossip_scenarios_allreduce  # noqa: E402
import gossip_scenarios_averaging  # noqa: E402
import gossip_scenarios_backward  # noqa: E402
import gossip_scenarios_basic  # noqa: E402
import gossip_scenarios_codecs  # noqa: E402
import gossip_scenarios_combined  # noqa: E402
import gossip_scenarios_device_half  # noqa: E402
import gossip_scenarios_device_order  # noqa: E402
import gossip_scenarios_device_shards  # noqa: E402
import gossip_scenarios_devices  # noqa: E402
import gossip_scenarios_docs  # noqa: E402
import gossip_scenarios_doors  # noqa: E402
import gossip_scenarios_edits  # noqa: E402
import gossip_scenarios_ends  # noqa: E402
import gossip_scenarios_half  # noqa: E402
import gossip_scenarios_hosts  # noqa: E402
import gossip_scenarios_interrupted  # noqa: E402
import gossip_scenarios_jobs  # noqa: E402
import gossip_scenarios_lost  # noqa: E402
import gossip_scenarios_means  # noqa: E402
import gossip_scenarios_mesh  # noqa: E402
import gossip_scenarios_messages  # noqa: E402
import gossip_scenarios_mistakes  # noqa: E402
import gossip_scenarios_optimizers  # noqa: E402
import gossip_scenarios_own  # noqa: E402
import gossip_scenarios_patterns  # noqa: E402
import gossip_scenarios_plan  # noqa: E402
import gossip_scenarios_probe  # noqa: E402
import gossip_scenarios_save  # noqa: E402
import gossip_scenarios_secret  # noqa: E402
import gossip_scenarios_state  # noqa: E402
import gossip_scenarios_stops  # noqa: E402
import gossip_scenarios_suspicions  # noqa: E402
import gossip_scenarios_trace  # noqa: E402
import gossip_scenarios_trackers  # noqa: E402
import gossip_scenarios_transports  # noqa: E402
import gossip_scenarios_uneven  # noqa: E402
import torch._dynamo  # noqa: E402, F401  seconds that the first optimizer of each rank would take
import torch.distributed as dist  # noqa: E402

SCENARIOS: dict[str, Callable[[int, int], Any]] = {
    **gossip_scenarios_actions.SCENARIOS,
    **gossip_scenarios_agree.SCENARIOS,
    **gossip_scenarios_allreduce.SCENARIOS,
    **gossip_scenarios_averaging.SCENARIOS,
    **gossip_scenarios_backward.SCENARIOS,
    **gossip_scenarios_basic.SCENARIOS,
    **gossip_scenarios_codecs.SCENARIOS,
    **gossip_scenarios_combined.SCENARIOS,
    **gossip_scenarios_edits.SCENARIOS,
    **gossip_scenarios_ends.SCENARIOS,
    **gossip_scenarios_half.SCENARIOS,
    **gossip_scenarios_interrupted.SCENARIOS,
    **gossip_scenarios_docs.SCENARIOS,
    **gossip_scenarios_doors.SCENARIOS,
    **gossip_scenarios_device_half.SCENARIOS,
    **gossip_scenarios_device_order.SCENARIOS,
    **gossip_scenarios_device_shards.SCENARIOS,
    **gossip_scenarios_devices.SCENARIOS,
    **gossip_scenarios_jobs.SCENARIOS,
    **gossip_scenarios_lost.SCENARIOS,
    **gossip_scenarios_hosts.SCENARIOS,
    **gossip_scenarios_mesh.SCENARIOS,
    **gossip_scenarios_messages.SCENARIOS,
    **gossip_scenarios_means.SCENARIOS,
    **gossip_scenarios_mistakes.SCENARIOS,
    **gossip_scenarios_optimizers.SCENARIOS,
    **gossip_scenarios_optimizers.LAUNCHES,
    **gossip_scenarios_own.SCENARIOS,
    **gossip_scenarios_patterns.SCENARIOS,
    **gossip_scenarios_plan.SCENARIOS,
    **gossip_scenarios_probe.SCENARIOS,
    **gossip_scenarios_save.SCENARIOS,
    **gossip_scenarios_secret.SCENARIOS,
    **gossip_scenarios_state.SCENARIOS,
    **gossip_scenarios_state.LAUNCHES,
    **gossip_scenarios_stops.SCENARIOS,
    **gossip_scenarios_suspicions.SCENARIOS,
    **gossip_scenarios_trace.SCENARIOS,
    **gossip_scenarios_trackers.SCENARIOS,
    **gossip_scenarios_transports.SCENARIOS,
    **gossip_scenarios_uneven.SCENARIOS,
}


def environment(rank: int, hosts: list[int]) -> dict[str, str]:
    host, local = 0, rank
    while local >= hosts[host]:
        local -= hosts[host]
        host += 1
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(sum(hosts)),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(hosts[host]),
        "GROUP_RANK": str(host),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",  # nobody listens there: the store is a file
        "GLOO_SOCKET_IFNAME": "lo",
    }


def run_rank(rank: int, size: int, folder: Path, scenarios: list[str]) -> None:
    store = dist.FileStore(str(folder / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    with (folder / f"{rank}.jsonl").open("a") as out:
        for scenario in scenarios:
            said: dict[str, Any] = {}
            try:
                said["result"] = SCENARIOS[scenario](rank, size)
            except Exception:
                said["failed"] = traceback.format_exc()
            out.write(json.dumps([scenario, said]) + "\n")
            out.flush()


def fork_rank(rank: int, hosts: list[int], folder: Path, scenarios: list[str]) -> int:
    """The process id; the child itself never comes back."""
    (folder / f"{rank}.jsonl").touch()
    child = os.fork()
    if child != 0:
        return child
    os.environ.update(environment(rank, hosts))
    errors = os.open(folder / f"{rank}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(errors, 2)
    os.dup2(errors, 1)
    run_rank(rank, sum(hosts), folder, scenarios)
    sys.exit()  # as a script ends: through the interpreter's own end


def wait_for_all(children: list[int], timeout_s: float) -> list[int | None]:
    """Exit codes, negative for signals; None for those that had to be killed."""
    codes: dict[int, int | None] = {}
    deadline = time.monotonic() + timeout_s
    while len(codes) < len(children):
        late = time.monotonic() > deadline
        for child in children:
            if child in codes:
                continue
            if late:
                os.kill(child, signal.SIGKILL)
            ended, status = os.waitpid(child, 0 if late else os.WNOHANG)
            if ended:
                codes[child] = None if late else os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return [codes[child] for child in children]


def main() -> None:
    folder, hosts = Path(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")]
    timeout_s, scenarios = float(sys.argv[3]), sys.argv[4:]
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    children = [fork_rank(rank, hosts, folder, scenarios) for rank in range(sum(hosts))]
    print(json.dumps(wait_for_all(children, timeout_s)))
