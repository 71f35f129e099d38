"""Makes a checkpoint of today of one that gossip.save wrote before there was one format::

    python -m gossamer.checkpoint.convert OLD NEW

OLD had ``manifest.json`` and a file per rank, in which everything of the optimizer was found by the
number of its parameter. Groups of ranks had a folder each in it: convert each of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sys
from pathlib import Path
from typing import Any

from gossamer import _core
from gossamer._core import IoError
from gossamer.base import files
from gossamer.checkpoint.worker_file import Content

_LARGEST_MANIFEST = 100_000_000
_IN_GROUP = re.compile(r"(parameter '(.*)' \[[\d, ]*\] \S+) in group (\d+)", re.DOTALL)

Manifest = dict[str, Any]


def convert(old: Path, new: Path) -> str:
    """The path of the new checkpoint in the folder ``new``. IoError for a file that is not what was
    saved, ValueError for what was never a checkpoint of that kind."""
    manifest = _read_manifest(old / "manifest.json")
    names = _Names(manifest["model"])
    step, attempt = int(manifest["step"]), secrets.token_hex(8)
    temporary, _ = _core.begin_checkpoint(str(new), step, attempt)
    try:
        written, pattern, groups = [], "", 0
        for rank, card in enumerate(manifest["files"]):
            content = names.renamed(_read_file(old / card["name"], card))
            pattern, groups = _pattern_of(content), len(content.document["groups"])
            written.append(content.write(temporary, rank))
        described = _core.Manifest(
            step=step,
            created="",
            optimizer=manifest["model"][0].removeprefix("optimizer "),
            pattern=pattern,
            model=names.lines,
            groups=groups,
            losses=[(int(at), float(loss)) for at, loss in manifest.get("losses", [])],
            files=written,
        )
        return _core.commit_checkpoint(temporary, str(new), described, [])
    except Exception:
        _core.abandon_checkpoint(temporary)
        raise


def _read_manifest(path: Path) -> Manifest:
    manifest = files.parse_json(files.read_bytes(path, _LARGEST_MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != "gossip checkpoint":
        raise ValueError(f"{path} is no manifest that gossip.save wrote before; give its folder")
    kept = {key: value for key, value in manifest.items() if key != "sha256"}
    if hashlib.sha256(json.dumps(kept).encode()).hexdigest() != manifest.get("sha256"):
        raise IoError(f"[{path}] is altered: its checksum is not that of its text; use a copy")
    return manifest


def _read_file(path: Path, card: dict[str, Any]) -> _core.TensorFile:
    digest = hashlib.sha256()
    with files.opened(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != card["sha256"]:
        raise IoError(f"[{path}] is altered: its checksum is not the manifest's; use a copy")
    return _core.TensorFile(str(path))


def _pattern_of(content: Content) -> str:
    keys = (key for key in content.tensors if key.startswith("pattern/"))
    return next(keys, "/").split("/")[1]


class _Names:
    """What the numbers of the parameters stood for: the manifest has them in their order."""

    def __init__(self, model: list[str]) -> None:
        self.lines: list[str] = []
        self.groups: list[list[str]] = []
        self._names: list[str] = []
        for line in model[1:]:
            found = _IN_GROUP.fullmatch(line)
            self.lines.append(found[1] if found else line.removeprefix("frozen "))
            if found:
                self._names.append(found[2])
                self.groups += [[] for _ in range(int(found[3]) + 1 - len(self.groups))]
                self.groups[int(found[3])].append(found[2])

    def renamed(self, file: _core.TensorFile) -> Content:
        """What a file holds, under the names of today."""
        document = files.parse_json(file.metadata["document"])
        content = Content({self._key(key): file.tensor(key) for key in file.keys()})  # noqa: SIM118
        content.document["complex"] = [self._key(key) for key in document["complex"]]
        content.document["optimizer"] = {
            self._names[int(i)]: self._packed(entry) for i, entry in document["state"].items()
        }
        groups = [*self.groups, *([] for _ in document["groups"])]  # some may have no parameters
        content.document["groups"] = [
            {"parameters": names, "settings": self._packed(settings)}
            for names, settings in zip(groups, document["groups"], strict=False)
        ]
        return content

    def _key(self, key: str) -> str:
        kind, _, rest = key.partition("/")
        if kind == "state":
            number, _, vector = rest.partition("/")
            return _core.optimizer_key(self._names[int(number)], vector)
        if kind == "sent":
            return _core.mixed_key(self._names[int(rest)])
        if kind == "pattern":
            pattern, vector, number = rest.split("/")
            return _core.pattern_key(pattern, vector, self._names[int(number)])
        return key

    def _packed(self, value: Any) -> Any:
        """The same with the new keys of its tensors."""
        if isinstance(value, list):
            return [self._packed(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            return {**value, "tensor": self._key(value["tensor"])}
        return {key: self._packed(each) for key, each in value.items()}


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments[:1] == ["--help"] else 2
    try:
        print(convert(Path(arguments[0]), Path(arguments[1])))
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        print(f"gossamer: {files.printable(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
