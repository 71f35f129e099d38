"""Files of a layer are compiled several at a time, and a new one moves the borders."""

import re
from collections import defaultdict
from pathlib import PurePath

from project import ROOT, project_files, relative

CONSTANT = re.compile(r"^(?:inline |static )*const(?:expr)? [\w:<>, *]*?\b(\w+)(?:\[\w*\])* *[={]")
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)\b(?!.*;$)|^using (?!namespace)(\w+) =")
FUNCTION = re.compile(r"^\w[\w:<>,&* ]*[ &*](\w+)\(([^;{\[]*)\)(?: const)?(?: noexcept)? \{")
ALONE = ("gossamer/kernels/", "gossamer/lab/figures/")  # each file by itself, see CMakeLists.txt


def unnamed(text: str) -> list[str]:
    """What unnamed namespaces declare, with the named ones around them."""
    found, spaces = [], [""]
    joined = re.sub(r",\n +", ", ", text)  # parameters on several lines
    for line in joined.splitlines():
        if entered := re.match(r"^namespace ([\w:]+ )?\{", line):
            spaces.append((entered[1] or "").strip())
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif spaces[-1] == "" and len(spaces) > 1:
            name = "::".join(filter(None, spaces))
            if match := CONSTANT.match(line) or TYPE.match(line):
                found.append(f"{name}::{match[1] or match[2]}")
            elif match := FUNCTION.match(line):
                types = [re.sub(r"\b\w+$", "", part).strip() for part in match[2].split(",")]
                found.append(f"{name}::{match[1]}({', '.join(types)})")
    return found


def unit(path: PurePath) -> str:
    """Of files that may be compiled together."""
    kind = "test" if re.search(r"_(test|oracle)$", path.stem) else "library"
    if path.parts[:2] == ("gossamer", "cli") and len(path.parts) > 3 and path.parts[2] == "train":
        return f"gossamer/cli/train {kind}"
    return f"{path.parts[0]}/{path.parts[1]} {kind}"


def clashes(texts: dict[str, str]) -> dict[str, list[str]]:
    places: dict[str, set[str]] = defaultdict(set)
    for name, text in texts.items():
        for declared in unnamed(text):
            places[f"{unit(PurePath(name))}: {declared}"].add(name)
    return {name: sorted(found) for name, found in places.items() if len(found) > 1}


def test_names_of_unnamed_namespaces_are_their_own_in_a_layer() -> None:
    texts = {
        relative(path): path.read_text()
        for path in project_files(".cpp")
        if path.is_relative_to(ROOT / "gossamer")
        and not re.search(r"_(bench|fuzz|main)$", path.stem)
        and not relative(path).startswith(ALONE)
    }
    assert clashes(texts) == {}


def test_the_check_sees_what_it_should() -> None:
    first = (
        "namespace a {\nnamespace {\n\nconstexpr int kMost = 3;\n\nint f(int x,\n      int y) {\n"
    )
    second = "namespace a {\nnamespace {\n\nconstexpr double kMost = 3;\n\nint f(int u, int v) {\n"
    other = (
        "namespace a {\nnamespace b {\nnamespace {\n\nconstexpr int kMost = 3;\nint f(char u) {\n"
    )
    found = clashes(
        {"gossamer/x/1.cpp": first, "gossamer/x/2.cpp": second, "gossamer/x/3.cpp": other}
    )
    assert sorted(found) == ["gossamer/x library: a::f(int, int)", "gossamer/x library: a::kMost"]
