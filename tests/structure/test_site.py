"""The documentation as a site: tools/site.py."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the sites of two versions. That no link is broken is checked as they are made."""
    folder = tmp_path_factory.mktemp("site")
    for version in ("0.9.0", "0.10.0"):
        command = [sys.executable, "tools/site.py", "--out", str(folder), "--version", version]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_repository_is_there(out: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        page = re.sub("README$", "index", name.removesuffix(".md")) + ".html"
        assert (out / "0.10.0" / page).is_file(), page


def test_menus_lead_to_every_guide(out: Path) -> None:
    start = (out / "0.10.0" / "index.html").read_text()
    for guide in (ROOT / "docs").glob("*.md"):
        assert f'href="docs/{guide.stem}.html' in start, f"docs/site/mkdocs.yml lacks {guide.name}"


def test_words_are_found_without_a_server(out: Path) -> None:
    index = (out / "0.10.0" / "search.js").read_text()
    found = json.loads(index[index.index("{") : index.rindex("}") + 1])["items"]
    assert any(item["location"] == "docs/lost-workers.html" for item in found)
    shim = (ROOT / "docs" / "site" / "frame_worker.js").name
    page = (out / "0.10.0" / "docs" / "decisions" / "wire.html").read_text()
    assert f'src="../../assets/{shim}"' in page
    assert (out / "0.10.0" / "assets" / shim).is_file()


def test_versions_are_listed_newest_first(out: Path) -> None:
    rows = json.loads((out / "versions.json").read_text())
    assert [row["version"] for row in rows] == ["0.10.0", "0.9.0"]
