"""A written folder as a program: its module, its weights, and what ``config.json`` says of it."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Weight
from serde.errors import FormatError
from serde.io.contained import member_path, read_small
from serde.relay.ir import Any, symbol
from serde.torch.model import Argument, Graph, Input, Node, Ref, TorchModel
from serde.torch.pt2.document import Document
from serde.torch.safetensors import DTYPES, read_document, read_safetensors
from serde.torch.source.calls import LOADER_NAME
from serde.torch.source.statements import Compiler
from serde.torch.source.syntax import MAX_SOURCE_BYTES, Unit
from serde.torch.source.values import Class, Frame, Globals, Held, Instance, Library
from serde.torch.written.folder import CONFIG, SOURCE, WEIGHTS
from serde.torch.written.source import LOADER

__all__ = ["load_folder"]

_IMPORTED: Final = (
    "__future__.annotations", "collections.OrderedDict", "math", "pathlib.Path", "torch",
)  # fmt: skip
"""What a module may import; of PyTorch what is directly in it."""


def load_folder(path: Path) -> TorchModel:
    """Return the program of a folder, of which nothing is run.

    Raises:
        FormatError: Its source is not of the subset that serde writes, or its files do not fit.
    """
    try:
        config = read_document(_read(path, CONFIG), CONFIG, path)
        stored = read_safetensors(member_path(os.fspath(path), WEIGHTS))
        unit = Unit(_read(path, SOURCE).decode("utf-8", "replace"), SOURCE)
        return _read_module(path, unit, config, stored)
    except RecursionError:
        raise FormatError(f"{SOURCE}: expected few levels, found deeper ones", path=path) from None
    except FormatError as error:
        raise error if error.path else FormatError(str(error), path=path) from None


def _read_module(
    path: Path, unit: Unit, config: Document, stored: Mapping[str, Weight]
) -> TorchModel:
    reader = Compiler(_library(), unit)
    kind = _read_globals(unit, reader).names.get("Model")
    if not isinstance(kind, Class):
        raise unit.fault(unit.tree, "a class Model")
    model = reader.construct(kind, [], {})
    weights = _place(model, stored)
    forward = kind.method("forward", model)
    if forward is None:
        raise unit.fault(unit.tree, "a method forward of Model")
    declared = {x.field("argument").text(): x for x in config.field("inputs").items()}
    outputs = [each.field("name").text() for each in config.field("outputs").items()]
    inputs = []
    for each in forward.definition.args.args[1:]:
        if each.arg not in declared:
            raise unit.fault(each, f"an input that {CONFIG} describes")
        inputs.append(_input(each.arg, declared[each.arg]))
    nodes: list[Node] = []
    reader.nodes = nodes
    reader.frame = Frame(forward.home)
    result = reader.call_module(model, [Ref(each.value) for each in inputs], {})
    if isinstance(result, Ref) and len(outputs) > 1:
        names = reader.write("prim::TupleUnpack", [result], {}, len(outputs))
        result = tuple(map(Ref, names))
    several = isinstance(result, tuple) and len(outputs) == len(result)
    results: list[Argument] = [*map(reader.argument, result if several else [result])]
    if len(results) != len(outputs):
        raise unit.fault(forward.definition, f"{len(outputs)} results, as {CONFIG} says")
    graph = Graph([each.value for each in inputs], nodes, results, reader.weights)
    return TorchModel(graph, inputs, outputs, weights, "source", path=path)


def _read_globals(unit: Unit, reader: Compiler, found: Globals | None = None) -> Globals:
    """Return the names of a module: what it imports, and what it defines."""
    found = found or Globals(unit)
    for node in unit.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for each in node.names:
                full = home + each.name
                plain = full.removeprefix("torch.") if full != "torch.nn.functional" else ""
                if full not in _IMPORTED and (plain == full or "." in plain):
                    raise unit.fault(node, f"imports of {', '.join(_IMPORTED)}")
                if plain == "*":
                    raise unit.fault(node, "names that are imported")
                top = full if each.asname or home else full.partition(".")[0]
                found.names[each.asname or each.name.partition(".")[0]] = Library(top)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            reader.define(node, found)
    for kind in found.names.values():
        loader = kind.methods.get(LOADER_NAME) if isinstance(kind, Class) else None
        if loader is not None and ast.dump(loader) != _loader():
            raise unit.fault(loader, f"{LOADER_NAME} as serde writes it")
    return found


@cache
def _loader() -> str:
    """Return what reads weights; another one would take them from elsewhere."""
    (kind,) = ast.parse(f"class Model:\n{LOADER}").body
    return ast.dump(kind.body[0])  # type: ignore[attr-defined]


@cache
def _library() -> Globals:
    """Return PyTorch's own modules and functions as far as they are no operators themselves."""
    text = (Path(__file__).parent / "definitions.py").read_text(encoding="utf-8")
    found = Globals(Unit(text, "definitions.py", is_own=True))
    return _read_globals(found.unit, Compiler(found, found.unit), found)


# Weights.


def _place(model: Instance, stored: Mapping[str, Weight]) -> dict[str, Weight]:
    """Return the weights of a module by name, each of the type that its constructor says."""
    held: dict[str, Held] = {}
    seen: set[int] = set()
    pending = [("", model)]
    while pending:
        path, module = pending.pop()
        module.path = path
        for key, value in module.attributes.items():
            name = f"{path}.{key}".lstrip(".")
            if isinstance(value, (Instance, Held)) and id(value) in seen:
                if isinstance(value, Instance) and not _holds(value):
                    continue
                raise FormatError(f"{SOURCE}: expected modules and weights once, found {name} too")
            seen.add(id(value))
            if isinstance(value, Instance):
                pending.append((name, value))
            elif isinstance(value, Held) and value.is_state:
                held[name], value.name = value, name
    counters = {x for x in held if x.endswith("num_batches_tracked")}  # PyTorch adds what lacks.
    wrong = sorted((held.keys() - counters) ^ (stored.keys() - counters))
    if wrong:
        found = f"expected {wrong[0]}" if wrong[0] in held else f"found {wrong[0]} as well"
        raise FormatError(f"{WEIGHTS}: expected the weights of {SOURCE}, {found[:200]}")
    for name, weight in stored.items():
        if (weight.shape, weight.dtype) != (held[name].shape, held[name].dtype):
            one, other = (f"{x.dtype}{list(x.shape)}" for x in (held[name], weight))
            raise FormatError(f"{WEIGHTS}: {name[:200]}: expected {one}, found {other}")
    return dict(stored)


def _holds(module: Instance) -> bool:
    """Whether a module has modules or weights."""
    return any(isinstance(each, (Instance, Held)) for each in module.attributes.values())


# Files.


def _read(root: Path, name: str) -> bytes:
    """Return a file of a folder, no link to one."""
    return read_small(member_path(os.fspath(root), name), MAX_SOURCE_BYTES)


def _input(argument: str, entry: Document) -> Input:
    shape, dtype = entry.optional("shape"), entry.optional("dtype")
    if shape is None or dtype is None or dtype.text() not in DTYPES:
        raise entry.fault("expected a shape and a dtype: a list of tensors is no input")
    lengths: list[AnyValue] = [each.value for each in shape.items()]
    for place, each in enumerate(shape.items()):
        if isinstance(each.value, str):
            lengths[place] = symbol(each.value) if each.value.isidentifier() else Any()
        elif each.integer() < 0:
            raise each.fault("expected a length, found a negative one")
    return Input(entry.field("name").text(), argument, lengths, dtype.text())
