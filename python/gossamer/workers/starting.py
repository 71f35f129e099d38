"""How torch's process group begins, and what its errors mean to whoever starts the job."""

from __future__ import annotations

import re
from typing import Any

import torch.distributed as dist


def init_process_group(where: str, **arguments: Any) -> None:
    """As torch's; what is missing is said ``where``, with what to do. Raises ValueError where no
    launcher has set the variables, DistNetworkError for a port in use."""
    try:
        dist.init_process_group(**arguments)
    except ValueError as error:
        if "environment variable" not in str(error):
            raise
        missing = str(error).partition("environment variable ")[2].split()[0]
        raise ValueError(
            f"{where}no launcher has said who takes part, got no variable {missing}; start the "
            "script with `torchrun --nproc-per-node 4 SCRIPT` or `gossamer launch`, or leave the "
            "call out where this process is to train alone"
        ) from error
    except dist.DistNetworkError as error:
        if "EADDRINUSE" not in str(error):
            raise
        said = re.search(r"port: (\d+)", str(error))
        port = f"port {said[1]}" if said else "the port"
        raise dist.DistNetworkError(
            f"{where}{port} of this machine is in use, by a job that still runs perhaps; choose "
            "another one with torchrun --master-port, or MASTER_PORT"
        ) from error
