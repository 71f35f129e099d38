"""Arrows between the layers point up the list only."""

import re

import pytest
from layers import ARROWS, includes, violations
from project import ROOT, project_files, relative

THREADS = {"thread", "future", "pthread.h", "gossamer/base/parallel.h"}  # start some


def library_sources() -> dict[str, str]:
    files = [path for path in project_files(".h", ".cpp") if path.is_relative_to(ROOT / "gossamer")]
    return {relative(path): path.read_text() for path in files}


def test_no_include_breaks_the_arrows() -> None:
    assert violations(library_sources()) == []


def test_the_library_was_found() -> None:
    assert "gossamer/base/errors.h" in library_sources()


def test_arrows_point_to_lower_layers_only() -> None:
    order = list(ARROWS)
    for layer, used in ARROWS.items():
        assert all(order.index(other) < order.index(layer) for other in used), layer


def test_serial_layers_start_no_thread() -> None:
    """Their tests are not built for the thread sanitizer, which would have nothing to see."""
    build = (ROOT / "gossamer/CMakeLists.txt").read_text()
    serial = re.findall(r"gossamer_layer\(NAME (\w+) SERIAL ", build)
    assert serial
    for path, text in library_sources().items():
        if path.split("/")[1] in serial:
            assert not [header for _, header in includes(text) if header in THREADS], path


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("gossamer/base/a.h", "gossamer/graph/round.h"),
        ("gossamer/graph/topologies/ring.cpp", "gossamer/exchange/plan.h"),
        ("gossamer/transport/threads.cpp", "gossamer/graph/round.h"),
        ("gossamer/engine/engine.cpp", "gossamer/torch/modules/model.h"),
        ("gossamer/engine/engine_test.cpp", "gossamer/cli/cli.h"),
        ("gossamer/cli/topology.cpp", "gossamer/torch/modules/model.h"),
        ("gossamer/cli/topology.cpp", "torch/torch.h"),
        ("gossamer/cli/train_flags.cpp", "gossamer/train/run.h"),
        ("gossamer/recipe/spec.cpp", "gossamer/train/run.h"),
        ("gossamer/train/run.cpp", "gossamer/cli/page.h"),
        ("gossamer/algo/pass.cpp", "ATen/core/Tensor.h"),
        ("gossamer/base/a.h", "gossamer/nowhere/a.h"),
        ("gossamer/nowhere/a.h", "vector"),
    ],
)
def test_a_forbidden_include_is_found(path: str, header: str) -> None:
    text = f"#pragma once\n#include <vector>\n  #  include <{header}>\n"
    assert len(violations({path: text})) == 1


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("gossamer/graph/round.cpp", "gossamer/graph/round.h"),
        ("gossamer/exchange/plan.cpp", "gossamer/graph/round.h"),
        ("gossamer/torch/modules/model.cpp", "torch/torch.h"),
        ("gossamer/cli/train/main.cpp", "gossamer/torch/modules/model.h"),
        ("gossamer/cli/topology.cpp", "gossamer/engine/engine.h"),
        ("gossamer/base/toml.cpp", "toml++/toml.h"),
    ],
)
def test_an_allowed_include_is_not(path: str, header: str) -> None:
    assert violations({path: f'#include "{header}"\n'}) == []


def test_a_comment_is_not_an_include() -> None:
    assert violations({"gossamer/base/a.h": "// #include <torch/torch.h>\n"}) == []
