"""What files beside a model say of it: shapes and dtypes of its inputs, and labels of its classes.

SageMaker and Multi Model Server put ``NAME-shapes.json``, ``signature.json`` and ``synset.txt``
into their archives. A length of 0 is one that is open there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import dataclass, dtype_name, field, parse_json
from serde.errors import FormatError
from serde.io.contained import read_small

__all__ = ["MAX_FACT_BYTES", "Signature", "is_fact", "read_json", "read_signature"]

MAX_FACT_BYTES: Final = 4 * 2**20
"""Longest file of facts that is read: room for some 50,000 labels."""

_SIGNATURE: Final = "signature.json"
_SHAPES: Final = "-shapes.json"
_LABELS: Final = "synset.txt"
_MAX_RANK: Final = 32
_NAMES: Final = ("name", "data_name")
_DIMS: Final = ("shape", "data_shape")
_DTYPES: Final = ("dtype", "data_dtype", "data_type")


@dataclass(frozen=True, slots=True)
class Signature:
    """What is said of a model.

    Attributes:
        shapes: Of inputs, by name; an open length is a name such as ``"N"``.
        dtypes: Of inputs, by name.
        labels: Of the classes, in the order of the scores.
        sources: Names of the files that say so.
    """

    shapes: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def only(self, inputs: Iterable[str]) -> Signature:
        """Return what bears on the inputs named."""
        wanted = set(inputs)
        return Signature(
            {name: shape for name, shape in self.shapes.items() if name in wanted},
            {name: dtype for name, dtype in self.dtypes.items() if name in wanted},
            self.labels,
            self.sources,
        )


def is_fact(name: str) -> bool:
    """Whether a file of this name says something of a model beside it."""
    return name in (_SIGNATURE, _LABELS) or name.endswith(_SHAPES)


def read_signature(paths: Iterable[Path]) -> Signature:
    """Return what files say together; where two differ in a length, it is open.

    Args:
        paths: Files, others than :func:`is_fact` knows among them.

    Raises:
        FormatError: A file is malformed, or two contradict each other.
    """
    shapes: dict[str, tuple[int | str, ...]] = {}
    dtypes: dict[str, str] = {}
    labels: tuple[str, ...] = ()
    used: list[str] = []
    for path in sorted(paths, key=lambda each: each.name):
        if not is_fact(path.name):
            continue
        used.append(path.name)
        if path.name == _LABELS:
            labels = _read_labels(path)
            continue
        for name, shape, dtype in _read_inputs(path):
            known = shapes.get(name)
            shapes[name] = shape if known is None else _merge(known, shape, name, path)
            if dtype is not None:
                dtypes[name] = dtype
    return Signature(shapes, dtypes, labels, tuple(used))


def read_json(path: Path) -> AnyValue:
    """Return what a small file of JSON holds.

    Raises:
        FormatError: It is none.
    """
    data = read_small(path, MAX_FACT_BYTES)
    try:
        return parse_json(data.decode("utf-8-sig"))
    except ValueError as error:
        raise FormatError(f"expected JSON: {error}", path=path) from None


def _read_inputs(path: Path) -> list[tuple[str, tuple[int | str, ...], str | None]]:
    found = read_json(path)
    if isinstance(found, Mapping):
        found = found.get("inputs", found.get("input", []))
    if not isinstance(found, list):
        raise FormatError("expected a list of inputs with their shapes", path=path)
    return [_read_input(each, path) for each in found]


def _read_input(entry: AnyValue, path: Path) -> tuple[str, tuple[int | str, ...], str | None]:
    facts = entry if isinstance(entry, Mapping) else {}
    name = next((facts[key] for key in _NAMES if key in facts), None)
    dims = next((facts[key] for key in _DIMS if key in facts), None)
    if not isinstance(name, str) or not isinstance(dims, list) or len(dims) > _MAX_RANK:
        shown = json.dumps(entry)[:100]
        raise FormatError(f'expected {{"name": ..., "shape": [...]}}, found {shown}', path=path)
    told = next((facts[key] for key in _DTYPES if key in facts), None)
    return name, tuple(_dim(dim, axis, path) for axis, dim in enumerate(dims)), _dtype(told)


def _dim(dim: AnyValue, axis: int, path: Path) -> int | str:
    """Return a length; what is no positive number is open, the first axis being the batch."""
    if dim is None or (isinstance(dim, int) and not isinstance(dim, bool) and dim <= 0):
        return _open(axis)
    if not isinstance(dim, int) or isinstance(dim, bool) or dim >= 2**31:
        raise FormatError(f"expected a length, found {json.dumps(dim)[:100]}", path=path)
    return dim


def _open(axis: int) -> str:
    return "N" if axis == 0 else f"D{axis}"


def _dtype(told: AnyValue) -> str | None:
    """Return a dtype; other words, such as a MIME type, say nothing of it."""
    if not isinstance(told, str):
        return None
    try:
        return dtype_name(told.lower())
    except TypeError:
        return None


def _merge(
    one: Sequence[int | str], other: Sequence[int | str], name: str, path: Path
) -> tuple[int | str, ...]:
    if len(one) != len(other):
        raise FormatError(
            f"{name} has {len(other)} axes, and {len(one)} by another file", path=path
        )
    pairs = enumerate(zip(one, other, strict=True))
    return tuple(left if left == right else _open(axis) for axis, (left, right) in pairs)


def _read_labels(path: Path) -> tuple[str, ...]:
    data = read_small(path, MAX_FACT_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("expected labels in UTF-8", path=path) from None
    return tuple(line.strip() for line in text.rstrip().split("\n"))
