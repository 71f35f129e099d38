"""A program for `gossamer launch`: one epoch by Shares, in rounds of EVERY steps. The ranks of DIE
end by SIGKILL, each once the one before has been back for LIFE steps. While one is away the others
step slowly, so that the epoch does not end before it is back, however long a start takes."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

import gossamer

STEPS_OF_A_LIFE = int(os.environ["LIFE"])
SLOW_STEPS = 60  # at most, while one is away


def count(folder: Path, event: str) -> int:
    return len(list(folder.glob(f"{event}-*")))


def note(folder: Path, event: str) -> None:
    (folder / f"{event}-{count(folder, event)}").touch()


def main() -> None:
    folder, size, batch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    life = int(os.environ["GOSSAMER_RESTARTS"])
    rank, _ = gossamer.init()
    victims = [int(word) for word in os.environ["DIE"].split(",")]
    torch.manual_seed(rank)
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    gossip = gossamer.Gossip(
        model, optimizer, topology="ring", lost="go_on", timeout_s=60, suspect_s=60
    )
    shares = gossamer.Shares(gossip, size, batch, every=int(os.environ["EVERY"]))
    out = (folder / f"trained-{rank}-{life}.jsonl").open("w")
    steps, slow_steps = 0, 0
    while shares.deal():
        for samples in shares:
            if life > 0 and steps in (0, STEPS_OF_A_LIFE):
                note(folder, "back" if steps else "here")
            turn = count(folder, "back")
            is_next = victims[turn : turn + 1] == [rank] and life == victims[:turn].count(rank)
            if is_next and steps > STEPS_OF_A_LIFE:
                note(folder, "away")
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            model(torch.randn(8, 6)).square().mean().backward()
            optimizer.step()
            knows = shares._round is not None
            line = {"rank": rank, "life": life, "step": gossip.steps_done, "knows": knows}
            out.write(json.dumps({**line, "samples": samples}) + "\n")
            out.flush()
            steps += 1
            is_one_away = count(folder, "away") > count(folder, "here")
            slow_steps = slow_steps + 1 if is_one_away else 0
            time.sleep(1.0 if 0 < slow_steps <= SLOW_STEPS else 0.02)
    out.write(json.dumps({"rank": rank, "life": life, "end": gossip.steps_done}) + "\n")
    out.close()
    gossip.close()
    dist.destroy_process_group()


main()
