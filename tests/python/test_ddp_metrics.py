"""DdpMetrics: a script with DDP leaves the lines that `gossamer report` reads."""

import json
import math
from pathlib import Path

import pytest
import torch
from gossip_support import mlp, train

import gossamer
from gossamer import report


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.rank0.jsonl").read_text().splitlines()]


def trained(folder: Path) -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metrics = gossamer.DdpMetrics(optimizer, folder)
    for step in range(4):
        metrics.log(loss=torch.tensor(3.0 - step), samples=8)
        train(model, optimizer, [step])
    metrics.log_validation(val_loss=0.5)
    metrics.close()
    train(model, optimizer, [4])  # of which nobody is told
    metrics.close()


def test_a_step_is_a_line_and_a_validation_another(tmp_path: Path) -> None:
    trained(tmp_path)
    *steps, validated = lines(tmp_path)
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    assert [line["loss"] for line in steps] == [3.0, 2.0, 1.0, 0.0]
    for line in steps:
        assert line["lr"] == 0.1
        assert math.isclose(line["samples_per_s"], 8e3 / line["step_ms"])
    assert validated == {"step": 4, "val_loss": 0.5}


def test_a_run_that_goes_on_keeps_the_lines_before(tmp_path: Path) -> None:
    trained(tmp_path)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metrics = gossamer.DdpMetrics(optimizer, tmp_path)
    metrics.restart(2)
    train(model, optimizer, [0])
    metrics.close()
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_the_report_takes_it_for_all_reduce(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "mine")
    page = tmp_path / "report.html"
    assert report.main([str(tmp_path / "mine"), "--out", str(page), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["pattern"] == "ddp"
    assert found["steps"] == 4


def test_an_optimizer_is_asked_for() -> None:
    with pytest.raises(TypeError, match="DdpMetrics follows an optimizer of torch, got Sequential"):
        gossamer.DdpMetrics(mlp(), "folder")
