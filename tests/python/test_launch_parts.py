"""`gossamer launch` of workers that gossip in parts of the job: with FSDP inside hosts."""

import json
from pathlib import Path

from launched_hosts import hosts_of

STEPS, DIE_AT = 60, 20

PROGRAM = """
import json, os, pathlib, signal, sys, torch, gossamer
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
folder, steps, die_at, *dying = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
saved, life = folder / "saved", int(os.environ["GOSSAMER_LIFE"])
rank, workers = gossamer.init()
mesh = init_device_mesh("cpu", (workers // 2, 2), mesh_dim_names=("gossip", "inner"))
torch.manual_seed(0)
model = fully_shard(torch.nn.Linear(6, 3), mesh=mesh["inner"])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(
    model, optimizer, topology="ring", group=mesh["gossip"], lost="go_on", suspect_s=60,
    timeout_s=60,
)
if saved.exists():
    gossip.load(saved)
first = gossip.steps_done
for step in range(first, steps):
    if life == 0 and step == die_at and rank in dying:
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.zero_grad()
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
    if step + 1 == die_at // 2:
        gossip.save(saved)
with gossip.averaged():
    mean = [value.full_tensor().flatten().tolist() for value in model.parameters()]
hosts = list(gossip.gather(None))
found = {"first": first, "steps": gossip.steps_done, "hosts": hosts, "mean": mean}
(folder / f"found-{rank}.json").write_text(json.dumps(found))
gossip.close()
"""


def test_a_host_ends_as_a_whole_and_the_others_go_on(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with hosts_of(tmp_path, hosts=3, per_host=2) as job:
        for host in range(3):
            job.start(host, program, str(STEPS), str(DIE_AT), "5")
        ended = job.all_ended()
    assert [code for code, _ in ended] == [0, 0, 1], ended
    said = ended[2][1]
    assert "rank 5 ended by SIGKILL" in said or "rank 4 ended with exit code 1" in said
    assert said.count("[launch]") == said.count("this host's workers all end") == 1
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(4)]
    for one in found:
        assert one == {"first": 0, "steps": STEPS, "hosts": [0, 1], "mean": found[0]["mean"]}


def test_hosts_that_are_all_lost_begin_anew(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with hosts_of(tmp_path, 2, 2, "--anew=1") as job:
        for host in range(2):
            job.start(host, program, str(STEPS), str(DIE_AT), "1", "3")
        ended = job.all_ended()
    assert [code for code, _ in ended] == [0, 0], ended
    assert all(said.count("the job begins anew (1 of 1)") == 1 for _, said in ended)
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(4)]
    for one in found:
        assert one["first"] == DIE_AT // 2
        assert one == {**found[0], "hosts": [0, 1]}
    assert not (tmp_path / "members").exists()
