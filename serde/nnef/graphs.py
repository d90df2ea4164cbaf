"""Graphs of Khronos' package as native models.

What the parser gives is taken as what users made in memory: nothing of a graph is changed, all of
it is checked, and what a graph leaves out has the default that the standard says.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core import MAX_RANK, require
from serde.errors import FormatError
from serde.nnef.fragments import FRAGMENTS, QUANTIZERS, REQUIRED
from serde.nnef.model import Argument, NnefModel, Operation, Quantization, Ref, flatten

__all__ = ["check_model", "model_of_graph"]

_ELEMENTS: Final = (None, "scalar", "integer", "logical")
_MOST_BITS: Final = 64
"""Of a quantised integer: tensor files hold no wider ones."""

_FLOAT32: Final = float(np.finfo(np.float32).max)

_UNSOUND: Final = (
    AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What comes of parts of a graph that are not of their types."""

Place = Callable[[str], str]


def model_of_graph(graph: AnyValue, path: str | os.PathLike[str] | None = None) -> NnefModel:
    """Return an ``nnef.Graph`` as a native model, which shares nothing with it.

    Args:
        graph: The graph.
        path: Where it was read from, for messages.

    Raises:
        FormatError: Its parts are not of the types that they have in the package.
    """
    try:
        return _model_of_graph(graph)
    except _UNSOUND as error:
        raise FormatError(f"expected a graph of the package nnef: {error!r}", path=path) from error


def _model_of_graph(graph: AnyValue) -> NnefModel:
    identifier = require("nnef").Identifier
    operations = [_operation(each, graph.tensors, identifier) for each in graph.operations]
    return NnefModel(
        name=str(graph.name),
        inputs=tuple(map(_name, graph.inputs)),
        outputs=tuple(map(_name, graph.outputs)),
        operations=[each for each in operations if not _copies_itself(each)],
        quantization={
            _name(name): _quantization(tensor.quantization)
            for name, tensor in graph.tensors.items()
            if tensor.quantization
        },
    )


def _name(given: AnyValue) -> str:
    if not isinstance(given, str):
        raise TypeError(f"expected the name of a tensor, found {given!r}")
    return str(given)


def _copies_itself(operation: Operation) -> bool:
    """Whether it is a copy to where the tensor is: so the parser expands fragments with lists."""
    return operation.op == "copy" and operation.operands() == [Ref(operation.results()[0])]


def _operation(operation: AnyValue, tensors: AnyValue, identifier: type) -> Operation:
    """Return an operation with its operands in the order of the standard."""
    given = {name: _argument(value) for name, value in operation.inputs.items()}
    attributes = {name: _attribute(value) for name, value in operation.attribs.items()}
    signature = FRAGMENTS.get(operation.name)
    inputs = given
    if signature is not None:
        inputs = {}
        for each in signature.inputs:
            # Literals may stand among the attributes in graphs made by hand.
            found = given.pop(each.name, attributes.pop(each.name, each.default))
            if found is REQUIRED:
                raise ValueError(f"{operation.name} without its operand {each.name!r}")
            inputs[each.name] = _as_scalar(found) if each.element == "scalar" else found
        if given:
            raise ValueError(f"{operation.name} has no operand {next(iter(given))!r}")
    outputs = tuple(map(_result, operation.outputs.values()))
    dtype = operation.dtype
    if dtype is None and signature is not None and not signature.inputs:
        first = next(iter(flatten(outputs)), None)
        dtype = tensors[first].dtype if first in tensors else None
    return Operation(_name(operation.name), inputs, attributes, outputs, dtype)


def _as_scalar(given: Argument) -> Argument:
    """Return an operand of scalars; a whole number is one in graphs made by hand."""
    if isinstance(given, tuple):
        return tuple(map(_as_scalar, given))
    return float(given) if type(given) is int else given


def _argument(value: AnyValue) -> Argument:
    """Return an operand; there are no texts among them, so a text is a name."""
    if isinstance(value, str):
        return Ref(str(value))
    if isinstance(value, (list, tuple)):
        return tuple(map(_argument, value))
    if value is None:
        raise TypeError("expected a tensor or a number, found None")
    return _literal(value)


def _result(value: AnyValue) -> str | tuple[str, ...]:
    return tuple(map(_name, value)) if isinstance(value, (list, tuple)) else _name(value)


def _attribute(value: AnyValue) -> AnyValue:
    if isinstance(value, (list, tuple)):
        return tuple(map(_attribute, value))
    if isinstance(value, np.ndarray) and value.ndim:
        return tuple(map(_attribute, value))
    return str(value) if isinstance(value, str) else _literal(value)


def _literal(value: AnyValue) -> AnyValue:
    """Return a literal; the shortest number with a fraction that is the float32 it was read as."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    if value is not None and not isinstance(value, (bool, int, float)):
        raise TypeError(f"expected a number, found {value!r}")
    if isinstance(value, float) and abs(value) <= _FLOAT32 and value == np.float32(value):
        return float(str(np.float32(value)))
    return value


def _quantization(entries: Mapping[str, AnyValue]) -> Quantization:
    attributes = {n: _attribute(value) for n, value in entries.items() if n != "op-name"}
    return Quantization(_name(entries["op-name"]), attributes)


def check_model(
    model: NnefModel, path: str | os.PathLike[str] | None, place: Place = lambda _name: ""
) -> None:
    """Refuse a graph whose tensors are not each given once, before they are read.

    Args:
        model: The graph.
        path: Where it was read from, for messages.
        place: Tells where the text has a name, to begin a message with.

    Raises:
        FormatError: What is wrong with it.
    """
    for name, message in _faults(model):
        raise FormatError(f"{place(name)}{message}", path=path)


def _faults(model: NnefModel) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a graph, with the name that it is about."""
    given: set[str] = set()
    variables: set[str] = set()
    updated: set[str] = set()
    for operation in model.operations:
        for operand in operation.operands():
            if isinstance(operand, Ref) and operand.name not in given:
                yield operand.name, f"{operation.op}: nothing gives tensor {operand.name!r}"
        results = operation.results()
        for name in results:
            if name in given:
                yield name, f"tensor {name!r} is given twice"
            if not name:
                yield name, f"{operation.op} gives a tensor without a name"
            given.add(name)
        yield from _operation_faults(operation, variables)
        if operation.op == "variable":
            variables.update(results)
        target = operation.inputs.get("variable") if operation.op == "update" else None
        if isinstance(target, Ref):
            if target.name in updated:
                yield target.name, f"update: variable {target.name!r} is updated twice"
            updated.add(target.name)
    yield from _interface_faults(model, given)
    for name in model.quantization:
        if name not in given:
            yield name, f"nothing gives tensor {name!r}, which is quantised"
    for name, entry in model.quantization.items():
        if entry.op in QUANTIZERS:
            signature = FRAGMENTS[entry.op]
            known = {each.name for each in signature.inputs[1:]} | signature.attributes.keys()
            for each in sorted(known ^ entry.attributes.keys()):
                what = "without" if each in known else "has no"
                yield name, f"{entry.op} of tensor {name!r}: {what} parameter {each!r}"
            if not _is_bits(entry.attributes["bits"]):
                yield name, f"{entry.op} of tensor {name!r}: expected 1 to {_MOST_BITS} bits"


def _operation_faults(operation: Operation, variables: set[str]) -> Iterator[tuple[str, str]]:
    name = next(iter(operation.results()), operation.op)
    if operation.dtype not in _ELEMENTS:
        yield name, f"{operation.op}: no tensor has elements of type {operation.dtype}"
    if operation.op in ("external", "variable"):
        if len(operation.results()) != 1:
            yield name, f"{operation.op} gives one tensor, found {len(operation.results())}"
        shape = operation.attributes.get("shape")
        if not _is_shape(shape):
            yield name, f"{operation.op} {name!r}: expected a shape, found {shape!r}"
    if operation.op == "variable" and not isinstance(operation.attributes.get("label"), str):
        yield name, f"variable {name!r} has no label"
    if operation.op in QUANTIZERS and not _is_bits(operation.attributes.get("bits")):
        yield name, f"{operation.op}: expected 1 to {_MOST_BITS} bits"
    if operation.op == "update":
        target = operation.inputs["variable"]
        if not isinstance(target, Ref) or target.name not in variables:
            found = target.name if isinstance(target, Ref) else target
            yield name, f"update: expected a variable, found {found!r}"


def _is_bits(bits: AnyValue) -> bool:
    return type(bits) is int and 1 <= bits <= _MOST_BITS


def _is_shape(shape: AnyValue) -> bool:
    """Whether it is lengths of axes."""
    return (
        isinstance(shape, tuple)
        and len(shape) <= MAX_RANK
        and all(type(each) is int and 0 <= each < 2**31 for each in shape)
    )


def _interface_faults(model: NnefModel, given: set[str]) -> Iterator[tuple[str, str]]:
    externals = model.externals()
    for name in model.inputs:
        if name not in externals:
            yield name, f"input {name!r} is not declared by external"
    for name in externals:
        if name not in model.inputs:
            yield name, f"external {name!r} is no parameter of the graph"
    for names, what in ((model.inputs, "input"), (model.outputs, "output")):
        for name, count in Counter(names).items():
            if count > 1:
                yield name, f"a second {what} is called {name!r}"
    for name in model.outputs:
        if name not in given:
            yield name, f"output {name!r} is no result of an operation: copy what it stands for"
