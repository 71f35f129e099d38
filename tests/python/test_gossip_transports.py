"""Several workers: the transport changes how bytes travel, and nothing else."""

import gossip_ranks
import pytest
from gossip_scenarios_transports import RUNS, TRANSPORTS

HOSTS = [2, 2]


@pytest.fixture(scope="module")
def four() -> list[dict]:
    return gossip_ranks.results(gossip_ranks.run(["transports"], HOSTS), "transports")


@pytest.mark.parametrize("transport", TRANSPORTS[1:])
@pytest.mark.parametrize("run", RUNS)
def test_every_transport_gives_the_same_bits(four: list[dict], run: str, transport: str) -> None:
    for found in four:
        net, other = found[f"{run} net"], found[f"{run} {transport}"]
        assert net["start"] == other["start"] == four[0][f"{run} net"]["start"]
        assert net["x"] == other["x"]
        assert net["mean"] == other["mean"]
        assert net["stats"]["edges"].keys() == other["stats"]["edges"].keys()
        for stats in (net["stats"], other["stats"]):
            assert min(stats["exposed_s"], stats["hidden_s"]) >= 0
            assert stats["exposed_s"] + stats["hidden_s"] > 0
    apart = [found[f"{run} net"]["x"] for found in four]
    assert (apart[0] == apart[1]) == (run in {"allreduce", "atc"})
