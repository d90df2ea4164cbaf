"""TVM's JSON of modules, expressions and types, as ``save_json`` writes it.

What is shared is written once: expressions and variables by what they are, operators, global names
and constructors by their names, types by what they say. The walk keeps its own stack, so that a
graph may have any depth.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core.garbage_collection import pause_garbage_collection
from serde.errors import RelayError
from serde.relay.ir import FuncType, IRModule, OpDef, RefType, TensorType, TupleType, Type, TypeCall
from serde.relay.ir.adt import Clause, Constructor, Match
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Op, Var, astuple
from serde.relay.ir.types import GlobalTypeVar, IncompleteType, walk_type
from serde.relay.text import composite
from serde.relay.text.attribute_classes import attribute_class
from serde.relay.text.json_nodes import NodeWriter
from serde.relay.text.printer import spell_attribute
from serde.relay.text.steps import run_steps
from serde.relayfile.json_kinds import KINDS

__all__ = ["write_graph"]

Step = Generator[AnyValue, AnyValue, int]

_KINDS: Final = {kind.made: kind for kind in KINDS}
_WHOLE_TYPES: Final = (TupleType, FuncType, TypeCall, RefType, IncompleteType)
_NO_SPAN: Final = (Clause, GlobalTypeVar)
_NO_DEVICE: Final = (GlobalVar, Match)


@pause_garbage_collection()
def write_graph(root: IRModule | Expr | Type) -> str:
    """Return TVM's JSON of a module, an expression, an operator or a type.

    Types are written where they are known, spans are not.

    Raises:
        RelayError: TVM has no counterpart of something in it.
    """
    root = astuple(root)
    if not isinstance(root, (IRModule, Expr, Type)):
        found = type(root).__name__
        raise RelayError(f"expected a module, an expression or a type, found {found}")
    writer = _Writer()
    return writer.text(run_steps(writer.node(root)))


class _Writer(NodeWriter):
    def __init__(self) -> None:
        super().__init__()
        self._known: dict[AnyValue, int] = {}
        # By what they are as well, since it takes long to tell what large ones say.
        self._types: dict[int, tuple[Type, int]] = {}

    def node(self, value: AnyValue) -> Step:
        """Write a value with all below it, unless it is written; return its number."""
        if isinstance(value, tuple):
            return (yield self._list(value))
        if isinstance(value, _WHOLE_TYPES) and id(value) in self._types:
            return self._types[id(value)][1]
        key = _identity(value)
        if key in self._known:
            return self._known[key]
        if isinstance(value, Op):
            index = self._known[key] = self.leaf(value.name, "Op")
            return index
        if isinstance(value, Constant):
            index = self._known[key] = self.constant(value, typed=True)
            return index
        if isinstance(value, TensorType):
            return self.tensor_type(value)
        if isinstance(value, Call) and isinstance(value.op, OpDef) and _is_extension(value.op):
            function, arguments = composite.as_function(value, spell_attribute)
            index = self._known[key] = yield self._call(value, function, arguments)
            return index
        index = self._known[key] = self.reserve()
        if isinstance(value, IRModule):
            yield self._module(index, value)
        elif isinstance(value, Call):
            yield self._call(value, value.op, value.args, index)
        elif isinstance(value, Function):
            yield self._function(index, value)
        elif isinstance(value, Var):
            yield self._variable(index, value)
        elif type(value) in _KINDS:
            kind = _KINDS[type(value)]
            fields = {name: getattr(value, name) for name in kind.fields}
            yield self._write(index, kind.keys[0], value, fields)
            if key is value and isinstance(value, _WHOLE_TYPES):
                self._types[id(value)] = value, index
        else:
            raise RelayError(f"TVM's JSON cannot hold a {value!r}"[:200])
        return index

    def _write(self, index: int, key: str, value: AnyValue, fields: Mapping[str, AnyValue]) -> Step:
        """Write an object: what is no text yet and no number becomes a node."""
        texts: dict[str, str] = {}
        for name, field in fields.items():
            if isinstance(field, int):
                texts[name] = str(int(field))
            elif field is None:
                texts[name] = "0"
            else:
                child = self.value(field) if isinstance(field, str) else (yield self.node(field))
                texts[name] = str(child)
        if not isinstance(value, _NO_SPAN):
            texts["span"] = "0"
        if isinstance(value, Expr):
            texts["_checked_type_"] = str((yield self.node(value.type)) if value.type else 0)
            if isinstance(value, _NO_DEVICE):
                texts["virtual_device_"] = "0"
            elif not isinstance(value, Constructor):
                texts["virtual_device_"] = str(self.virtual_device())
        if isinstance(value, GlobalVar):
            texts["struct_info_"] = "0"
        return self.object(index, key, texts)

    def _list(self, items: Sequence[AnyValue]) -> Step:
        index = self.reserve()
        return self.array(index, (yield self._numbers(items)))

    def _numbers(self, items: Iterable[AnyValue]) -> Generator[AnyValue, AnyValue, list[int]]:
        numbers = []
        for item in items:
            numbers.append((yield self.node(item)))
        return numbers

    def _variable(self, index: int, value: Var) -> Step:
        name = self.reserve()
        self.object(name, "relay.Id", {"name_hint": str(self.leaf(value.name_hint))})
        declared = value.type_annotation or value.type
        fields = {"vid": name, "type_annotation": declared}
        return (yield self._write(index, "relay.Var", value, fields))

    def _function(self, index: int, value: Function) -> Step:
        result = value.ret_type
        if result is None and isinstance(value.type, FuncType):
            result = value.type.ret_type
        fields = {
            "params": value.params,
            "body": value.body,
            "ret_type": result,
            "type_params": value.type_params,
            "attrs": self._facts(value.attrs),
        }
        return (yield self._write(index, "relay.Function", value, fields))

    def _facts(self, attrs: Mapping[str, AnyValue]) -> int:
        index, names = self.reserve(), self.reserve()
        self.names(names, {key: self.value(value) for key, value in attrs.items()})
        return self.object(index, "DictAttrs", {"__dict__": str(names)})

    def _call(
        self, value: Call, callee: Expr, arguments: Sequence[Expr], index: int | None = None
    ) -> Step:
        index = self.reserve() if index is None else index
        fields: dict[str, AnyValue] = {"op": (yield self.node(callee))}
        fields["args"] = yield self._list(arguments)
        if isinstance(callee, OpDef) and attribute_class(callee):
            operands = yield self._numbers(arguments)
            fields["attrs"] = self.attributes(callee, value.attrs, operands)
        else:
            fields["attrs"] = 0
        known = callee is value.op and (value.type or value.given_type_args)
        fields["type_args"] = value.type_args if known else ()
        return (yield self._write(index, "relay.Call", value, fields))

    def _module(self, index: int, value: IRModule) -> Step:
        functions = yield self._map(value.functions)
        types = yield self._map(value.type_definitions)
        sources = self.reserve()
        self.object(sources, "SourceMap", {"source_map": str(self.names(self.reserve(), {}))})
        fields = {
            "functions": functions,
            "type_definitions": types,
            "global_var_map_": (yield self._named(value.functions)),
            "global_type_var_map_": (yield self._named(value.type_definitions)),
            "source_map": sources,
            "attrs": self._facts(value.attrs),
            "global_infos": self.names(self.reserve(), {}),
        }
        return self.object(index, "IRModule", {name: str(n) for name, n in fields.items()})

    def _map(self, pairs: Mapping[AnyValue, AnyValue]) -> Step:
        index = self.reserve()
        numbers = yield self._numbers(part for pair in pairs.items() for part in pair)
        return self.array(index, numbers, "Map")

    def _named(self, names: Iterable[AnyValue]) -> Step:
        index = self.reserve()
        numbers = yield self._numbers(names)
        pairs = zip(names, numbers, strict=True)
        return self.names(index, {variable.name_hint: number for variable, number in pairs})

    def tensor_type(self, type_: AnyValue) -> int:
        """Write the type of a tensor once."""
        if type_ not in self._known:
            self._known[type_] = super().tensor_type(type_)
        return self._known[type_]


def _is_extension(operation: OpDef) -> bool:
    return operation.name.startswith("serde.")


def _identity(value: AnyValue) -> AnyValue:
    """Return what two values have in common that are one node."""
    if isinstance(value, GlobalVar):
        return GlobalVar, value.name_hint
    if isinstance(value, Constructor):
        return Constructor, value.belong_to, value.name_hint
    if isinstance(value, _WHOLE_TYPES):
        # What is to be found may differ from place to place.
        unknown = any(isinstance(each, IncompleteType) for each in walk_type(value))
        return object() if unknown else value
    return value
