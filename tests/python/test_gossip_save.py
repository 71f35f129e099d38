"""save() and load(): the same bits, the mean for other numbers of workers, and no half a thing."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import torch
from gossip_scenarios_basic import TIMEOUT_S
from gossip_support import ROOT, difference, mlp, pair, same_state, train
from package_runs import run
from safetensors import safe_open
from torch.optim import LBFGS, SGD, Adam

import gossamer
from gossamer import Gossip, _core

NEAR = 1e-6
SCENARIOS = ["resumed", "resized", "grown", "two_groups", "odd_tensors", "refused"]
SCENARIOS += ["hollow", "interrupted", "hosts_apart", "kept", "reordered"]


@pytest.fixture(scope="module")
def three(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(SCENARIOS, [1, 2])


# As many workers.


@pytest.mark.parametrize("name", ["momentum", "adamw", "rmsprop", "nadam"])
def test_goes_on_with_the_same_bits(three: list[gossip_ranks.Rank], name: str) -> None:
    found = [rank[name] for rank in gossip_ranks.results(three, "resumed")]
    for rank in found:
        straight, resumed = rank["ends"]
        assert straight == resumed
        assert straight["steps"] == 9
    if name != "nadam":  # which is averaged
        assert found[0]["ends"][0]["parameters"] != found[1]["ends"][0]["parameters"]


def test_only_the_last_save_is_left(three: list[gossip_ranks.Rank]) -> None:
    files = gossip_ranks.results(three, "resumed")[0]["momentum"]["files"]
    workers = [f"worker-{rank:05d}.safetensors" for rank in range(3)]
    assert files == ["latest", "step-00000005", "manifest.json", *workers]


def test_groups_that_save_to_one_folder_leave_each_other_alone(
    three: list[gossip_ranks.Rank],
) -> None:
    found = gossip_ranks.results(three, "two_groups")
    for before, after in found:
        assert before == after
    assert found[0][0]["parameters"] != found[1][0]["parameters"]


def test_dtypes_strides_and_hidden_buffers_come_back(three: list[gossip_ranks.Rank]) -> None:
    for before, after in gossip_ranks.results(three, "odd_tensors"):
        assert after == before
        dtypes = {dtype for dtype, _, _ in before[0]}
        assert {"torch.bfloat16", "torch.complex64", "torch.float64"} <= dtypes
        assert [60, 1, 15, 3] in [stride for _, stride, _ in before[0]]  # channels last


def test_an_optimizer_may_have_its_parameters_in_another_order(
    three: list[gossip_ranks.Rank],
) -> None:
    for rank in gossip_ranks.results(three, "reordered"):
        straight, resumed = rank["ends"]
        assert straight == resumed
        assert rank["settings"][0] == rank["settings"][1]
        assert "no group of the parameters 0.bias, 2.weight" in rank["regrouped"]["message"]
        assert "with 2 groups of parameters, got one with 1" in rank["fewer"]["message"]


# Another number of workers.


def mean_of(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).mean(0)


def near(found: Any, expected: torch.Tensor) -> bool:
    return torch.allclose(torch.tensor(found, dtype=torch.float64), expected, NEAR, NEAR / 100)


@pytest.mark.parametrize("name", ["momentum", "adamw", "rmsprop"])
@pytest.mark.parametrize("workers", [1, 2])
def test_fewer_workers_start_from_the_mean(
    three: list[gossip_ranks.Rank], name: str, workers: int
) -> None:
    found = [rank[name] for rank in gossip_ranks.results(three, "resized")]
    saved = [rank["saved"] for rank in found]
    loaded = [rank["loaded"][str(workers)] for rank in found[:workers]]
    assert loaded == [loaded[0]] * workers
    assert near(loaded[0]["parameters"], mean_of([rank["parameters"] for rank in saved]))
    assert saved[0]["parameters"] != saved[1]["parameters"]
    for key, value in loaded[0]["buffers"].items():
        of_ranks = [rank["buffers"][key] for rank in saved]
        whole = key in ("counts", "norm.num_batches_tracked")
        assert value == of_ranks[0] if whole else near(value, mean_of(of_ranks))
    assert [rank["buffers"]["counts"][0] for rank in saved] == [0, 1, 2]
    for i, entry in enumerate(loaded[0]["state"]):
        for key, value in entry.items():
            of_ranks = [rank["state"][i][key] for rank in saved]
            assert value == max(of_ranks) if key == "step" else near(value, mean_of(of_ranks))
            assert key != "step" or of_ranks == [[2], [3], [3]]


def test_more_workers_start_from_what_one_has_saved(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "grown")
    saved, is_fused_alone = found[0][:2]
    assert not is_fused_alone
    for rank in found:
        apart, loaded, is_fused = rank[-3:]
        assert apart < NEAR  # the mean of three equal numbers is rounded
        assert loaded == saved
        assert is_fused


# What cannot be loaded.

SAID = {
    "truncated": ("IoError", "rank 1", "worker-00001", "is truncated, got", "no earlier"),
    "flipped": ("IoError", "rank 1", "worker-00001", "its checksum is not", "no earlier"),
    "missing": ("IoError", "file of worker 1 is missing", "copy it from the host"),
    "manifest": ("IoError", "manifest.json", "is altered", "no earlier"),
    "no_manifest": ("IoError", "could not find a checkpoint", "manifest.json"),
    "model": (
        "ValueError",
        "another model",
        "'0.weight' [7, 5]",
        "got parameter '0.weight' [8, 5]",
    ),
    "optimizer": ("ValueError", "it has optimizer adam, got optimizer sgd"),
}


@pytest.mark.parametrize("case", SAID)
def test_refused_on_all_ranks_and_nothing_changed(
    three: list[gossip_ranks.Rank], case: str
) -> None:
    for rank in gossip_ranks.results(three, "refused"):
        found = rank[case]
        assert found["type"] == SAID[case][0]
        missing = [words for words in SAID[case][1:] if words not in found["message"]]
        assert not missing, found["message"]
        assert found["message"].count("[Gossip]") == 1
        assert found["unchanged"]


def test_a_refusal_costs_nothing(three: list[gossip_ranks.Rank]) -> None:
    assert [rank["steps"] for rank in gossip_ranks.results(three, "refused")] == [3] * 3


def test_what_cannot_be_saved_is_said_and_leaves_nothing(three: list[gossip_ranks.Rank]) -> None:
    for rank in gossip_ranks.results(three, "refused"):
        assert rank["unsavable"]["type"] == "ValueError"
        assert "got object at group/0/note" in rank["unsavable"]["message"]
        assert rank["left"] == []
        assert "save() inside averaged()" in rank["averaged"]["message"]


def test_what_only_one_rank_cannot_read_is_told_to_all(three: list[gossip_ranks.Rank]) -> None:
    for rank in gossip_ranks.results(three, "hollow"):
        assert rank["type"] == "IoError"
        assert "has no such tensor, got 'parameter/0.weight'" in rank["message"]
        assert rank["took_s"] < TIMEOUT_S / 2  # nobody waits


# Interrupted saves.


@pytest.mark.parametrize("case", ["begin", "write", "commit"])
def test_a_failed_save_leaves_the_former_checkpoint(
    three: list[gossip_ranks.Rank], case: str
) -> None:
    for rank in gossip_ranks.results(three, "interrupted"):
        found = rank[case]
        assert found["type"] == "IoError"
        assert "disk full" in found["message"]
        assert found["same"]
        assert found["steps"] == 3
        assert found["left"] == ["latest", "step-00000003"]


def test_hosts_that_share_no_folder_go_on_from_what_all_have(
    three: list[gossip_ranks.Rank],
) -> None:
    found = gossip_ranks.results(three, "hosts_apart")
    assert [rank["type"] for rank in found] == ["IoError"] * 3
    assert [rank["latest"] for rank in found] == [5, 3, 3]  # the save stopped half-way
    assert all(rank["same"] for rank in found)
    first, second = ["worker-00000.safetensors"], [f"worker-0000{i}.safetensors" for i in (1, 2)]
    assert [rank["files"] for rank in found] == [
        ["latest", "step-00000003", "manifest.json", *own] for own in (first, second, second)
    ]
    assert [rank["again"] for rank in found] == [True] * 3


def test_the_newest_are_kept(three: list[gossip_ranks.Rank]) -> None:
    found = gossip_ranks.results(three, "kept")
    assert [rank["kept"] for rank in found] == [["latest", "step-00000002", "step-00000003"]] * 3
    assert [rank["loaded"] for rank in found] == [3] * 3
    assert [rank["earlier"] for rank in found] == [2] * 3  # by its own path
    for rank in found:
        assert rank["damaged"]["type"] == "IoError"
        assert "use the earlier checkpoint step-00000002" in rank["damaged"]["message"]
        assert "keep at least 1" in rank["refused"]["message"]
        assert "rank 0 has keep 1, got keep 2 on rank 1" in rank["unequal"]["message"]
        assert rank["after"] == ["latest", "step-00000004"]


def test_a_rank_killed_while_saving_leaves_the_former_checkpoint(folder: Path) -> None:
    first = gossip_ranks.run(["killed_while_saving"], [3])
    assert [rank.code for rank in first] == [0, 0, -9]
    killed = gossip_ranks.results(first[:2], "killed_while_saving")
    for found in killed:
        assert found["type"] == "TransportError"
        assert found["peer"] != 1  # rank 1 hears of rank 2, or of rank 0, which has heard of it
        assert "this was in save()" in found["message"]
    after = gossip_ranks.results(gossip_ranks.run(["after_the_kill"], [3]), "after_the_kill")
    assert [rank["loaded"] for rank in after[:2]] == [found["saved"] for found in killed]
    assert [rank["steps"] for rank in after] == [3] * 3
    workers = [f"worker-{rank:05d}.safetensors" for rank in range(3)]
    files = ["latest", "step-00000003", "manifest.json", *workers]
    assert [rank["files"] for rank in after] == [files] * 3  # and the debris is gone


# A worker alone.


@pytest.mark.parametrize("pattern", ["cwa", "atc", "allreduce"])
def test_a_worker_alone(tmp_path: Path, pattern: str) -> None:
    model, plain = pair()
    optimizer, reference = Adam(model.parameters(), lr=0.01), Adam(plain.parameters(), lr=0.01)
    with Gossip(model, optimizer, pattern=pattern) as gossip:
        train(model, optimizer, range(4))
        gossip.save(tmp_path)
    second = mlp(seed=4)
    second_optimizer = Adam(second.parameters(), lr=0.5)
    with Gossip(second, second_optimizer, pattern=pattern) as gossip:
        gossip.load(tmp_path)
        assert second_optimizer.param_groups[0]["lr"] == 0.01
        train(second, second_optimizer, range(4, 9))
        assert gossip.stats()["steps"] == 9
    train(plain, reference, range(9))
    assert difference(second, plain) < NEAR
    assert same_state(second_optimizer, reference, within=1e-5)


HOLDER = """
import sys
sys.path[:0] = [sys.argv[1]]
from gossamer import _core
lock = _core.FolderLock(sys.argv[2], "a job of the test")
print("held", flush=True)
sys.stdin.read()
"""


def test_another_job_in_the_folder_is_told(tmp_path: Path) -> None:
    model = mlp()
    package = str(Path(gossamer.__file__).parents[1])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, package, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    with Gossip(model, SGD(model.parameters(), lr=0.1)) as gossip:
        with pytest.raises(
            gossamer.IoError, match=r"another job uses .*a job of the test, process"
        ):
            gossip.save(tmp_path)
        holder.kill()
        holder.communicate()
        gossip.save(tmp_path)
        gossip.save(tmp_path)
    with Gossip(model, SGD(model.parameters(), lr=0.1)) as gossip:
        gossip.load(tmp_path)


def test_nested_state_and_settings(tmp_path: Path) -> None:
    """LBFGS keeps lists of tensors, numbers and None."""

    def trained(of: torch.nn.Module, its: LBFGS) -> None:
        def closure() -> torch.Tensor:
            its.zero_grad()
            loss = of(torch.ones(2, 5)).square().sum()
            loss.backward()
            return loss

        its.step(closure)

    models = [mlp(seed) for seed in (0, 5)]
    optimizers = [LBFGS(model.parameters(), lr=0.01, max_iter=3) for model in models]
    for model, optimizer, act in zip(models, optimizers, ("save", "load"), strict=True):
        with Gossip(model, optimizer) as gossip:
            if act == "save":
                trained(model, optimizer)
            getattr(gossip, act)(tmp_path)
            trained(model, optimizer)
    assert difference(models[1], models[0]) == 0


def pickles(module: ast.Module) -> bool:
    """Whether code of it may, by torch or by itself. Docstrings may say what users do."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import) and any("pickle" in each.name for each in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and "pickle" in (node.module or ""):
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "torch.save"):
            return True
    return False


def test_files_are_json_and_safetensors_and_nothing_is_pickled(tmp_path: Path) -> None:
    model = mlp()
    with Gossip(model, SGD(model.parameters(), lr=0.1, momentum=0.9)) as gossip:
        train(model, gossip._optimizers[0], range(1))
        gossip.save(tmp_path)
    assert (tmp_path / "latest").read_text() == "step-00000001\n"
    checkpoint = tmp_path / "step-00000001"
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    assert [manifest[key] for key in ("version", "workers", "optimizer", "pattern", "groups")] == [
        *(2, 1, "momentum", "cwa", 1)
    ]
    line = _core.model_line("parameter", "0.weight", [7, 5], "float32")
    assert manifest["model"][0] == line == "parameter '0.weight' [7, 5] float32"
    named = {file["name"] for file in manifest["files"]}
    assert {path.name for path in checkpoint.iterdir()} == named | {"manifest.json"}
    with safe_open(checkpoint / named.pop(), framework="pt") as file:
        assert torch.equal(file.get_tensor("parameter/0.weight"), model[0].weight)
        assert file.get_tensor("optimizer/0.weight/momentum_buffer").shape == (7, 5)
    sources = [path.read_text() for path in (ROOT / "python").rglob("*.py")]
    assert len(sources) > 10
    assert not any(pickles(ast.parse(source)) for source in sources)


WITHOUT_THEM = """
import sys
sys.modules.update(dict.fromkeys(["numpy", "safetensors"]))  # importing them fails
import torch, gossamer
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.AdamW(model.parameters())
with gossamer.Gossip(model, optimizer) as gossip:
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    gossip.save(sys.argv[1])
    gossip.load(sys.argv[1])
    print(gossip.stats()["steps"])
"""


def test_neither_numpy_nor_the_package_safetensors_is_needed(tmp_path: Path) -> None:
    done = run(["-W", "ignore", "-c", WITHOUT_THEM, str(tmp_path)])
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_another_format_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "another"}')
    model = mlp()
    with (
        Gossip(model, SGD(model.parameters())) as gossip,
        pytest.raises(gossamer.IoError, match="its checksum is not that of its text"),
    ):
        gossip.load(tmp_path)
