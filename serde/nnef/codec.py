"""Folders, texts and archives of NNEF, and graphs in memory."""

from __future__ import annotations

import os
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np

from serde.core import MAX_GRAPH_TEXT_BYTES, ArrayWeight, OpenFile, Weight, numpy_dtype
from serde.errors import FormatError, OptionError
from serde.io.archives import is_tar, tar_extract, tar_names
from serde.io.contained import is_there, location_fault, member_path, read_small
from serde.nnef.dat import Stored, read_dat
from serde.nnef.graphs import check_model, model_of_graph
from serde.nnef.model import NnefModel
from serde.nnef.text.parser import parse, place_of_name
from serde.nnef.text.printer import metadata_of

if TYPE_CHECKING:
    from serde.io.pairs import Neighbours

__all__ = ["GRAPH", "QUANT", "companions", "detect", "is_graph", "load"]

GRAPH: Final = "graph.nnef"
QUANT: Final = "graph.quant"

_HEAD_BYTES: Final = 4096
_BLANKS: Final = rb"(?:[ \t\n\v\f\r]|#[^\r\n]*(?=[\r\n]))*"
_VERSION: Final = re.compile(rb"(?:\xef\xbb\xbf)?" + _BLANKS + rb"version\s+\d+\.\d+\s*;")

_MAX_ITEM_BYTES: Final = 8
"""Of a number: tensor files hold no wider ones."""

_KINDS: Final = {"scalar": "f", "integer": "iu", "logical": "b"}
"""Kinds of dtypes, as NumPy says them, in which variables of an element type are stored."""


def detect(path: Path) -> bool:
    """Whether `path` is a folder with a graph, a text, or an archive of such a folder."""
    if path.is_dir():
        return (path / GRAPH).is_file()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if _VERSION.match(head):
        return True
    if not is_tar(path):
        return False
    try:
        return any(_member(name) == GRAPH for name in tar_names(path))
    except FormatError:
        return False


def companions(name: str, beside: Neighbours) -> list[str]:
    """Return what belongs to the text of a folder: quantization and tensors."""
    if name != GRAPH:
        return []
    return [each for each in beside.names("") if each == QUANT or each.endswith(".dat")]


def is_graph(source: object) -> bool:
    """Whether `source` is a graph of Khronos' package, which is not loaded for it."""
    native = sys.modules.get("_nnef")
    return native is not None and isinstance(source, native.Graph)


def load(source: AnyValue, whole: Collection[str] = ()) -> NnefModel:
    """Return the model of a path, or of an ``nnef.Graph``.

    Args:
        source: A folder, a text, an archive or a graph.
        whole: Names of fragments of its own that are not expanded.

    Raises:
        FormatError: It is malformed.
        OptionError: It is neither a path nor a graph.
    """
    if is_graph(source):
        return _of_graph(source)
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"expected a path or an nnef.Graph, found {type(source).__name__}")
    path = Path(source)
    if path.is_dir():
        return _load_folder(path, path, whole)
    if path.name == GRAPH:
        return _load_folder(path, path.parent, whole)
    return _load_archive(path, whole) if is_tar(path) else _load_text(path, whole)


def _of_graph(graph: AnyValue) -> NnefModel:
    """Return a graph in memory; its arrays are shared, and never written to."""
    model = model_of_graph(graph)
    check_model(model, None)
    weights: dict[str, Weight] = {}
    for name, operation in model.variables().items():
        label = operation.attributes["label"]
        data = graph.tensors[name].data if name in graph.tensors else None
        if not isinstance(data, np.ndarray):
            raise FormatError(f"variable {label!r} has no data")
        if data.dtype.kind not in "fiub" or data.dtype.itemsize > _MAX_ITEM_BYTES:
            raise FormatError(f"variable {label!r}: expected numbers, found {data.dtype}")
        known = weights.get(label)
        if known is not None and not np.array_equal(known.array(), data):
            raise FormatError(f"two variables with the label {label!r} have different data")
        weights[label] = ArrayWeight(data)
    return _checked(replace(model, weights=weights, live=graph))


def _load_folder(path: Path, root: Path, whole: Collection[str]) -> NnefModel:
    text = _read_text(Path(member_path(os.fspath(root), GRAPH)))
    files = [root / GRAPH]
    quantization = None
    if is_there(root / QUANT):
        quantization = _read_text(Path(member_path(os.fspath(root), QUANT)))
        files.append(root / QUANT)
    model = parse(text, quantization, root / GRAPH, quantization_path=root / QUANT, whole=whole)

    def read_member(name: str) -> Stored:
        files.append(root / name)
        with OpenFile.open(member_path(os.fspath(root), name)) as opened:
            return read_dat(opened)

    model = _with_weights(model, read_member, root / GRAPH, text)
    return replace(model, path=path, files=tuple(files))


def _load_text(path: Path, whole: Collection[str]) -> NnefModel:
    text = _read_text(path)
    model = parse(text, None, path, whole=whole)

    def refuse(name: str) -> Stored:
        raise FormatError("has no data: a text alone holds none; give the folder")

    return replace(_with_weights(model, refuse, path, text), path=path, files=(path,))


def _load_archive(path: Path, whole: Collection[str]) -> NnefModel:
    found = tar_extract(path, lambda name: _member(name) in (GRAPH, QUANT) or name.endswith(".dat"))
    prefix = _prefix(found, path)
    text = _decode(found[prefix + GRAPH].read(), f"{path}:{prefix}{GRAPH}")
    quantization_path = f"{path}:{prefix}{QUANT}"
    quant = found.get(prefix + QUANT)
    quantization = None if quant is None else _decode(quant.read(), quantization_path)
    where = f"{path}:{prefix}{GRAPH}"
    model = parse(text, quantization, where, quantization_path=quantization_path, whole=whole)

    def read_member(name: str) -> Stored:
        file = found.get(prefix + name)
        if file is None:
            raise FormatError(f"has no member {prefix + name!r}", path=path)
        return read_dat(file)

    return replace(_with_weights(model, read_member, where, text), path=path, files=(path,))


def _member(name: str) -> str:
    return name.rpartition("/")[2]


def _prefix(found: Collection[str], path: Path) -> str:
    """Return what names of members begin with: the folder that was packed, if it was."""
    graphs = sorted(
        (name for name in found if _member(name) == GRAPH), key=lambda name: name.count("/")
    )
    if not graphs:
        raise FormatError(f"expected an archive with {GRAPH}", path=path)
    if len(graphs) > 1 and graphs[0].count("/") == graphs[1].count("/"):
        raise FormatError(f"expected one graph, found {graphs[0]} and {graphs[1]}", path=path)
    return graphs[0].removesuffix(GRAPH)


def _with_weights(
    model: NnefModel, read_member: Callable[[str], Stored], path: str | os.PathLike[str], text: str
) -> NnefModel:
    """Return the model with the data of its variables, as ranges of files.

    The label of a variable is a path in the folder, as that of any member of a package.

    Args:
        model: The model.
        read_member: Reads a file of the folder.
        path: Where the graph was read from, for messages.
        text: Text of the graph, for messages.
    """
    weights: dict[str, Weight] = {}
    marked = set()
    for name, operation in model.variables().items():
        label = operation.attributes["label"]
        if label in weights:
            continue
        fault = location_fault(label, on_disk=False)
        if fault is None and "\\" in label:
            fault = "contains a backslash"
        if fault is not None:
            raise FormatError(f"{place_of_name(text, name)}label {label!r} {fault}", path=path)
        try:
            stored = read_member(f"{label}.dat")
        except FormatError as error:
            what = f"{place_of_name(text, name)}variable {label!r}: {error}"
            raise FormatError(what, path=path) from error
        weights[label] = stored.weight
        if stored.quantized:
            marked.add(label)
    model = replace(model, weights=weights, metadata=metadata_of(text))
    return _checked(model, marked, path, text)


def _checked(
    model: NnefModel,
    marked: Collection[str] = (),
    path: str | os.PathLike[str] | None = None,
    text: str = "",
) -> NnefModel:
    """Return a model whose variables are as the graph declares them.

    Args:
        model: The model.
        marked: Labels of variables whose files say that they are quantised.
        path: Where the graph was read from, for messages.
        text: Text of the graph, for messages.
    """
    quantized = set(marked)
    for name, operation in model.variables().items():
        label, declared = operation.attributes["label"], operation.attributes["shape"]
        weight = model.weights[label]
        if weight.shape != tuple(declared):
            raise FormatError(
                f"{place_of_name(text, name)}variable {label!r}: expected shape {list(declared)}, "
                f"found {list(weight.shape)}",
                path=path,
            )
        kind = numpy_dtype(weight.dtype).kind
        if kind in "iu" and name in model.quantization:
            # The first writers marked none of their files.
            quantized.add(label)
        element = operation.dtype or "scalar"
        if kind not in _KINDS[element] and label not in quantized:
            raise FormatError(
                f"{place_of_name(text, name)}variable {label!r}: expected elements of type "
                f"{element}, found {weight.dtype}",
                path=path,
            )
    return replace(model, stored_quantized=frozenset(quantized))


def _read_text(path: Path) -> str:
    return _decode(read_small(path, MAX_GRAPH_TEXT_BYTES), path)


def _decode(data: bytes, path: str | os.PathLike[str]) -> str:
    """Return a text, without the mark of its encoding that some editors put first."""
    try:
        return data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(data.removeprefix(BOM_UTF8))
        raise FormatError("expected UTF-8", path=path, offset=offset) from None
