"""The picture of who was there, of a run in which workers were lost and came back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from report_runs import Page, write_recipe

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer import report
from gossamer.report import members
from gossamer.report.metrics import read_metrics
from gossamer.report.run import read_runs

STEPS = 30
GONE = {1: (10, 18), 3: (25, None)}  # last step before, first step after


def is_there(rank: int, step: int) -> bool:
    last, first = GONE.get(rank, (STEPS, None))
    return step <= last or (first is not None and step >= first)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four workers on a ring: 1 is lost and comes back, 3 is lost for good. Rank 2 waits 100 ms for
    each."""
    folder = tmp_path / "ring"
    folder.mkdir()
    write_recipe(folder, "cwa")
    for rank in range(4):
        lines: list[dict[str, Any]] = []
        for step in range(1, STEPS + 1):
            if not is_there(rank, step):
                continue
            lost = [other for other, (last, _) in GONE.items() if step == last + 1]
            waits = rank == 2 and bool(lost)
            line: dict[str, Any] = {
                "step": step,
                "step_ms": 100.0 if waits else 10.0,
                "loss": 3 - step / STEPS,
            }
            line |= {"lost": lost} if lost and rank in (0, 2) else {}
            line |= {"back": [1]} if step == 18 and rank in (0, 2) else {}
            line |= {"among": [0, 2, 3]} if step == 14 else {}
            lines.append(line)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"metrics.rank{rank}.jsonl").write_text(text)
    return folder


def test_stays_are_what_the_metrics_hold(run: Path) -> None:
    metrics = read_metrics(run)
    assert metrics is not None
    stays = members.stays_of(metrics)
    assert [(stay.rank, stay.first, stay.last) for stay in stays] == [
        (0, 1, 30),
        (1, 1, 10),
        (1, 18, 30),
        (2, 1, 30),
        (3, 1, 25),
    ]
    assert [stay.rank for stay in members.deaths(stays, STEPS)] == [1, 3]
    assert [stay.first for stay in members.returns(stays)] == [18]
    assert [(loss.step, loss.by, loss.rank) for loss in metrics.lost] == [
        *((11, 0, 1), (26, 0, 3)),
        *((11, 2, 1), (26, 2, 3)),
    ]


def test_the_page_draws_and_names_them(run: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "page.html"
    assert report.main([str(run), "--out", str(out), "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["runs"]
    assert said["lost"] == [{"worker": 1, "last_step": 10}, {"worker": 3, "last_step": 25}]
    assert said["back"] == [{"worker": 1, "first_step": 18}]
    assert said["anew"] == [{"step": 14, "workers": [0, 2, 3]}]
    assert said["workers"] == 4
    said_first = "ring: workers 1 and 3 were lost, 1 came back; 3 of 4 were there at the end."
    text = out.read_text()
    assert "Who was there" in text
    events = re.findall(r"<li>([^<]*)</li>", text)
    assert events == [
        "worker 1 did step 10 last, seen by 0 and 2",
        "after step 14 the topology is formed anew among 3 workers",
        "worker 1 is back from step 18 on",
        "worker 3 did step 25 last, seen by 0 and 2",
    ]
    assert "2 were lost, 1 came back; the median step takes 10.0" in text
    assert Page(text)
    header = text[text.index("<header>") : text.index("</header>")]
    remarks = re.findall(r'<p class="remark">([^<]*)</p>', header)
    assert remarks[0] == said_first


def test_without_a_loss_there_is_no_such_picture(run: Path, tmp_path: Path, capsys: Any) -> None:
    for path in run.glob("metrics.*"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        events = ("lost", "back", "among")
        kept = [{k: v for k, v in line.items() if k not in events} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    out = tmp_path / "page.html"
    assert report.main([str(run), "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["runs"][0]["lost"] == []
    assert "lost" not in " ".join(said["remarks"])
    assert "Who was there" not in out.read_text()


def rewritten(run: Path, change: Any) -> str:
    """The first remark of the page, with other lines of metrics."""
    for path in run.glob("metrics.*"):
        lines = [change(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines if line))
    return members.sentence(read_runs([run])[0])


def test_a_sentence_says_who_was_lost(run: Path, tmp_path: Path) -> None:
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text(text.replace("[algorithm]", '[algorithm]\nlost = "go_on"'))
    path = run / "metrics.rank1.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line["step"] != 20))
    assert rewritten(run, dict) == (
        "ring: workers 1 and 3 were lost (3 times in all), 2 came back; 3 of 4 were there at the "
        "end."
    )
    path.unlink()
    assert rewritten(run, dict) == (
        "ring: worker 3 was lost, none came back; 2 of 3 were there at the end."
    )
    (run / "metrics.rank3.jsonl").unlink()
    assert "no worker ended early, but some did not hear" in rewritten(run, dict)
    assert rewritten(run, lambda line: {**line, "lost": []}) == "ring: no worker was lost."
    (run / "run.toml").write_text(text)
    assert rewritten(run, dict) == ""


def test_lost_that_is_no_list_of_ranks_is_named(run: Path, tmp_path: Path, capsys: Any) -> None:
    path = run / "metrics.rank0.jsonl"
    path.write_text(path.read_text().replace('"lost": [1]', '"lost": ["1"]'))
    assert report.main([str(run), "--out", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert "line 11" in said
    assert "lost is not a list of ranks" in said
