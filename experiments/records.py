"""The results: one JSON object per run and line, in a file per experiment."""

import json
from pathlib import Path

from grid import ExperimentError, key_of
from plan import Record


def read(path: Path) -> dict[str, Record]:
    """All records by key; of two with the same key the later one."""
    if not path.exists():
        return {}
    found: dict[str, Record] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            record = json.loads(line)
            found[record_key(record)] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"{path.name}:{number} is no result ({error!r}); delete the line"
            ) from error
    return found


def record_key(record: Record) -> str:
    return key_of(
        record["case"],
        record["method"],
        record["topology"],
        record["seed"],
        record["settings"],
        record["recipe_hash"],
    )


def append(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
