"""Which extension fits the torch that is there: the package holds one for each series of torch."""

from pathlib import Path

PACKAGE = Path(__file__).parent


def series_of(version: str) -> str:
    """Of a version of torch: "2.13" of "2.13.1+cpu". All of a series fit the same build."""
    return ".".join(version.split("+")[0].split(".")[:2])


def folder_of(version: str) -> Path:
    """Of what is built for this version of torch: the extension, and where the package is
    installed the program that trains."""
    return PACKAGE / f"torch_{series_of(version).replace('.', '_')}"


def built() -> dict[str, list[str]]:
    """The extensions that are here, by series: one for each Python."""
    found = {}
    for folder in sorted(PACKAGE.glob("torch_*"), key=lambda each: (len(each.name), each.name)):
        extensions = sorted(path.name for path in folder.glob("_core.*.so"))
        if extensions:
            found[folder.name.removeprefix("torch_").replace("_", ".")] = extensions
    return found
