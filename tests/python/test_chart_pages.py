"""Figures as files: the page, and the command that writes it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer.report import chart_pages, chart_values, charts


def named(name: str) -> dict[str, Any]:
    return {"title": "T", "series": [{"name": name, "x": [0, 1], "y": [0, 1]}]}


def test_the_page_has_contents_pictures_and_tables() -> None:
    name = "ring vs torus"
    figures = chart_values.figures_of(
        [
            {
                "figure": name,
                "title": "Ring & torus",
                "text": "One.\n\nTwo <three>.",
                "charts": [named("ring"), named("torus")],
            },
            {
                "figure": name,
                "header": ["topology", "steps"],
                "rows": [["ring", "1.5"], ["a"]],
            },
        ]
    )
    text = chart_pages.page("A & b", figures)
    assert "<title>A &amp; b</title>" in text
    assert "<p>One.</p>\n<p>Two &lt;three&gt;.</p>" in text
    assert re.search(r'<td class="word">ring</td><td>1\.5</td>', text)
    assert re.search(r'<td class="word">a</td><td></td>', text)
    assert text.count('role="img"') == 2, "one per chart: a phone shows one below the other"
    links, anchors = re.findall('<a href="#(.*?)"', text), re.findall('section id="(.*?)"', text)
    assert links == anchors == ["ring-vs-torus", "ring-vs-torus-2"]
    assert "://" not in text
    assert "Content-Security-Policy" in text
    assert len(re.findall(r'\bid="', text)) == len(set(re.findall(r'\bid="(.*?)"', text)))
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert used <= set(re.findall(r"--([\w-]+):", text)), "every colour is in the style sheet"


def test_the_command_writes_what_it_is_told(tmp_path: Path, capsys: Any) -> None:
    given = tmp_path / "figures.json"
    given.write_text(json.dumps([{"figure": name, "charts": [named("a")]} for name in "ab"]))
    page = tmp_path / "page.html"
    assert charts.main([str(given), "--folder", str(tmp_path), "--page", str(page)]) == 0
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()
    assert capsys.readouterr().err.splitlines() == [
        f"wrote {path}" for path in (tmp_path / "a.svg", tmp_path / "b.svg", page)
    ]
    assert charts.main([str(given), "--svg", str(page), "--place", "lab run"]) == 2
    assert capsys.readouterr().err == "[lab run] --svg is for one figure, got 2 figures\n"
    assert charts.main([str(given), "--pdf", str(page)]) == 2
    assert capsys.readouterr().err == "[charts] --pdf is for one figure, got 2 figures\n"
    nowhere = str(tmp_path / "none" / "a.html")
    assert charts.main([str(given), "--page", nowhere]) == 1
    assert "[charts] cannot write the picture: No such file" in capsys.readouterr().err
    given.write_text("{")
    assert charts.main([str(given)]) == 2
    assert capsys.readouterr().err.startswith("[charts] the figures are not JSON")
