"""Whole nets as ML Programs: what coremltools and the executor of the tests make of them."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from support.accuracy import FACES, ZOO, Net, distance, face_net, zoo_net
from support.mil_executor import Program, load
from support.mil_values import check_package
from support.oracle import run_mxnet
from support.zoo import (
    LEAST_FOUND,
    around_selections,
    found_again,
    selections,
    zoo_net as other_net,
)

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

BOUNDS = {"float32": 1e-4, "float16": 1e-2}
"""Largest difference of an output from MXNet's, in deviations of that output.

In float16 it may be twice what MXNet makes of its own parameters and inputs in float16, if
that is more: with drawn weights most nets are farther than 1e-2 off by that alone, and no
program in float16 is nearer. What coremltools' own pass makes of our programs in float32 is as
far, see ``test_coreml_zoo.py``.
"""


MOST_OWN = 0.1
"""MXNet that is this far from itself in float16 judges nothing: peaks and offsets of drawn
detectors jump. The difference is left out then."""

HALF_MAX = float(np.finfo(np.float16).max)


@dataclass
class Row:
    """What is found of a net.

    Attributes:
        name: The net.
        operations: Of the program in float32, constants left out.
        errors: Difference by the precision of the program.
        own: Difference of MXNet with parameters and inputs of float16 from itself.
        found: Share of MXNet's detections found again, in float32; None where none are selected.
        seconds: Of the export in float32, of coremltools' check, and of the executor's run.
        faults: What is wrong, empty where all is right.
        refused: What cannot be said, with reasons.
    """

    name: str
    operations: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    own: float = 0.0
    found: float | None = None
    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The row of the table."""
        errors = [f"{self.errors[p]:.1e}" if p in self.errors else "" for p in BOUNDS]
        found = "" if self.found is None else f"{self.found:.0%}"
        seconds = [f"{each:.1f}" for each in self.seconds] or ["", "", ""]
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        operations = str(self.operations or "")
        own = f"{self.own:.1e}" if self.own else ""
        return [self.name, operations, *errors, own, found, *seconds, "; ".join(faults) or "ok"]


COLUMNS = (
    "net",
    "operations",
    *BOUNDS,
    "MXNet's float16",
    "found",
    "export s",
    "check s",
    "run s",
    "verdict",
)


def net_of(mx: Any, name: str) -> Net:
    """A net of MXNet's zoo as ``zoo:name``, a face net, or one of gluoncv and gluonnlp."""
    kind, _, plain = name.rpartition(":")
    if kind == "zoo":
        return zoo_net(mx, plain, ZOO[plain])
    return face_net(mx, name) if name in FACES else other_net(name)


def judge(name: str, net: Net, precisions: Sequence[str] = tuple(BOUNDS)) -> Row:
    """Export a net in each precision, let coremltools check it, run it, and compare with MXNet."""
    mx, row = import_mxnet(), Row(name)
    selects = bool(selections(net.symbol))
    compared = around_selections(mx, net) if selects else net  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as directory:
        for precision in precisions:
            try:
                _compare(mx, compared, precision, row, Path(directory))
                if selects and precision == "float32":
                    _detect(mx, net, row, Path(directory))
            except UnsupportedModelError as error:
                issues = Counter((each.op, each.reason) for each in error.report.issues)
                row.refused = sorted(f"{op} x{n} {why}" for (op, why), n in issues.items())
                break
            except Exception as error:  # whatever goes wrong is a line of the table
                text = " ".join(f"{type(error).__name__}: {error}".split())
                row.faults.append(f"{precision}: {text[:300]}")
    return row


def _compare(mx: Any, net: Net, precision: str, row: Row, directory: Path) -> None:
    image = net.inputs(7)
    expected = _run(net, lambda values: values)
    with ExitStack() as stack:
        program, seconds = _exported(mx, net, precision, directory, stack)
        start = time.perf_counter()
        found = program.run({name: _held(values) for name, values in image.items()})
        seconds.append(time.perf_counter() - start)
    if precision == "float32":
        row.operations, row.seconds = program.size, seconds
    row.errors[precision] = max(distance([*map(_plain, found)], expected))
    bound = BOUNDS[precision]
    if precision == "float16" and row.errors[precision] > bound:
        row.own = max(distance(_run(net, _halved), expected))
        bound = max(bound, 2 * row.own)
        if row.own > MOST_OWN:
            del row.errors[precision]
            return
    if not row.errors[precision] <= bound:
        row.faults.append(f"{precision}: more than {bound:.1e} off")


def _run(net: Net, change: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """What MXNet makes of a net whose parameters and inputs are changed."""
    mx = import_mxnet()
    params = {
        name: mx.nd.array(change(value.asnumpy()))
        for name, value in {**net.args, **net.aux}.items()
    }
    image = {name: change(values) for name, values in net.inputs(7).items()}
    return run_mxnet(net.symbol, params, image, fuse=False)


def _halved(values: np.ndarray) -> np.ndarray:
    """Floats that float16 holds."""
    if values.dtype != np.float32:
        return values
    with np.errstate(over="ignore"):
        return np.clip(values, -HALF_MAX, HALF_MAX).astype(np.float16).astype(np.float32)


def _detect(mx: Any, net: Net, row: Row, directory: Path) -> None:
    """Run a net that selects as a whole."""
    image = net.inputs(7)
    expected = _run(net, lambda values: values)
    with ExitStack() as stack:
        program, _ = _exported(mx, net, "float32", directory, stack)
        found = program.run({name: _held(values) for name, values in image.items()})
    row.found = found_again(expected, found)
    if row.found < LEAST_FOUND:
        row.faults.append("detections are lost")


def _exported(
    mx: Any, net: Net, precision: str, directory: Path, stack: ExitStack
) -> tuple[Program, list[float]]:
    """The program, and the seconds that its export and coremltools' check took."""
    paths, start = net.save(mx, directory / "net"), time.perf_counter()
    target = serde.export_model(
        *paths,
        path=directory / f"{precision}.mlpackage",
        input_shapes={name: values.shape for name, values in net.inputs(7).items()},
        compute_precision=precision,
    )
    exported = time.perf_counter()
    check_package(target)
    checked = time.perf_counter()
    return load(target, stack), [exported - start, checked - exported]


def _held(values: np.ndarray) -> np.ndarray:
    """Values in a dtype that a Core ML model takes."""
    narrow = {"int64": "int32", "float64": "float32"}
    return values.astype(narrow.get(values.dtype.name, values.dtype))


def _plain(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.dtype == np.float16 else values
