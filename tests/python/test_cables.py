"""Hosts that are cabled to their neighbours besides a slow switch: routes put each edge of the ring
on its cable. The commands are those of docs/clusters.md."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import cluster as emulated
from package_runs import with_package

REASON = emulated.missing_rights()
HOSTS = 4
STEPS = 40
PARAMETERS = 250_000
LIMIT_S = 120

TRAIN = f"""
import torch, torch.distributed as dist
import gossamer
dist.init_process_group("gloo")
model = torch.nn.Linear({PARAMETERS // 1000}, 1000, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gossip = gossamer.Gossip(model, optimizer, topology="ring")
for _ in range({STEPS}):
    optimizer.zero_grad()
    model(torch.randn(1, {PARAMETERS // 1000})).square().mean().backward()
    optimizer.step()
gossip.close()
dist.destroy_process_group()
"""


def namespaced(cluster: emulated.Cluster, number: int, *words: str) -> str:
    command = ["ip", "netns", "exec", cluster.host(number), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def cables(cluster: emulated.Cluster) -> None:
    """From each host to the next: `right` at the former, `left` at the latter."""
    for number in range(HOSTS):
        following = (number + 1) % HOSTS
        here, there = cluster.host(number), cluster.host(following)
        made = ("type", "veth", "peer", "name", "left", "netns", there)
        emulated._ip(here, "link", "add", "right", *made)


def documented_commands() -> list[str]:
    """Those of one host, as the page has them."""
    page = (ROOT / "docs/clusters.md").read_text()
    section = page.split("## What if hosts are cabled to each other?")[1].split("\n## ")[0]
    block = re.search(r"```bash\n(.*?)```", section, re.DOTALL)
    assert block
    return [line.split("#")[0].strip() for line in block[1].splitlines()]


def route_over_cables(cluster: emulated.Cluster) -> None:
    """The page's host is the second one of the ring, 10.77.0.2, with cables to .1 and .3."""
    for number in range(HOSTS):
        for command in documented_commands():
            found = re.split(r"10\.77\.0\.(\d)", command)
            hosts = [cluster.address((number + int(n) - 2) % HOSTS) for n in found[1::2]]
            words = [word for pair in zip(found[::2], [*hosts, ""], strict=True) for word in pair]
            namespaced(cluster, number, *"".join(words).split())


def sent(cluster: emulated.Cluster, number: int) -> dict[str, int]:
    """Bytes by interface."""
    found = json.loads(namespaced(cluster, number, "ip", "-j", "-s", "link", "show"))
    return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in found}


@pytest.fixture
def cluster() -> Iterator[emulated.Cluster]:
    made = emulated.Cluster(f"c{os.getpid()}", (1,) * HOSTS, (0.0,) * HOSTS)
    with emulated.running(made):
        yield made


@pytest.mark.skipif(bool(REASON), reason=f"no emulated cluster: {REASON}")
def test_each_edge_of_a_ring_goes_over_its_cable(cluster: emulated.Cluster) -> None:
    cables(cluster)
    route_over_cables(cluster)
    processes = emulated.start(cluster, [sys.executable, "-c", TRAIN], extra=with_package({}))
    assert emulated.finish(processes, LIMIT_S) == [0] * HOSTS
    model = PARAMETERS * 4  # bytes, which a worker sends to each neighbour in each step
    for number in range(HOSTS):
        bytes_of = sent(cluster, number)
        assert bytes_of["left"] > STEPS * model
        assert bytes_of["right"] > STEPS * model
        assert bytes_of[emulated.LINK] < 1.5 * model  # the parameters of rank 0 at the start
