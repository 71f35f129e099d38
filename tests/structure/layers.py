"""Which layer may include which, and the check of it."""

import re
from collections.abc import Mapping

# layer: the layers it may use besides itself. The order is that of the library, lowest first.
ARROWS: dict[str, set[str]] = {
    "base": set(),
    "checkpoint": {"base"},
    "data": {"base"},
    "graph": {"base"},
    "exchange": {"base", "graph"},
    "model": {"base", "graph", "exchange"},
    "kernels": {"base"},
    "transport": {"base", "kernels"},
    "algo": {"base", "graph", "exchange", "kernels"},
    "chart": {"base"},
    "lab": {"base", "data", "graph", "exchange", "kernels", "algo", "chart"},
    "engine": {"base", "graph", "exchange", "kernels", "transport", "algo"},
    "sim": {"base", "graph", "exchange", "model"},
    "plan": {"base", "graph", "exchange", "model", "sim"},
    "probe": {
        "base",
        "graph",
        "exchange",
        "model",
        "kernels",
        "transport",
        "algo",
        "engine",
    },
    "recipe": {"base", "graph", "exchange", "kernels", "algo"},
    "torch": {
        "base",
        "checkpoint",
        "data",
        "graph",
        "exchange",
        "kernels",
        "transport",
        "algo",
        "engine",
        "recipe",
    },
    "train": {
        "base",
        "checkpoint",
        "data",
        "graph",
        "exchange",
        "model",
        "kernels",
        "transport",
        "algo",
        "engine",
        "sim",
        "plan",
        "probe",
        "recipe",
        "torch",
    },
    "cli": {
        "base",
        "checkpoint",
        "data",
        "graph",
        "exchange",
        "model",
        "kernels",
        "transport",
        "algo",
        "chart",
        "lab",
        "engine",
        "sim",
        "plan",
        "probe",
        "recipe",
        "torch",
        "train",
    },
}

# Only these see libtorch, be it directly or through our layers over it: the rest starts in
# milliseconds because it does not load it.
SEES_TORCH = re.compile(r"gossamer/(torch|train|cli/train)/")
TORCH_HEADER = re.compile(r"(torch|ATen|c10)/")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def includes(text: str) -> list[tuple[int, str]]:
    """(line, header) of every include."""
    found = [(number, INCLUDE.match(line)) for number, line in enumerate(text.splitlines(), 1)]
    return [(number, match[1]) for number, match in found if match]


def complaint(path: str, header: str) -> str:
    """Why the file must not include the header; empty where it may."""
    if TORCH_HEADER.match(header) and not SEES_TORCH.match(path):
        return f"only {SEES_TORCH.pattern} may include libtorch"
    if not header.startswith("gossamer/"):
        return ""
    if SEES_TORCH.match(header) and not SEES_TORCH.match(path):
        return f"only {SEES_TORCH.pattern} may include what is over libtorch"
    source, target = path.split("/")[1], header.split("/")[1]
    if target not in ARROWS:
        return f"there is no layer {target}"
    if target != source and target not in ARROWS[source]:
        allowed = ", ".join(sorted(ARROWS[source])) or "nothing"
        return f"{source} may use {allowed}"
    return ""


def violations(files: Mapping[str, str]) -> list[str]:
    """One line for each include that breaks a rule; files maps paths to their text."""
    found = []
    for path, text in files.items():
        if path.split("/")[1] not in ARROWS:
            found.append(f"{path}: its folder is not a layer; add it to ARROWS in {__name__}.py")
            continue
        for line, header in includes(text):
            why = complaint(path, header)
            if why:
                found.append(f"{path}:{line}: includes {header}, but {why}")
    return found
