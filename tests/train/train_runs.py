"""Starts `gossamer train`, alone or as the processes of a launcher."""

import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORTS = ROOT / "python" / "gossamer" / "launching" / "ports.py"
GOSSAMER = Path(os.environ.get("GOSSAMER_PROGRAM", ROOT / "build" / "bin" / "gossamer"))
SMALL = (
    "--width 16 --layers 1 --heads 2 --context 16 --global-batch 8 --validation-samples 32 "
    "--warmup 2"
).split()
PATIENCE_S = 120

Done = subprocess.CompletedProcess[str]
Variables = dict[str, str]


def train(
    *arguments: str,
    check: bool = True,
    variables: Variables | None = None,
    open_files: int | None = None,
) -> Done:
    limit = [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files}; exec "$0" "$@"']
    return _run([*limit, str(GOSSAMER), "train", *arguments], check, variables)


def gossamer(*arguments: str, check: bool = True, variables: Variables | None = None) -> Done:
    return _run([str(GOSSAMER), *arguments], check, variables)


def _run(command: list[str], check: bool, variables: Variables | None) -> Done:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | (variables or {}),
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done


def small_text(folder: Path) -> list[str]:
    """Flags for a small model of some text that is the same on every machine."""
    file = folder / "text.txt"
    file.write_text("".join(f"{k} times {k + 1} is {k * (k + 1)}.\n" for k in range(3000)))
    return ["--data", str(file), *SMALL]


def checkpoint_bytes(out: Path, step: int) -> dict[str, bytes]:
    folder = out / "checkpoints" / f"step-{step:08d}"
    return {file.name: file.read_bytes() for file in folder.glob("*.safetensors")}


def free_port() -> int:
    """As the package's, which these tests do not import."""
    return int(runpy.run_path(str(PORTS))["free_port"]())


def torchrun(*options: str) -> list[str]:
    """What starts the processes; `gossamer train` and its flags follow."""
    return [sys.executable, "-m", "torch.distributed.run", "--no-python", *options, str(GOSSAMER)]


def as_torchrun(workers: int, per_host: int) -> Callable[[int], Variables]:
    """The variables of rank r as torchrun sets them, of one or several hosts, without its store."""
    port = str(free_port())
    return lambda rank: {
        "RANK": str(rank),
        "WORLD_SIZE": str(workers),
        "LOCAL_RANK": str(rank % per_host),
        "LOCAL_WORLD_SIZE": str(per_host),
        "GROUP_RANK": str(rank // per_host),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }


def as_mpirun(workers: int) -> Callable[[int], Variables]:
    """As Open MPI sets them, on one host."""
    job = str(os.getpid() + free_port())
    return lambda rank: {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(workers),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(workers),
        "OMPI_MCA_ess_base_jobid": job,
    }


def as_srun(workers: int, per_host: int) -> Callable[[int], Variables]:
    """As Slurm sets them, where all hosts are this one."""
    job = str(os.getpid() + free_port())
    return lambda rank: {
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(workers),
        "SLURM_LOCALID": str(rank % per_host),
        "SLURM_NODEID": str(rank // per_host),
        "SLURM_JOB_ID": job,
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "localhost",
    }


def start(
    variables: Callable[[int], Variables],
    ranks: list[int],
    *arguments: str,
    command: str = "train",
) -> list[subprocess.Popen[str]]:
    """One process per rank."""
    return [
        subprocess.Popen(
            [str(GOSSAMER), command, *arguments],
            env=os.environ | variables(rank),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[Done]:
    """Waits for all; ends those that would not."""
    try:
        said = [process.communicate(timeout=PATIENCE_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [
        subprocess.CompletedProcess(process.args, process.returncode, out, err)
        for process, (out, err) in zip(processes, said, strict=True)
    ]


def wait_for(file: Path, *runs: subprocess.Popen[str], patience_s: float = 120) -> None:
    """Until the file has something in it; fails where a run ends before that."""
    limit = time.monotonic() + patience_s
    while not (file.exists() and file.stat().st_size):
        assert all(run.poll() is None for run in runs)
        assert time.monotonic() < limit
        time.sleep(0.02)
