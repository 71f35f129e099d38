"""The emulated cluster that runs train on, one process per worker, where [time] has a `rate`."""

import contextlib
import os
import sys
from collections.abc import Iterator

from grid import ROOT, Experiment, ExperimentError

sys.path.append(str(ROOT / "tools"))

import cluster as emulated

PROGRAM = "tools/cluster.py"


def hosts_of(experiment: Experiment) -> str:
    """As tools/cluster.py reads them."""
    each = str(experiment.recipe["per_host"])
    return each if "," in each else f"{experiment.recipe['hosts']}x{each}"


def reason_against(experiment: Experiment) -> str:
    """Why this machine cannot have the experiment's links; empty if it can, or needs none."""
    return emulated.missing_rights() if "rate" in experiment.time else ""


@contextlib.contextmanager
def made(experiment: Experiment) -> Iterator[list[str]]:
    """The words that start a program on every worker of the cluster; none without a rate."""
    if "rate" not in experiment.time:
        yield []
        return
    try:
        hosts = emulated.parse_hosts(hosts_of(experiment))
        rates = emulated.parse_rates(str(experiment.time["rate"]), len(hosts))
        with emulated.running(emulated.Cluster(f"x{os.getpid()}", hosts, rates)) as cluster:
            yield [sys.executable, str(ROOT / PROGRAM), "run", cluster.name, "--"]
    except emulated.ClusterError as error:
        raise ExperimentError(f"{experiment.name}: {error}") from error


def commands(experiment: Experiment, train: str) -> list[str]:
    """What a reader types instead of `train`."""
    if "rate" not in experiment.time:
        return [train]
    rate = experiment.time["rate"]
    return [
        f"{PROGRAM} up links --hosts {hosts_of(experiment)} --rate {rate}",
        f"{PROGRAM} run links -- {train}",
        f"{PROGRAM} down links",
    ]
