"""Which part of the Python package may import which, and who may touch whose fields."""

import ast
from collections.abc import Iterator, Mapping

# part: those it may import besides itself. Parts are folders of python/gossamer and the modules
# beside them; the order is that of the package, lowest first.
ARROWS: dict[str, set[str]] = {
    "_built": set(),
    "_series": set(),
    "_load": {"_series"},
    "base": set(),
    "optim": set(),
    "report": {"base"},
    "theory": set(),
    "core_functions": {"base"},
    "own_schedules": set(),
    "virtual_workers": {"base"},
    "workers": {"_built", "_series", "base"},
    "tensors": {"optim"},
    "session": {"base", "workers", "tensors"},
    "records": {"base", "workers", "session"},
    "checks": {"workers", "tensors", "session"},
    "step": {"base", "workers", "tensors", "session", "records", "checks"},
    "checkpoint": {"base", "workers", "tensors", "session", "step"},
    "habits": {"step"},
    "uneven_epochs": {"workers", "tensors", "session", "step"},
    "shares": {"step"},
    "stopping": {"base", "step", "tensors"},
    "trackers": {"base", "workers", "records", "step"},
    "ddp_metrics": {"workers", "records"},
    "mixer": {"base", "workers", "tensors", "session", "step"},
    "gossip_examples": set(),
    "gossip": {
        *("base", "workers", "tensors", "session", "step", "checkpoint"),
        *("habits", "uneven_epochs", "gossip_examples", "records"),
    },
    "diagnosis": {"workers"},
    "probing": {"base", "workers", "tensors", "session", "diagnosis"},
    "job": {"workers"},
    "launching": {"base"},
    "lightning": {"base", "workers", "step", "gossip", "job", "stopping"},
    "transformers": {"base", "workers", "step", "gossip"},
    "doctor": {"workers", "diagnosis"},
    "__init__": {
        *("_built", "_load", "optim", "own_schedules", "core_functions"),
        *(
            "ddp_metrics",
            "gossip",
            "mixer",
            "probing",
            "shares",
            "stopping",
            "uneven_epochs",
            "virtual_workers",
            "job",
        ),
    },
    "__main__": set(),
}

CORE = "_core"  # what is built from C++


def part_of(path: str) -> str:
    """Of a file, by its path in the package."""
    return path.split("/")[0].removesuffix(".py")


def imports(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """(line, module in the package) of every import, those for type checkers too."""
    folder = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("gossamer."):
                    yield node.lineno, alias.name.removeprefix("gossamer.")
        elif isinstance(node, ast.ImportFrom):
            start = folder[: len(folder) + 1 - node.level] if node.level else []
            module = [*start, *(node.module or "").split(".")]
            if not node.level:
                if module[0] != "gossamer":
                    continue
                module = module[1:]
            inner = ".".join(filter(None, module))
            for alias in node.names:
                yield node.lineno, f"{inner}.{alias.name}".lstrip(".")


def broken_arrows(files: Mapping[str, str]) -> list[str]:
    """A line for each import that points up, or to nothing; files maps paths to their text."""
    found = []
    for path, text in files.items():
        part = part_of(path)
        if part not in ARROWS:
            found.append(f"{path}: no part of the package; add it to ARROWS in {__name__}.py")
            continue
        for line, module in imports(ast.parse(text), path):
            target = module.split(".")[0]
            if target not in (CORE, part) and target not in ARROWS[part]:
                allowed = ", ".join(sorted(ARROWS[part])) or "nothing"
                found.append(f"{path}:{line}: imports {module}, but {part} may use {allowed}")
    return found


def circles(files: Mapping[str, str]) -> list[str]:
    """Modules that import each other, over any number of steps."""
    names = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in files
    }
    edges: dict[str, set[str]] = {}
    for name, path in names.items():
        targets = (module for _, module in imports(ast.parse(files[path]), path))
        known = {t if t in names else t.rpartition(".")[0] for t in targets}
        edges[name] = {t for t in known if t in names and t != name}
    left = dict(edges)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def own_names(tree: ast.Module) -> set[str]:
    """Private names that the module defines: its own, and the fields of its classes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for each in ast.walk(target):
                    if isinstance(each, ast.Attribute):
                        found.add(each.attr)
                    elif isinstance(each, ast.Name):
                        found.add(each.id)
    return {name for name in found if name.startswith("_") and not name.endswith("__")}


def foreign_uses(files: Mapping[str, str]) -> list[str]:
    """A line for each private name of one module that another one reads, and for each field that
    is assigned outside of the module that owns it; by whatever variable."""
    trees = {path: ast.parse(text) for path, text in files.items()}
    private = {path: own_names(tree) for path, tree in trees.items()}
    fields = {path: _fields(tree) for path, tree in trees.items()}
    found = []
    for path, tree in trees.items():
        others = set().union(*(names for other, names in private.items() if other != path))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or _is_own(node.value):
                continue
            if node.attr in others - private[path]:
                found.append(f"{path}:{node.lineno}: reads the private {ast.unparse(node)}")
            owners = [other for other, names in fields.items() if node.attr in names]
            if isinstance(node.ctx, ast.Store) and owners and path not in owners:
                found.append(f"{path}:{node.lineno}: assigns {ast.unparse(node)} of {owners[0]}")
    return found


def _fields(tree: ast.Module) -> set[str]:
    """What methods assign on self."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls", CORE)
