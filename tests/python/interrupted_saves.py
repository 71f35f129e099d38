"""One worker that saves on a disk that fails at each call in turn, or is killed there.

Called with: FOLDER fail|kill|replace, and faulty_disk.so preloaded. Prints a line of JSON for each
call: how the save ended, whether what is loaded is as a plain run is there, and what is left.
"""

import ctypes
import json
import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import conftest  # noqa: F401  the package's place, before the package
import torch
import torch._dynamo  # seconds that the first optimizer of each process would take
from gossip_support import names_in, train
from torch import nn
from torch.optim import SGD

from gossamer import Gossip, IoError

MOST_CALLS = 100
NO_FAULT = 7  # the save has fewer calls


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(5, 3, bias=False)
    return model, SGD(model.parameters(), lr=0.1, momentum=0.9)


class Worker:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model, self._optimizer = made()
        self._gossip = Gossip(self._model, self._optimizer)

    def load(self) -> int:
        self._gossip.load(self._folder)
        return self._gossip.stats()["steps"]

    def step(self, step: int) -> None:
        train(self._model, self._optimizer, [step])

    def save(self) -> None:
        self._gossip.save(self._folder)

    def is_after(self, batches: Iterable[int]) -> bool:
        """Whether it is as a plain run is after steps on these batches."""
        model, optimizer = made()
        train(model, optimizer, batches)
        pairs = zip(model.parameters(), self._model.parameters(), strict=True)
        return all(torch.allclose(one, other, rtol=1e-5, atol=1e-7) for one, other in pairs)


def came() -> str:
    """The call that failed; empty: none."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    return (library.getenv(b"FAULT_CAME") or b"").decode()


def faulty_save(worker: Worker, fault: str) -> Any:
    """What is said of a save of which a call fails."""
    said = ""
    os.environ["FAULT"] = fault
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            worker.save()
        except IoError as error:
            said = str(error)
    del os.environ["FAULT"]
    return {"said": said, "came": came(), "warned": [str(each.message) for each in caught]}


def one_replacement(folder: Path, call: int) -> Any:
    """A step on a batch of its own, saved over another first step; only new names fail."""

    def batch_of_saved() -> int:
        worker = Worker(folder)
        assert worker.load() == 1
        return next(batch for batch in range(call + 1) if worker.is_after([batch]))

    before = batch_of_saved()
    worker = Worker(folder)
    worker.step(call)
    found = faulty_save(worker, f"rename step-00000001 {call} 1")
    return {"before": before, "loaded": batch_of_saved(), "left": names_in(folder), **found}


def one_save(folder: Path, call: int, how: str) -> Any:
    """A step from what is there, and a save of it."""
    worker = Worker(folder)
    before = worker.load()
    found: dict[str, Any] = {"before": before, "sound": worker.is_after(range(before)), "said": ""}
    worker.step(before)
    if how == "kill":
        print(json.dumps(found), flush=True)
        os.environ["FAULT_KILLS"] = "1"
    found |= faulty_save(worker, f"any {folder} {call} 1")
    found["left"] = names_in(folder)
    found["loaded"] = worker.load()
    found["sound"] = found["sound"] and worker.is_after(range(found["loaded"]))
    worker.step(found["loaded"])
    worker.save()
    found["after"] = names_in(folder)
    return found


def main() -> None:
    folder, how = Path(sys.argv[1]), sys.argv[2]
    for call in range(MOST_CALLS):
        if os.fork() == 0:
            if call == 0:
                worker = Worker(folder)
                if how == "replace":
                    worker.step(0)
                worker.save()
                print("{}", flush=True)
            else:
                replaces = how == "replace"
                found = one_replacement(folder, call) if replaces else one_save(folder, call, how)
                print(json.dumps({**found, "ended": True}), flush=True)
                os._exit(0 if found["came"] else NO_FAULT)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.wait()[1])
        if code == NO_FAULT:
            return
        assert code in (0, -9), code


if __name__ == "__main__":
    main()
