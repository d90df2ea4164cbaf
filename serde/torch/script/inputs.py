"""Inputs of programs of TorchScript by name, those inside tuples and lists too, and their calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any as AnyValue

from serde.core.optional import require
from serde.errors import CheckError, OptionError
from serde.relay.ir import DimLike, TensorType
from serde.torch.model import Argument, Input, Node, Ref

__all__ = ["Inputs", "call_script"]

_NUMBERS = {"IntType": "int64", "FloatType": "float64", "BoolType": "bool", "NumberType": "float64"}

_INTEGER = re.compile(r"-?[0-9]{1,18}")


class Inputs:
    """Reads the parameters of a program.

    Args:
        shapes: Shapes that the user gives, by name.
        examples: What the program is called with, by name: shapes and dtypes of tensors, and other
            values, which are constants of the program.
        fresh: Makes a name for a value.

    Attributes:
        found: The inputs of the model.
        nodes: Nodes that make of them what the program takes.
        notes: What users should know of parameters that are no inputs.
        constants: Values of parameters that users say, by name.
    """

    def __init__(
        self,
        shapes: Mapping[str, Sequence[AnyValue]],
        examples: Mapping[str, AnyValue],
        fresh: Callable[[str], str],
    ) -> None:
        self.found: list[Input] = []
        self.nodes: list[Node] = []
        self.notes: list[str] = []
        self.constants: dict[str, AnyValue] = {}
        self._examples = examples
        self._given = [*shapes, *examples]
        self._fresh = fresh

    def add(self, value: AnyValue, name: str, has_default: bool, default: AnyValue) -> None:
        """Read a parameter of the program.

        Args:
            value: PyTorch's value.
            name: What users call it.
            has_default: Whether it may be left out.
            default: What it is then.

        Raises:
            OptionError: It is a list or dict of which nobody says what is in it, or a text.
        """
        target = value.debugName()
        type_ = value.type()
        optional = has_default or type_.kind() == "OptionalType"
        if not optional or name in self._given or _entries(self._given, name):
            self._read(type_, name, target)
            return
        if not has_default:
            self.constants[name] = None
        self.nodes.append(Node("prim::Constant", name, [("value", default)], [target]))
        self.notes.append(f"{name} is left out of the inputs: it is {default!r:.100}")

    def _read(self, type_: AnyValue, name: str, target: str) -> None:
        kind = type_.kind()
        if kind == "OptionalType":
            type_ = type_.getElementType()
            kind = type_.kind()
        known = self._examples.get(name)
        if name in self._examples and not isinstance(known, TensorType):
            self.constants[name] = known
            self.nodes.append(Node("prim::Constant", name, [("value", known)], [target]))
        elif kind == "TensorType":
            self._add_tensor(type_, name, target)
        elif kind in _NUMBERS:
            self.found.append(Input(name, target, (), _NUMBERS[kind], number=True))
        elif kind == "TupleType":
            parts = type_.elements()
            self._make("prim::TupleConstruct", enumerate(parts), name, target)
        elif kind == "ListType":
            count = len(self._entries(name, type_))
            parts = enumerate([type_.getElementType()] * count)
            self._make("prim::ListConstruct", parts, name, target)
        elif kind == "DictType":
            self._read_dict(type_, name, target)
        else:
            raise OptionError(f"input {name}: a {type_} is no tensor or number")

    def _add_tensor(self, type_: AnyValue, name: str, target: str) -> None:
        sizes, dtype = type_.sizes(), type_.dtype()
        known = sizes is not None and all(each is not None for each in sizes)
        shape: Sequence[DimLike] | None = list(sizes) if known else None
        kind = None if dtype is None else str(dtype).removeprefix("torch.")
        example = self._examples.get(name)
        if isinstance(example, TensorType):
            shape, kind = shape or example.shape, kind or example.dtype
        elif any(each.startswith(f"{name}.") for each in self._examples):
            raise OptionError(f"input {name} is a tensor; example_inputs has several values for it")
        self.found.append(Input(name, target, shape, kind))

    def _entries(self, name: str, type_: AnyValue) -> list[str]:
        """Return what is in a list or dict, as the names of shapes say."""
        found = _entries(self._given, name)
        if not found:
            raise OptionError(
                f"input {name} is a {type_}: give input_shapes of its entries, "
                f"such as {{'{name}.0': (1, 3)}}"
            )
        return found

    def _read_dict(self, type_: AnyValue, name: str, target: str) -> None:
        pairs: list[tuple[str, Argument]] = []
        for place, key in enumerate(self._entries(name, type_)):
            inner = self._fresh(f"{target}.{key}")
            self._read(type_.getValueType(), f"{name}.{key}", inner)
            number = type_.getKeyType().kind() == "IntType"
            if number and _INTEGER.fullmatch(key) is None:
                raise OptionError(f"input {name} is a {type_}: {key!r} is no key of it")
            pairs += [(f"key{place}", int(key) if number else key), (f"{place}", Ref(inner))]
        self.nodes.append(Node("prim::DictConstruct", name, pairs, [target]))

    def _make(self, op: str, parts: Iterable[tuple[int, AnyValue]], name: str, target: str) -> None:
        values: list[tuple[str, Argument]] = []
        for place, type_ in parts:
            inner = self._fresh(f"{target}.{place}")
            self._read(type_, f"{name}.{place}", inner)
            values.append((str(place), Ref(inner)))
        self.nodes.append(Node(op, name, values, [target]))


_PYTHON_NUMBERS = {"IntType": int, "FloatType": float, "BoolType": bool, "NumberType": float}


def call_script(
    script: AnyValue, constants: Mapping[str, AnyValue]
) -> Callable[[Mapping[str, AnyValue]], AnyValue]:
    """Return what calls a script module or function with tensors by name.

    What is inside a list, tuple or dict has the name of that and its place or key: ``xs.0``.

    Args:
        script: The module or function.
        constants: Arguments that are no tensors, by name.
    """
    function = isinstance(script, require("torch").jit.ScriptFunction)
    schema = script.schema if function else script.forward.schema
    parameters = list(schema.arguments)[0 if function else 1 :]
    declared = [each.name for each in parameters]
    names = [
        f"{name}_{place}" if declared.count(name) > 1 else name
        for place, name in enumerate(declared)
    ]

    def call(tensors: Mapping[str, AnyValue]) -> AnyValue:
        given = {**constants, **tensors}
        arguments: list[AnyValue] = []
        named: dict[str, AnyValue] = {}
        for place, (each, name) in enumerate(zip(parameters, names, strict=True)):
            if name not in given and not _entries(given, name):
                continue
            value = _build(each.type, name, given)
            if len(arguments) == place:
                arguments.append(value)
            else:
                named[each.name] = value
        return script(*arguments, **named)

    return call


def _entries(given: Iterable[str], name: str) -> list[str]:
    """Return what is in a list, tuple or dict of a name, in order."""
    found = [each[len(name) + 1 :] for each in given if each.startswith(f"{name}.")]
    return list(dict.fromkeys(each.partition(".")[0] for each in found))


def _build(type_: AnyValue, name: str, given: Mapping[str, AnyValue]) -> AnyValue:
    """Return an argument of a type."""
    kind = type_.kind()
    if name in given and not isinstance(given[name], require("torch").Tensor):
        return given[name]
    if kind == "OptionalType":
        return _build(type_.getElementType(), name, given)
    if kind == "TensorType":
        return given[name]
    if kind in _PYTHON_NUMBERS:
        return _PYTHON_NUMBERS[kind](given[name].item())
    entries = _entries(given, name)
    if kind != "DictType":
        entries.sort(key=int)
    if kind == "TupleType":
        parts = zip(type_.elements(), entries, strict=True)
        return tuple(_build(part, f"{name}.{entry}", given) for part, entry in parts)
    if kind == "ListType":
        return [_build(type_.getElementType(), f"{name}.{entry}", given) for entry in entries]
    if kind == "DictType":
        number = type_.getKeyType().kind() == "IntType"
        return {
            int(entry) if number else entry: _build(type_.getValueType(), f"{name}.{entry}", given)
            for entry in entries
        }
    raise CheckError(f"input {name}: a {type_} cannot be made")
