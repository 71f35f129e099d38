"""`gossamer launch --anew`: a job whose workers are all lost begins anew from its checkpoint."""

import json
from pathlib import Path

import pytest
from launched_hosts import hosts_of

STEPS, EVERY, DIE_AT = 60, 10, 25

PROGRAM = """
import json, os, pathlib, signal, sys, torch, gossamer
folder, lives = pathlib.Path(sys.argv[1]), int(sys.argv[2])
steps, every, die_at = map(int, sys.argv[3:6])
rank, workers = gossamer.init()
torch.manual_seed(0)
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(
    model, optimizer, topology="ring", lost="go_on", suspect_s=60, timeout_s=60
)
life = int(os.environ["GOSSAMER_LIFE"])
if gossip.steps_done == 0 and (folder / "saved" / "latest").exists():
    gossip.load(folder / "saved")
first = gossip.steps_done
for step in range(first, steps):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    optimizer.zero_grad()
    model(torch.randn(8, 6, generator=generator)).square().mean().backward()
    optimizer.step()
    if (step + 1) % every == 0:
        gossip.save(folder / "saved")
    if step + 1 == die_at and life < lives:
        gossip.gather(None)
        os.kill(os.getpid(), signal.SIGKILL)
found = {"life": life, "first": first, "x": model.weight.flatten().tolist()}
(folder / f"found-{rank}.json").write_text(json.dumps(found))
gossip.close()
"""


def launch(folder: Path, hosts: int, anew: int, lives: int) -> list[tuple[int, str]]:
    """Exit code and stderr of each host's launcher; in so many lives all workers die."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    words = [str(word) for word in (lives, STEPS, EVERY, DIE_AT)]
    with hosts_of(folder, hosts, 2 // hosts, "--anew", str(anew)) as job:
        for host in range(hosts):
            job.start(host, program, *words)
        return job.all_ended()


def found_in(folder: Path) -> list[dict[str, object]]:
    return [json.loads((folder / f"found-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("hosts", [1, 2])
def test_it_begins_anew_from_its_checkpoint(tmp_path: Path, hosts: int) -> None:
    """Twice; what it ends with is what a run without losses ends with."""
    for code, said in launch(tmp_path, hosts, anew=2, lives=2):
        assert code == 0, said
        assert said.count("the job begins anew") == 2
    found = found_in(tmp_path)
    # The second life begins at the checkpoint of step 20 and dies at 25 again, so does the third.
    assert [(each["life"], each["first"]) for each in found] == [(2, 20), (2, 20)]
    assert not (tmp_path / "members").exists()
    whole = tmp_path / "whole"
    whole.mkdir()
    assert launch(whole, hosts, anew=0, lives=0)[0][0] == 0
    assert [each["x"] for each in found] == [each["x"] for each in found_in(whole)]


def test_it_ends_where_it_may_not_begin_anew_any_more(tmp_path: Path) -> None:
    ((code, said),) = launch(tmp_path, 1, anew=1, lives=9)
    assert code == 1
    assert said.count("the job begins anew (1 of 1)") == 1
    assert "so the job ends; start it again" in said
