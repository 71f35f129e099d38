"""One worker that saves on a disk that fails at each call in turn, or is killed there.

Called with: FOLDER fail|kill, and faulty_disk.so preloaded. Prints a line of JSON for each call:
how the save ended, whether what is loaded is as a plain run is there, and what is left.
"""

import ctypes
import json
import os
import sys
import warnings
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

    def is_after(self, steps: int) -> bool:
        """Whether it is as a plain run is after so many steps."""
        model, optimizer = made()
        train(model, optimizer, range(steps))
        pairs = zip(model.parameters(), self._model.parameters(), strict=True)
        return all(torch.allclose(one, other, rtol=1e-5, atol=1e-7) for one, other in pairs)


def came() -> str:
    """The call that failed; empty: none."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    return (library.getenv(b"FAULT_CAME") or b"").decode()


def one_save(folder: Path, call: int, kills: bool) -> Any:
    """A step from what is there, and a save of it."""
    worker = Worker(folder)
    before = worker.load()
    found: dict[str, Any] = {"before": before, "sound": worker.is_after(before), "said": ""}
    worker.step(before)
    if kills:
        print(json.dumps(found), flush=True)
        os.environ["FAULT_KILLS"] = "1"
    os.environ["FAULT"] = f"any {folder} {call} 1"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            worker.save()
        except IoError as error:
            found["said"] = str(error)
    del os.environ["FAULT"]
    found["came"] = came()
    found["warned"] = [str(each.message) for each in caught]
    found["left"] = names_in(folder)
    found["loaded"] = worker.load()
    found["sound"] = found["sound"] and worker.is_after(found["loaded"])
    worker.step(found["loaded"])
    worker.save()
    found["after"] = names_in(folder)
    return found


def main() -> None:
    folder, kills = Path(sys.argv[1]), sys.argv[2] == "kill"
    for call in range(MOST_CALLS):
        if os.fork() == 0:
            if call == 0:
                Worker(folder).save()
                print("{}", flush=True)
            else:
                found = one_save(folder, call, kills)
                print(json.dumps({**found, "ended": True}), flush=True)
                os._exit(0 if found["came"] else NO_FAULT)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.wait()[1])
        if code == NO_FAULT:
            return
        assert code in (0, -9), code


if __name__ == "__main__":
    main()
