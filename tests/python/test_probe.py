"""gossamer.probe(): what is measured decides nothing here; see gossamer/probe for that."""

from pathlib import Path
from typing import Any

import gossip_ranks
import pytest
import tomllib
from gossip_support import batch, loss_of, mlp, pair
from torch.optim import SGD

import gossamer

HOSTS = [2, 1]


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder


@pytest.fixture(scope="module")
def ranks(folder: Path) -> list[gossip_ranks.Rank]:
    return gossip_ranks.run(["probed", "probed_devices", "misprobed"], HOSTS)


@pytest.mark.parametrize("kind", ["plain", "ddp"])
def test_all_ranks_find_the_same_and_keep_what_they_had(
    ranks: list[gossip_ranks.Rank], folder: Path, kind: str
) -> None:
    found = [rank[kind] for rank in gossip_ranks.results(ranks, "probed")]
    for each in found:
        assert all(each["same"]) and len(each["same"]) > 10
        assert each["calls"] == found[0]["calls"] >= 8
        assert each["cluster"] == found[0]["cluster"]
        assert each["workload"] == found[0]["workload"]
    cluster, workload = folder / kind / "cluster.toml", folder / kind / "workload.toml"
    assert cluster.read_text() == found[0]["cluster"]
    assert workload.read_text() == found[0]["workload"]
    hosts = tomllib.loads(cluster.read_text())["hosts"]
    assert [host["workers"] for host in hosts] == HOSTS
    parameters = sum(p.numel() for p in mlp().parameters())
    written = tomllib.loads(workload.read_text())
    assert written["parameters"] == parameters
    assert 0 < written.get("ddp_link_share", 1) <= 1
    assert gossamer.rank_methods(str(cluster), str(workload)).recommended


def test_a_host_with_devices_has_the_rate_of_their_copies(ranks: list[gossip_ranks.Rank]) -> None:
    for found in gossip_ranks.results(ranks, "probed_devices"):
        with_devices, without = tomllib.loads(found)["hosts"]
        assert str(with_devices["device_rate"]).endswith("bit/s")
        assert "device_latency" in with_devices
        assert not {"device_rate", "device_latency"} & set(without)


def test_mistakes_are_said_on_every_rank(ranks: list[gossip_ranks.Rank]) -> None:
    for said in gossip_ranks.results(ranks, "misprobed"):
        assert "ValueError" in str(said["nothing"])
        assert "[probe] the step gives no gradient" in str(said["nothing"])
        assert "the step does not call optimizer.step()" in str(said["no step"])
        assert "cannot write to the folder" in str(said["blocked"])
        assert "already belongs to a Gossip" in str(said["gossiping"])


def test_a_worker_alone_has_no_links(tmp_path: Path) -> None:
    model, twin = pair()
    optimizer = SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model, batch(1)).backward()
        optimizer.step()

    found = gossamer.probe(step, model, optimizer, seconds=0.01)
    host: dict[str, Any] = tomllib.loads(found.cluster)["hosts"][0]
    assert host["workers"] == 1 and "link_rate" not in host
    assert all(
        one.equal(other) for one, other in zip(model.parameters(), twin.parameters(), strict=True)
    )
