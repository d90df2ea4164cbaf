"""Public TFLite files: what LiteRT computes of them, bit for bit where they are quantised."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from support.tflite_models import run_litert

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import SerdeError

FOLDER = Path(__file__).parents[4] / "shared" / "tflite_cases"
LIST = FOLDER / "list.tsv"

if not LIST.is_file():
    pytest.skip("the public files are not beside the repository", allow_module_level=True)

ROWS = [line.split("\t")[:2] for line in LIST.read_text().splitlines()[1:] if line]
LEAST = {"float": 43, "quantised": 43, "control": 3, "resource": 3}
"""How many files of each class are right."""


def verdict(path: Path) -> str:
    """Return what becomes of a file."""
    report = serde.Report()
    try:
        model = serde.to_relay(path, format="tflite", report=report)
    except SerdeError:
        return "refused"
    rng = np.random.default_rng(0)
    feed, states = [], {}
    for variable in model.inputs():
        dtype = np.dtype(variable.type.dtype)
        shape = [dim if isinstance(dim, int) else 2 for dim in variable.type.shape]
        if f"{variable.name_hint}.state" in model.meta.extra:
            notes = "".join(report.notes)
            found = re.search(f"{variable.name_hint} is a state: .*?at first (\\S+) every", notes)
            states[variable.name_hint] = np.full(shape, float(found[1]) if found else 0, dtype)
        elif dtype.kind == "f":
            feed.append(rng.normal(size=shape).astype(dtype))
        elif dtype.kind == "b" or dtype.itemsize > 2:
            feed.append(rng.integers(0, 2, shape).astype(dtype))
        else:
            kind = np.iinfo(dtype)
            feed.append(rng.integers(kind.min, kind.max + 1, shape).astype(dtype))
    try:
        expected = run_litert(path.read_bytes(), feed)
    except (RuntimeError, ValueError):
        return "no reference"
    names = [each.name_hint for each in model.inputs() if each.name_hint not in states]
    found = RelayEngine(model).run({**dict(zip(names, feed, strict=True)), **states})
    for result, wanted in zip(found, expected, strict=False):
        if wanted.dtype.kind == "f" and wanted.size:
            if abs(result - wanted).max() > 2e-3 * (wanted.std() + 1e-6):
                return "other"
        elif (result != wanted).any():
            return "other"
    return "right"


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.thin(2)
def test_files_are_right(kind: str) -> None:
    files = [FOLDER / name for name, each in ROWS if each == kind]
    counts = Counter(map(verdict, files))
    assert counts["right"] >= LEAST[kind], counts


@pytest.mark.parametrize("kind", ["custom", "string", "broken"])
def test_files_are_refused(kind: str) -> None:
    for path in (FOLDER / name for name, each in ROWS if each == kind):
        assert verdict(path) == "refused", path
