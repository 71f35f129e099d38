"""Broken traces: whatever the bytes of a file, there is a page, or one line that names the file.

GOSSAMER_FUZZ_SECONDS=600 makes it go on for ten minutes.
"""

import gzip
import json
import math
import os
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_runs import make_run, trace_events

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from gossamer import report
from gossamer.report import compare, errors, page, run

SEED = 17
WISH_S = float(os.environ.get("GOSSAMER_FUZZ_SECONDS", "0"))
ROUNDS = 200
ROUNDS_PER_PAGE = 30  # a page takes a second
NAME = "trace.json.gz"
SOUND = json.dumps({"traceEvents": trace_events(1.0), "displayTimeUnit": "ms"})
PACKED = gzip.compress(SOUND.encode())
PIECES = (
    *("{", "}", "[", "]", ",", ":", '"', "\\", "null", "true", "-", "[" * 2000, '{"a":' * 2000),
    *("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1" * 400, "9" * 5000, "1e-400", "0.1"),
    *('"ph": "X"', '"ph": "M"', '"ts": 9e14', '"dur": 1e15', '"pid": 0', '"tid": []', '"args": 3'),
    *("worker 99999, host 99999", "worker 0, host 0", "99999 to 0", "0 to 0", "\\ud800", "\\u0000"),
    *("\ufeff", "\N{SNOWMAN}", "\N{ARABIC-INDIC DIGIT ONE}", "backward", "exchange", "1 to 70000"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, [], {}, "", -1, 0, 1, 0.5, 65536, 70000, 2**53, 2**53 + 1, 10**400, math.nan),
    *(1e15, 9e14, -9e14, 1e300, -1e300, 1e-300, math.inf, "1", "9" * 30, "X", "M", "B", "i"),
    *("worker 3, host 1", "worker 99999, host 99999", "worker 7, host 0", "links", "2 to 99999"),
    *("forward", "backward", "update", "wait", "exchange", "process_name", "thread_name"),
)


def odd_events(rng: random.Random) -> str:
    """JSON as it should be, of events as they should not."""
    events = json.loads(SOUND)["traceEvents"]
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(events))
        event = dict(events[at])
        inner = event.get("args", {})
        part = rng.choice([event, inner] if isinstance(inner, dict) else [event])
        kind = rng.randrange(5)
        if kind == 0:
            part.pop(rng.choice(list(part) or ["none"]), None)
        elif kind == 1:
            events.insert(rng.randrange(len(events)), event)
        elif kind == 2:
            del events[at : at + rng.randint(1, 30)]
        else:
            part[rng.choice(list(part) or ["name"])] = rng.choice(VALUES)
        events[min(at, len(events) - 1)] = event
    return json.dumps({"traceEvents": events})


def broken_text(rng: random.Random) -> str:
    text = SOUND
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        length = min(rng.choice((1, 3, 20, 300)), len(text) - at)
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at] + rng.choice(PIECES) + text[at + length :]
        elif kind == 3:
            text = text[:at] + text[at : at + length] + text[at:]
        else:
            text = text[:at]
    return text


def broken_bytes(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + rng.randbytes(rng.choice((1, 8, 300))) + data[at:]
        else:
            data += data[at : at + 1000]
    return data


def broken(rng: random.Random) -> bytes:
    """Bytes for a trace file: broken inside or outside of what packs it."""
    kind = rng.randrange(6)
    if kind < 3:
        return gzip.compress(odd_events(rng).encode(), 1)
    if kind == 3:
        return gzip.compress(broken_text(rng).encode(), 1)
    return broken_bytes(rng, PACKED if kind == 4 else SOUND.encode())


def try_report(folder: Path, with_page: bool) -> str:
    """The complaint; empty where there is none."""
    try:
        comparison = compare.compare(run.read_runs([folder]))
        page.values(comparison)
        if with_page:
            page.render(comparison, "")
    except errors.ReportError as error:
        return str(error)
    return ""


def test_every_file_makes_a_page_or_one_line(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    rng = random.Random(SEED)
    counts: Counter[str] = Counter()
    end = time.monotonic() + WISH_S
    while counts["all"] < ROUNDS or time.monotonic() < end:
        data = broken(rng)
        (folder / NAME).write_bytes(data)
        counts["all"] += 1
        try:
            said = try_report(folder, with_page=counts["read"] % ROUNDS_PER_PAGE == 3)
            assert not said or (said.startswith("[report] ") and NAME in said), said
            assert len(said.splitlines()) <= 1, said
            counts["refused" if said else "read"] += 1
        except Exception as error:
            kept = Path(os.environ.get("TMPDIR", "/tmp")) / "report_fuzz_failure"
            kept.write_bytes(data)
            raise AssertionError(f"seed {SEED}, round {counts['all']}: see {kept}") from error
    print(dict(counts))
    assert counts["refused"] > ROUNDS / 5
    assert counts["read"] > ROUNDS / 10


def test_a_file_that_is_cut_anywhere_is_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    packed, text = gzip.compress(SOUND.encode()), SOUND.encode()
    for whole in (packed, text):
        cuts = [*range(40), *range(40, len(whole), len(whole) // 20), *range(-30, 0)]
        for cut in cuts:
            (folder / NAME).write_bytes(whole[:cut])
            said = try_report(folder, with_page=False)
            assert NAME in said, (cut, said)


BOMBS: dict[str, Callable[[], Any]] = {
    "white": lambda: (b" " * (1 << 20) for _ in range(200)),
    "nested": lambda: (b"[" * (1 << 20) for _ in range(200)),
    "nested objects": lambda: (b'{"a":' * (1 << 18) for _ in range(200)),
    "one long word": lambda: (b'[{"ph":"', *(b"a" * (1 << 20) for _ in range(200))),
    "one long list": lambda: (b'{"x":[0', *(b",[]" * (1 << 18) for _ in range(200))),
    "empty events": lambda: (b'[{"ph":"i"}', *(b',{"ph":"i"}' * (1 << 16) for _ in range(200))),
    "unknown keys": lambda: (b"{", *(b'"a":{},' * (1 << 17) for _ in range(200))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_small_file_unfolds_to_costs_little(
    name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(report.trace, "LIMIT_BYTES", 8 << 20)
    monkeypatch.setattr(report.events, "_MOST_VALUES", 10_000)
    folder = make_run(tmp_path / "run", "cwa", 4.0)
    with gzip.open(folder / NAME, "wb", compresslevel=1) as file:
        for piece in BOMBS[name]():
            file.write(piece)
    tracemalloc.start()
    try:
        said = try_report(folder, with_page=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert NAME in said
    assert peak < 48 << 20
