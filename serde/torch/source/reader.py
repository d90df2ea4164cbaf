"""A written folder as a program: its module, its weights, and what ``config.json`` says of it."""

from __future__ import annotations

import ast
import json
import os
from functools import cache
from pathlib import Path
from typing import Any as AnyValue
from typing import Final

from serde.errors import FormatError
from serde.io.contained import member_path
from serde.io.nesting import nesting_depth
from serde.limits import MAX_GRAPH_TEXT_BYTES, MAX_NESTING, MAX_RANK
from serde.relay.ir.dims import Any, DimLike, symbol
from serde.torch.model import Argument, Graph, Input, Ref, TorchModel
from serde.torch.pt2.document import Document
from serde.torch.source.statements import LOADER_NAME, Compiler
from serde.torch.source.syntax import MAX_SOURCE_BYTES, Unit
from serde.torch.source.values import Class, Frame, Function, Globals, Held, Instance, Library
from serde.torch.written.folder import CONFIG, DTYPES, SOURCE, WEIGHTS
from serde.torch.written.source import LOADER
from serde.weights import FileWeight, OpenFile, Weight, numpy_dtype

__all__ = ["load_folder"]

_IMPORTED: Final = {
    "torch": ("torch", "torch.nn", "torch.nn.functional"),
    "math": ("math",),
    "pathlib": ("pathlib.Path",),
    "__future__": ("__future__.annotations",),
}
"""What a module may import, by the first part of its name."""

_COUNTED: Final = "num_batches_tracked"
"""A buffer that PyTorch itself adds where a state dictionary has none."""


def load_folder(path: Path) -> TorchModel:
    """Return the program of a folder, of which nothing is run.

    Raises:
        FormatError: Its source is not of the subset that serde writes, or its files do not fit.
    """
    config = Document(_read_json(_read(path, CONFIG), path / CONFIG), CONFIG, os.fspath(path))
    stored = _read_weights(path)
    unit = Unit(_read(path, SOURCE, MAX_SOURCE_BYTES).decode("utf-8", "replace"), SOURCE)
    try:
        return _read_module(path, unit, config, stored)
    except RecursionError:
        raise FormatError(f"{SOURCE}: expected few levels, found deeper ones", path=path) from None
    except FormatError as error:
        if error.path is not None:
            raise
        raise FormatError(str(error), path=path) from None


def _read_module(
    path: Path, unit: Unit, config: Document, stored: dict[str, Weight]
) -> TorchModel:
    reader = Compiler(_library())
    names = _read_globals(unit, reader)
    kind = names.names.get("Model")
    if not isinstance(kind, Class):
        raise unit.fault(unit.tree, "a class Model")
    model = reader.construct(kind, [], {})
    weights = _place(model, stored)
    declared = {x.field("argument").text(): x for x in config.field("inputs").items()}
    outputs = [each.field("name").text() for each in config.field("outputs").items()]
    found = kind.method("forward")
    if found is None:
        raise unit.fault(unit.tree, "a method forward of Model")
    inputs = []
    for each in found[1].args.args[1:]:
        if each.arg not in declared:
            raise unit.fault(each, f"an input that {CONFIG} describes")
        inputs.append(_input(each.arg, declared[each.arg]))
    reader.nodes = nodes = []
    given = [Ref(each.value) for each in inputs]
    result = reader.call_module(found[1], model, given, {}, Frame(names, {}))
    results: list[Argument] = [reader.argument(result)]
    if isinstance(result, tuple) and len(outputs) == len(result):
        results = [reader.argument(each) for each in result]
    elif isinstance(result, Ref) and len(outputs) > 1:
        results = [Ref(x) for x in reader.write("prim::TupleUnpack", [result], {}, len(outputs))]
    if len(results) != len(outputs):
        raise unit.fault(found[1], f"{len(outputs)} results, as {CONFIG} says")
    graph = Graph([each.value for each in inputs], nodes, results, reader.weights)
    return TorchModel(graph, inputs, outputs, weights, "source", path=path)


def _read_globals(unit: Unit, reader: Compiler) -> Globals:
    """Return the names of a module: what it imports, and what it defines."""
    found = Globals(unit)
    for node in unit.tree.body:
        if isinstance(node, ast.Import):
            for each in node.names:
                _import(unit, found, node, each.name, each.asname or each.name.partition(".")[0])
                if each.asname is None:
                    found.names[each.name.partition(".")[0]] = Library(each.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                full = f"{node.module}.{each.name}"
                _import(unit, found, node, full, each.asname or each.name)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        else:
            reader.define(node, found)
    for kind in found.names.values():
        if isinstance(kind, Class) and LOADER_NAME in kind.methods:
            _check_loader(unit, kind.methods[LOADER_NAME])
    return found


def _import(unit: Unit, found: Globals, node: ast.stmt, full: str, name: str) -> None:
    allowed = _IMPORTED.get(full.partition(".")[0], ())
    if full not in allowed and not (full.startswith("torch.") and full.count(".") == 1 and "*" not in full):
        raise unit.fault(node, f"imports of {', '.join(sorted(_IMPORTED))}")
    found.names[name] = Library(full)


def _check_loader(unit: Unit, method: ast.FunctionDef) -> None:
    """Refuse a loader that is not what serde writes: weights would come from elsewhere."""
    if ast.dump(method) != _loader():
        raise unit.fault(method, "from_pretrained as serde writes it")


@cache
def _loader() -> str:
    (kind,) = ast.parse(f"class Model:\n{LOADER}").body
    assert isinstance(kind, ast.ClassDef)
    return ast.dump(kind.body[0])


@cache
def _library() -> Globals:
    """Return PyTorch's own modules and functions as far as they are no operators themselves."""
    text = (Path(__file__).parent / "definitions.py").read_text(encoding="utf-8")
    unit = Unit(text, "definitions.py", is_own=True)
    found = Globals(unit)
    _read_own(unit, found)
    return found


def _read_own(unit: Unit, found: Globals) -> None:
    filled = _read_globals(unit, Compiler(found))
    found.names.update(filled.names)
    for name, each in list(found.names.items()):
        if isinstance(each, Function):
            found.names[name] = Function(each.definition, found)
        elif isinstance(each, Class):
            base = None if each.base is None else found.names[each.base.name]
            found.names[name] = Class(name, found, base, each.methods, each.constants)


# Weights.


def _place(model: Instance, stored: dict[str, Weight]) -> dict[str, Weight]:
    """Return the weights of a module by name, each of the shape that its constructor says.

    Raises:
        FormatError: One is missing, is another's or has another shape; or one is left.
    """
    found: dict[str, Weight] = {}
    seen: set[int] = set()
    pending = [("", model)]
    while pending:
        path, each = pending.pop()
        each.path = path
        if id(each) in seen:
            raise FormatError(f"{SOURCE}: expected each module once, found {path} again")
        seen.add(id(each))
        for key, value in each.attributes.items():
            name = f"{path}.{key}".lstrip(".")
            if isinstance(value, Instance):
                pending.append((name, value))
            elif isinstance(value, Held) and (value.is_state or value.name):
                _name_weight(name, value, stored, found)
    left = sorted(stored.keys() - found.keys())
    if left:
        raise FormatError(f"{WEIGHTS}: expected weights that {SOURCE} has, found {left[0][:200]}")
    return found


def _name_weight(
    name: str, held: Held, stored: dict[str, Weight], found: dict[str, Weight]
) -> None:
    weight = stored.get(name)
    if held.name:
        raise FormatError(f"{SOURCE}: expected one name of {held.name}, found {name} too")
    held.name = name
    if weight is None and name.endswith(_COUNTED):
        return
    if weight is None:
        raise FormatError(f"{WEIGHTS}: expected {name[:200]}, found no such weight")
    if (weight.shape, weight.dtype) != (held.shape, held.dtype):
        one, other = (f"{x.dtype}{list(x.shape)}" for x in (held, weight))
        raise FormatError(f"{WEIGHTS}: {name[:200]}: expected {one}, found {other}")
    found[name] = weight


def _read_weights(root: Path) -> dict[str, Weight]:
    """Return the weights of a file of safetensors, as ranges of it.

    Raises:
        FormatError: It is malformed.
    """
    path = member_path(os.fspath(root), WEIGHTS)
    with OpenFile.open(path) as file:
        length = int.from_bytes(_bytes(file, 0, 8), "little")
        data = _bytes(file, 8, min(length, MAX_GRAPH_TEXT_BYTES))
        header = Document(_read_json(data, Path(path)), "header", path)
        return {
            name: _weight(file, entry, 8 + length)
            for name, entry in header.entries()
            if name != "__metadata__"
        }


def _weight(file: OpenFile, entry: Document, start: int) -> Weight:
    code = entry.field("dtype").text()
    dtype = next((name for name, each in DTYPES.items() if each == code), None)
    if dtype is None or dtype == "complex64":
        raise entry.fault(f"expected a dtype that is read, found {code[:20]!r}")
    shape = tuple(each.integer() for each in entry.field("shape").items())
    begin, *rest = (each.integer() for each in entry.field("data_offsets").items() or [entry])
    if len(rest) != 1 or len(shape) > MAX_RANK or any(not 0 <= x < 2**48 for x in (begin, *shape)):
        raise entry.fault("expected lengths and two offsets, found others")
    numpy_dtype(dtype)
    return FileWeight(file.range(start + begin, rest[0] - begin), shape, dtype)


# Files.


def _bytes(file: OpenFile, offset: int, length: int) -> bytes:
    found = bytearray(file.range(offset, length).length)
    file.read_into(found, offset)
    return bytes(found)


def _read(root: Path, name: str, most: int = MAX_SOURCE_BYTES) -> bytes:
    """Return a file of a folder, no link to one."""
    with OpenFile.open(member_path(os.fspath(root), name)) as file:
        if file.size > most:
            raise FormatError(f"expected at most {most:,} bytes, found {file.size:,}", path=file.path)
        return _bytes(file, 0, file.size)


def _read_json(data: bytes, path: Path) -> AnyValue:
    if nesting_depth(data or b" ") > MAX_NESTING:
        raise FormatError(f"expected at most {MAX_NESTING} levels, found more", path=path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"expected JSON: {error}", path=path) from None


def _input(argument: str, entry: Document) -> Input:
    shape, dtype = entry.optional("shape"), entry.optional("dtype")
    if shape is None or dtype is None:
        raise entry.fault("expected a shape and a dtype: a list of tensors is no input")
    name = dtype.text()
    if name not in DTYPES:
        raise dtype.fault(f"expected a dtype, found {name[:20]!r}")
    lengths = [_length(each) for each in shape.items()]
    return Input(entry.field("name").text(), argument, lengths, name)


def _length(entry: Document) -> DimLike:
    if isinstance(entry.value, str):
        return symbol(entry.value) if entry.value.isidentifier() else Any()
    return entry.integer()
