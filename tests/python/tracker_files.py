"""Reads what trackers have written: as `(step, name): value`, and rows in their order."""

import json
import struct
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_BLOCK = 32768
_HEADER = 7


def rows_of_wandb(path: Path) -> list[Row]:
    """The rows of a .wandb file, which W&B writes offline: a log in LevelDB's form, of records."""
    from wandb.proto import wandb_internal_pb2

    rows = []
    for data in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            named = {item.key or "/".join(item.nested_key): item for item in record.history.item}
            row = {name: json.loads(item.value_json) for name, item in named.items()}
            rows.append({name: row[name] for name in row if not name.startswith("_")})
    return rows


def run_of_wandb(path: Path) -> Any:
    """What a .wandb file says of its run."""
    from wandb.proto import wandb_internal_pb2

    for data in _records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "run":
            return record.run
    raise AssertionError(f"no run in {path}")


def _records(content: bytes) -> list[bytes]:
    """Pieces of (crc, length, type) in blocks: a whole record is 1, its first piece 2, last 4."""
    found, pieces, place = [], b"", _HEADER
    while place + _HEADER <= len(content):
        left = _BLOCK - place % _BLOCK
        if left < _HEADER:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, place)
        place += _HEADER
        pieces += content[place : place + length]
        place += length
        if kind in (1, 4):
            found.append(pieces)
            pieces = b""
    return found


def scalars_of_tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """By tag, as TensorBoard shows them; texts are under their tag, too."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def texts_of_tensorboard(folder: Path) -> dict[str, list[tuple[int, str]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return {
        tag.removesuffix("/text_summary"): [
            (event.step, event.tensor_proto.string_val[0].decode()) for event in events.Tensors(tag)
        ]
        for tag in events.Tags()["tensors"]
    }
