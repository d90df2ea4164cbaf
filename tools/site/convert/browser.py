"""What the page runs in the browser's Python: models in a folder are looked at and converted.

Only the public API of serde is used, so that the same runs under any Python. Answers are what JSON
can hold; what is refused comes back as text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue, Final

import serde

__all__ = ["TARGETS", "convert", "look"]

TARGETS: Final = {"onnx": ".onnx", "mxnet": "-symbol.json", "nnef": ".nnef.tgz", "relay": ".relay"}
"""Formats that are written without a framework, each with how the names of its files end."""

_BESIDE: Final = (".params", ".data", ".dat", ".bin", ".weights", ".npz")
"""Ends of names of files that belong to another one."""

_SECONDS: Final = 5.0
"""For the statistics of weights; of what is left then, samples are read."""

_ENDS: Final = (".onnx.json", "-symbol.json", ".nnef.tgz", ".nnef.tar.gz", ".tar.gz")


def look(folder: str, shapes: str = "") -> dict[str, AnyValue]:
    """Show the model of the files in a folder.

    Args:
        folder: The folder; files that belong to another are only tried if there are no others.
        shapes: As in ``data:1,3,224,224; mask:1,N``.

    Returns:
        ``name`` of the file that is the model and ``page``, a page of HTML that shows it; or
        ``refused``, why not.
    """
    paths = sorted(Path(folder).iterdir())
    refused = ""
    for path in [path for path in paths if not path.name.endswith(_BESIDE)] or paths:
        try:
            page = serde.view(path, seconds=_SECONDS, **_reading(shapes))
        except (serde.SerdeError, OSError) as error:
            refused = refused or str(error)
        else:
            return {"name": path.name, "page": page.html}
    return {"refused": refused or "there is no file"}


def convert(
    folder: str, name: str, target: str, out: str, shapes: str = "", allow: str = ""
) -> dict[str, AnyValue]:
    """Convert a model.

    Args:
        folder: Where it lies.
        name: Its file there.
        target: Name of the format.
        out: A folder for what is written, which is emptied first.
        shapes: As for :func:`look`.
        allow: Names of steps that may be taken, with commas.

    Returns:
        ``files``, the names of what was written, and ``report``, what there is to say of it; or
        ``refused``, why not.
    """
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    path = Path(out) / f"{_stem(name)}{TARGETS[target]}"
    steps = {each.strip() for each in allow.split(",") if each.strip()}
    try:
        report = serde.convert(
            Path(folder) / name, path, target_format=target, allow=steps, **_reading(shapes)
        )
    except (serde.SerdeError, OSError) as error:
        return {"refused": str(error)}
    return {"files": sorted(os.listdir(out)), "report": _told(report)}


def _told(report: serde.Report) -> str:
    """Return what there is to say of a conversion."""
    facts = report.facts
    lines = [
        f"{facts['source']} -> {facts['target']}: {report.nodes:,} nodes, "
        f"{facts['parameters']:,} parameters, {facts['bytes']:,} bytes"
    ]
    lines += [f"allowed: {each.op} {each.node}: {each.reason}" for each in sorted(report.allowed)]
    return "\n".join([*lines, *report.notes])


def _stem(name: str) -> str:
    """Return a name without the end that says its format."""
    end = next((end for end in _ENDS if name.endswith(end)), Path(name).suffix)
    return name.removesuffix(end) or "model"


def _reading(shapes: str) -> Mapping[str, AnyValue]:
    """Return options that say the shapes of inputs.

    Raises:
        OptionError: They are no shapes.
    """
    found: dict[str, tuple[int | str, ...]] = {}
    for part in filter(None, map(str.strip, shapes.split(";"))):
        name, colon, text = part.rpartition(":")
        lengths = [each.strip() for each in text.split(",")]
        if not all(lengths) or (colon and not name.strip()):
            raise serde.OptionError(f"{part}: expected a shape, as in data:1,3,224,224")
        found[name.strip()] = tuple(int(each) if each.isdecimal() else each for each in lengths)
    return {"input_shapes": found} if found else {}
