"""float32 arithmetic in float16."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.core import Array, Weight, dataclass, field, replace
from serde.errors import TypeInferenceError
from serde.relay.ir import Float32, IRModule, OpDef, RelayModel, call, infer_call, trait_of
from serde.relay.ir.bodies import carried, inner_first, map_bodies
from serde.relay.ir.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import post_order, rebuild, rewrite
from serde.relay.transform.base import FunctionPass

__all__ = ["ToFloat16", "float16_overflows", "narrow_constant", "weight_overflows"]

_OVERFLOW = 65520.0
"""The smallest magnitude that rounds to infinity in float16."""


INFINITE = 1e38
"""Finite numbers from here on are what masks have for infinity."""


@dataclass(frozen=True)
class ToFloat16(FunctionPass):
    """Compute in float16 what is computed in float32, with casts only at the borders.

    Weights stay float32 parameters with a cast, which ``fold_weights`` takes into the weight.
    Functions inside and what passes through lets and branches stays float32; so do the states and
    captures of a loop, whose body computes in float16 between casts of its own.

    Args:
        keep: Names of operators, or of nodes (the source name of their span), that stay float32
            besides those that need it.
        keep_io: Whether parameters and results keep their types.
        weights: Names of the parameters that are weights; they keep their types in any case.
        groups: Groups of :class:`~serde.relay.ir.traits.Float32` that stay float32; None for the
            operators of which it says so.
    """

    name: ClassVar[str] = "ToFloat16"

    keep: frozenset[str] = frozenset()
    keep_io: bool = True
    weights: frozenset[str] = frozenset()
    groups: frozenset[str] | None = None

    def transform(self, function: Function) -> Function:
        """Convert one function."""
        return self._convert(function)[0]

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Convert every function; those that others call keep their types."""
        inner = replace(self, keep_io=True)
        functions = {
            variable: (self if variable.name_hint == "main" else inner).transform(
                map_bodies(function, inner.transform)
            )
            for variable, function in mod.functions.items()
        }
        if all(functions[v] is f for v, f in mod.functions.items()):
            return mod, False
        return mod.with_functions(functions), True

    def _convert(self, function: Function) -> tuple[Function, _Converter]:
        params, body = list(function.params), function.body
        if not self.keep_io:
            params, body = self._narrow_params(params, body)
        converter = _Converter(self._keeps)
        result = converter.run(body)
        wanted = body.type
        if not self.keep_io and wanted is not None:
            wanted = _narrow(wanted)
        result = converter.as_type(result, wanted)
        if result is function.body:
            return function, converter
        return function.evolve(params=params, body=result, ret_type=result.type), converter

    def _keeps(self, node: Call) -> bool:
        """Whether a call stays float32."""
        name = "" if node.span is None else node.span.source_name
        if name in self.keep or (isinstance(node.op, OpDef) and node.op.name in self.keep):
            return True
        wide = trait_of(node, Float32)
        if wide is None:
            return False
        return wide.default if self.groups is None else wide.group in self.groups

    def _narrow_params(self, params: list[Var], body: Expr) -> tuple[list[Var], Expr]:
        memo: dict[Expr, Expr] = {}
        for index, param in enumerate(params):
            if param.name_hint in self.weights or param.type != _float32(param.type):
                continue
            narrow = Var(param.name_hint, _narrow(param.type), param.span)
            memo[param] = call("cast", narrow, dtype="float32")
            params[index] = narrow
        return params, rewrite(body, lambda _node, new: new, memo) if memo else body


def _float32(type_: Type | None) -> TensorType | None:
    """Return `type_` itself where it is a float32 tensor."""
    return type_ if isinstance(type_, TensorType) and type_.dtype == "float32" else None


def _narrow(type_: AnyValue) -> AnyValue:
    if isinstance(type_, TensorType) and type_.dtype == "float32":
        return TensorType(type_.shape, "float16")
    if isinstance(type_, TupleType):
        return TupleType(_narrow(field) for field in type_.fields)
    return type_


@dataclass
class _Converter:
    """Builds the float16 form of one function's body, node by node."""

    keeps: Callable[[Call], bool]
    done: dict[Expr, Expr] = field(default_factory=dict)
    casts: dict[tuple[Expr, str], Expr] = field(default_factory=dict)
    overflowed: list[Constant] = field(default_factory=list)

    def run(self, body: Expr) -> Expr:
        """Return the form of `body`; results of single operators may have become float16."""
        inside = _inside_functions(body)
        for node in post_order(body):
            self.done[node] = node if node in inside else self._node(node)
        return self.done[body]

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Tuple):
            return rebuild(node, [self.done[child] for child in node.fields])
        if isinstance(node, TupleGetItem):
            return rebuild(node, [self.done[node.tuple_value]])
        if isinstance(node, Call) and isinstance(node.op, OpDef):
            return self._call(node, node.op)
        if isinstance(node, Call):
            callee = (node.op,) if node.op in self.done else ()
            return self._as_before(node, (*node.args, *callee))
        if isinstance(node, Let):
            return self._as_before(node, (node.var, node.value, node.body))
        if isinstance(node, If):
            return self._as_before(node, (node.cond, node.true_branch, node.false_branch))
        return node

    def _as_before(self, node: Expr, parts: tuple[Expr, ...]) -> Expr:
        return rebuild(node, [self.as_type(self.done[part], part.type) for part in parts])

    def _call(self, node: Call, definition: OpDef) -> Expr:
        if not self.keeps(node) and not carried(node):
            args = [self.as_type(self.done[arg], _narrow(arg.type)) for arg in node.args]
            attrs = {key: _narrow_dtype(value) for key, value in node.attrs.items()}
            new = Call(definition, args, definition.bind(attrs), span=node.span)
            try:
                new.type = infer_call(new)
            except TypeInferenceError:
                new.type = None
            if new.type in (node.type, _narrow(node.type)) and new.type is not None:
                if definition.name == "cast" and new.type == args[0].type:
                    return args[0]
                unchanged = new.type == node.type and all(map(_is, args, node.args))
                return node if unchanged else new
        return self._as_before(node, node.args)

    def as_type(self, node: Expr, wanted: Type | None) -> Expr:
        """Return `node`, cast where its dtype is not the wanted one."""
        if wanted is None or node.type == wanted or node.type is None:
            return node
        if isinstance(wanted, TupleType) and isinstance(node.type, TupleType):
            fields = node.fields if isinstance(node, Tuple) else _fields_of(node, node.type)
            return Tuple(
                [self.as_type(item, want) for item, want in zip(fields, wanted.fields, strict=True)]
            )
        if not isinstance(wanted, TensorType) or not isinstance(node.type, TensorType):
            return node
        if node.type.dtype == wanted.dtype:
            return node
        key = (node, wanted.dtype)
        if key not in self.casts:
            self.casts[key] = self._cast(node, wanted.dtype)
        return self.casts[key]

    def _cast(self, node: Expr, dtype: str) -> Expr:
        if isinstance(node, Constant):
            if dtype == "float16" and _overflows(node.data):
                self.overflowed.append(node)
            return Constant(narrow_constant(node.data, dtype), node.span)
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == "cast":
            source = node.args[0]
            widened = isinstance(source.type, TensorType) and source.type.dtype == dtype
            if widened and dtype == "float16":
                return source
        return call("cast", node, dtype=dtype, span=node.span)


def _is(left: Expr, right: Expr) -> bool:
    return left is right


def _fields_of(node: Expr, type_: TupleType) -> tuple[Expr, ...]:
    return tuple(TupleGetItem(node, index) for index in range(len(type_.fields)))


def _narrow_dtype(value: AnyValue) -> AnyValue:
    is_float32 = isinstance(value, np.dtype) and value == np.float32
    return np.dtype(np.float16) if is_float32 else value


def _inside_functions(body: Expr) -> set[Expr]:
    """Return the nodes that function literals hold; their bodies stay as they are."""
    inside: set[Expr] = set()
    for node in post_order(body):
        if isinstance(node, Function) and node not in inside:
            inside.update(post_order(node))
    return inside


def narrow_constant(data: Array, dtype: str) -> Array:
    """Return a constant in another dtype: in float16 no number but 0 is 0, as it may be a divisor.

    What masks have for infinity is the end of float16, as it is that of float32: it may be a
    factor of 0.
    """
    with np.errstate(over="ignore"):
        found = data.astype(dtype)
    if found.dtype != np.float16:
        return found
    half, size = np.finfo(np.float16), np.abs(data)
    lost, last = (found == 0) & (size > 0), (size >= INFINITE) & np.isfinite(data)
    ends = np.where(lost, half.smallest_subnormal, half.max).astype(dtype)
    return np.where(lost | last, np.copysign(ends, data), found).astype(dtype)


def _overflows(data: Array, below: float = np.inf) -> bool:
    if data.dtype != np.float32:
        return False
    magnitude = np.abs(data)
    return bool(np.any((magnitude < below) & (magnitude >= _OVERFLOW)))


def float16_overflows(
    model: RelayModel,
    *,
    keep: frozenset[str] = frozenset(),
    keep_io: bool = True,
    groups: frozenset[str] | None = None,
    below: float = np.inf,
) -> list[str]:
    """Return what becomes infinite when `model` is converted, one line each.

    Args:
        model: A model with inferred types, not yet converted.
        keep: As for :class:`ToFloat16`.
        keep_io: As for :class:`ToFloat16`.
        groups: As for :class:`ToFloat16`.
        below: Finite numbers from here on stand for infinity, and may become infinite; so may
            what ``where`` chooses.
    """
    to_float16 = ToFloat16(keep, keep_io, frozenset(model.params), groups)
    function, converter = to_float16._convert(model.main)
    inner = replace(to_float16, keep_io=True)
    chosen = set(_chosen_constants(model.main))
    of_bodies = [inner._convert(body)[1] for body in inner_first(model.main)]
    found = [
        f"constant {'' if node.span is None else node.span.source_name}".rstrip()
        for each in (converter, *of_bodies)
        for node in each.overflowed
        if _overflows(node.data, below) and not (node in chosen and below < np.inf)
    ]
    for node in post_order(function):
        weight = model.params.get(_find_narrowed(node))
        if weight is not None and weight_overflows(weight, below):
            found.append(f"weight {_find_narrowed(node)}")
    return found


def _chosen_constants(main: Expr) -> Iterator[Expr]:
    """Yield what ``where`` chooses and nothing computes with before: the numbers of masks."""
    for node in post_order(main):
        if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == "where":
            yield from (each for each in node.args[1:] if isinstance(each, Constant))


def _find_narrowed(node: Expr) -> str:
    """Return the name of the variable that `node` casts to float16, or nothing."""
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name != "cast":
        return ""
    source = node.args[0]
    narrows = isinstance(source, Var) and node.attrs["dtype"] == np.float16
    return source.name_hint if narrows and isinstance(source, Var) else ""


def weight_overflows(weight: Weight, below: float = np.inf) -> bool:
    """Whether a weight of float32 has finite values that float16 has not, less than `below`."""
    if weight.dtype != "float32":
        return False
    return any(
        _overflows(np.frombuffer(chunk, np.float32), below)
        for chunk in weight.chunks()
        if len(chunk)
    )
