"""Schedules from Python are those of the command line, whatever modifies them."""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

import gossamer

COMMAND = Path(__file__).parents[2] / "build" / "bin" / "gossamer"
WORKERS = 6


def rounds_of_the_command(words: list[str]) -> list[list[list[float]]]:
    command = [str(COMMAND), "topology", *words, "--hosts", str(WORKERS), "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    matrices = []
    for entries in (a_round["edges"] for a_round in found["rounds"]):
        matrix = [[0.0] * WORKERS for _ in range(WORKERS)]
        for i, j, weight in entries:
            matrix[i][j] = weight
        matrices.append(matrix)
    return matrices


@pytest.mark.parametrize("topology", ["ring", "exponential", "one_peer_exponential"])
def test_modifiers_apply_in_one_order(topology: str) -> None:
    for lazy, rounds, local, average in itertools.product([False, True], [1, 2], [1, 2], [0, 3, 4]):
        words = [topology, *(["--lazy"] if lazy else [])]
        words += ["--rounds-per-step", str(rounds), "--local-steps", str(local)]
        words += ["--global-average", str(average)] if average else []
        expected = rounds_of_the_command(words)
        schedule = gossamer.make_schedule(
            topology,
            [1] * WORKERS,
            lazy=lazy,
            rounds_per_step=rounds,
            local_steps=local,
            global_average_every=average,
        )
        name = f"{topology}{':lazy' if lazy else ''}:rounds={rounds}:local={local}"
        name += f":average={average}" if average else ""
        named = gossamer.Method(name).schedule([1] * WORKERS)
        for made in (schedule, named):
            assert made.period == len(expected), words
            for t, matrix in enumerate(expected):
                assert made.matrix(t) == matrix, (words, t)
