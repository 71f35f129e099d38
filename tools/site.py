"""Makes the documentation a site of pages that work from a folder, with a search of their own.

    .venv/bin/python tools/site.py --out build/site

Each version gets a folder, e.g. build/site/0.9.0. versions.json names those that are there, newest
first, and the pages show them where a web server serves the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "site"
CONFIG = SITE / "mkdocs.yml"
# What the pages would fetch to search without a server, and what they get in its place.
FETCHED, OWN = "https://unpkg.com/iframe-worker/shim", SITE / "frame_worker.js"
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
NOT_RUN = re.compile(r"^<!-- not run: .*?-->\n", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def version() -> str:
    found = re.search(r"project\(gossamer VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    if found is None:
        raise SystemExit("[site] CMakeLists.txt names no version; give one with --version")
    return found[1]


def pages() -> list[Path]:
    """The Markdown files of the repository, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(name) for name in listed.stdout.splitlines()]


def collect(into: Path) -> None:
    """Copies the pages, and the files that they link to."""
    for page in pages():
        text = NOT_RUN.sub("", (ROOT / page).read_text())
        target = into / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(LINK.sub(partial(_placed, page), text))
        for link in LINK.finditer(FENCE.sub("", text)):
            linked = (ROOT / page.parent / place(page, link[2])).resolve()
            if linked.suffix == ".md" or not linked.is_file():
                continue
            copy = into / linked.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(linked, copy)


def _placed(page: Path, link: re.Match[str]) -> str:
    return link[1] + place(page, link[2]) + link[3]


def place(page: Path, link: str) -> str:
    """A folder's page is its README."""
    linked = ROOT / page.parent / link
    return f"{link.rstrip('/')}/README.md" if (linked / "README.md").is_file() else link


def need_no_network(site: Path) -> None:
    """The pages work where nothing can be fetched."""
    shutil.copy(OWN, site / "assets")
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text().replace(FETCHED, f"{up}assets/{OWN.name}")
        if found := re.search(r"<(?:script|img|link)[^>]* (?:src|href)=\"https?://[^>]*>", text):
            raise SystemExit(f"[site] {page.relative_to(site)} would fetch {found[0]}")
        page.write_text(text)


def write_versions(out: Path) -> None:
    """The list that the pages' selector reads."""
    folders = [path.name for path in out.iterdir() if (path / "index.html").is_file()]
    newest_first = sorted(folders, key=lambda name: [*map(int, re.findall(r"\d+", name))])[::-1]
    rows = [{"version": name, "title": name, "aliases": []} for name in newest_first]
    (out / "versions.json").write_text(json.dumps(rows, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--version", default=version(), help="the folder's name in --out")
    args = parser.parse_args()
    target = args.out.resolve() / args.version
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(CONFIG, folder)
        collect(folder / "pages")
        command = ["zensical", "build", "--strict", "-f", str(folder / CONFIG.name)]
        done = subprocess.run([sys.executable, "-m", *command], env=os.environ | {"NO_COLOR": "1"})
        if done.returncode != 0:
            return done.returncode
        need_no_network(folder / "site")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "site", target)
    write_versions(args.out)
    print(f"[site] wrote {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
