"""Caches of a decoder that have a fixed length and are written at a position; none grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from serde.core.records import dataclass
from serde.errors import OptionError, TypeInferenceError
from serde.relay.ir import IRModule, RelayModel, UniqueNames, as_dtype, called_name, has_trait
from serde.relay.ir.dims import Any, Dim, SymDim, substitute
from serde.relay.ir.expr import (
    Attrs,
    Call,
    Constant,
    Expr,
    Function,
    Tuple,
    Var,
    const,
    tensor_type,
)
from serde.relay.ir.registry import call, set_type
from serde.relay.ir.traits import Reduction
from serde.relay.ir.types import TensorType, substitute_type
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.lowering.lengths import LAST, length_of
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.input_types import resolve_attribute, with_input_types
from serde.relay.transform.positions import Positions, read_mask, read_positions

__all__ = ["POSITION", "fix_cache", "with_batch"]

POSITION: Final = "cache_position"
"""What the input is called that says where the new rows go, each behind the one before."""

_MASK: Final = "attention_mask"
_NUMBERS: Final = "position_ids"

_LOW: Final = -1e4
"""A number that hides a key, where it is added to the product with a query, is at most that."""

_COMPARES: Final = ("greater", "greater_equal", "less", "less_equal")
_KEEPS: Final = ("broadcast_to", "cast", "expand_dims", "reshape", "serde.gather_nd", "squeeze")
"""Operators behind which a mask still is one."""


def fix_cache(model: RelayModel, length: int | None, batch: int | None = None) -> RelayModel:
    """Return a model whose caches have room for `length` tokens and are told where the next go.

    What was concatenated behind a cache is written into it, in the rows that the new input
    ``cache_position`` counts, one for each token. Rows behind these are hidden by the mask, by
    which no query sees a later key. Of one text, neither a mask nor the numbers of its tokens are
    asked for.

    Args:
        model: A decoder that takes caches and returns them longer.
        length: Tokens that a cache has room for; None leaves caches as they are.
        batch: How many texts are read at once, where that is open; one if left out.

    Raises:
        OptionError: The model keeps nothing that grows, or does with it what no decoder does.
    """
    if length is not None or batch is not None:
        model = with_batch(model, batch or 1)
    if length is None:
        return model
    caches = _find_caches(model)
    _require_hidden(model.main.body, caches)
    main, meta = model.main, model.meta
    names = UniqueNames([*meta.inputs, *meta.outputs, *model.params])
    position = Var(names.reserve(POSITION), TensorType((caches.new,), "int64"))
    writer = _Writer(model, caches, length, position)
    body = rewrite(main.body, writer.replace, writer.of_inputs())
    kept = [each for each in writer.inputs.values() if each.name_hint not in writer.derived]
    states = [each for each in kept if each.name_hint in meta.states.values()]
    params = [*(each for each in kept if each not in states), position, *states]
    weights = [each for each in main.params if each not in writer.inputs]
    function = Function([*params, *weights], body, None, attrs=main.attrs)
    extra = dict(meta.extra)
    if not isinstance(caches.new, int):
        extra[f"{caches.new}.range"] = f"1:{length}:1"
    found = replace(meta, inputs=tuple(each.name_hint for each in params), extra=extra)
    mod = InferType()(IRModule({"main": function}))
    return model.evolve(mod=mod, values={}, meta=found)


def with_batch(model: RelayModel, batch: int) -> RelayModel:
    """Return a model that keeps something, for a number of texts if it takes any."""
    inputs = {each.name_hint: tensor_type(each) for each in model.inputs()}
    values = {str(inputs[name].shape[0]): batch for name in model.meta.states.values()}
    shapes = {
        name: [substitute(dim, values) for dim in type_.shape] for name, type_ in inputs.items()
    }
    return model.evolve(mod=with_input_types(model.mod, {*model.params}, shapes, {}))


@dataclass(frozen=True)
class _Caches:
    """What grows from call to call.

    Attributes:
        axes: The axis along which an input does.
        past: Its length, a symbol.
        new: How much longer what is returned is.
    """

    axes: Mapping[Var, int]
    past: Dim
    new: Dim

    @property
    def total(self) -> Dim:
        """The length with what is new."""
        return self.past + self.new


def _find_caches(model: RelayModel) -> _Caches:
    inputs = {each.name_hint: each for each in model.inputs()}
    body = model.main.body
    results = body.fields if isinstance(body, Tuple) else (body,)
    outputs = dict(zip(model.meta.outputs, results, strict=True))
    axes: dict[Var, int] = {}
    found: set[tuple[Dim, Dim]] = set()
    for output, name in model.meta.states.items():
        before, after = tensor_type(inputs[name]).shape, tensor_type(outputs[output]).shape
        for axis, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                axes[inputs[name]] = axis
                found.add((old, new - old))
    if len(found) != 1:
        raise OptionError("cache_length: the model keeps nothing that grows from call to call")
    ((past, new),) = found
    return _Caches(axes, past, new)


class _Writer:
    """Writes rows where they were concatenated.

    A token has the same row before and after; what has an entry for each of the old and the new
    tokens has one for each row of the cache.
    """

    def __init__(self, model: RelayModel, caches: _Caches, length: int, position: Var) -> None:
        self._caches = caches
        self._values = {str(caches.past): length - caches.new}
        self._known = read_positions(model.main.body)
        self._position = position
        self._first = call("take", position, const(0, "int64"), axis=0, mode="fast")
        self._place = call("reshape", self._first, newshape=(1,))
        self.inputs = {each: self._fixed(each, length) for each in model.inputs()}
        single = all(tensor_type(each).shape[0] == 1 for each in caches.axes)
        self.derived = (_MASK, _NUMBERS) if single else ()
        self._lengths = {
            dim: (new, axis)
            for old, new in self.inputs.items()
            if old not in caches.axes and old.name_hint not in self.derived
            for axis, dim in enumerate(tensor_type(new).shape)
        }

    def _fixed(self, param: Var, length: int) -> Var:
        type_, axis = tensor_type(param), self._caches.axes.get(param)
        dims = [substitute(dim, self._values) for dim in type_.shape]
        shape = [length if place == axis else dim for place, dim in enumerate(dims)]
        return Var(param.name_hint, TensorType(shape, type_.dtype), param.span)

    def of_inputs(self) -> dict[Expr, Expr]:
        """Return what stands for each input.

        The mask and the numbers of the tokens of one text follow from the position. A graph that
        takes one token at a time has no other mask: no query is before another one.
        """
        found: dict[Expr, Expr] = dict(self.inputs.items())
        for old, new in self.inputs.items():
            type_, derived = tensor_type(new), old.name_hint in self.derived
            if old.name_hint == _MASK:
                mask = call("ones", shape=type_.shape, dtype=type_.dtype) if derived else new
                if self._caches.new == 1:
                    there = call("less_equal", self._counted(0, type_.shape[1]), self._first)
                    mask = call("multiply", mask, call("cast", there, dtype=type_.dtype))
                found[old] = mask
            elif old.name_hint == _NUMBERS and derived:
                found[old] = call("expand_dims", self._position, axis=0)
        return found

    def replace(self, old: Expr, new: Expr) -> Expr:
        """Return what stands for a node, given it with other operands."""
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        name, value = called_name(old), self._known.get(old)
        ends = [self._known.get(each) for each in old.args]
        told = any(each is not None and self._grows(each.offset) for each in ends)
        if value == Positions({-1: 1}, self._caches.past) and _shape(old) == (self._caches.new,):
            return as_dtype(self._position, tensor_type(old).dtype)
        if name == "arange" and value is not None and told:
            first, last = (each.offset for each in ends[:2] if each is not None)
            return self._counted(first, substitute(last - first, self._values))
        if name == "dyn.strided_slice" and told:
            return self._cut(old, new, ends[1])
        if value is not None and not value.factors and self._grows(value.offset):
            number = as_dtype(self._number(value.offset), tensor_type(old).dtype)
            shape = tuple(substitute(dim, self._values) for dim in _shape(old))
            return call("broadcast_to", number, shape=shape) if shape else number
        return self._written(old, new) or self._as_long(old, new)

    def _as_long(self, old: Call, new: Call) -> Expr:
        """Return a call with an entry for each row of the cache, or each new token.

        Raises:
            OptionError: It has entries for a part of the tokens.
        """
        attrs = {name: resolve_attribute(each, self._values) for name, each in new.attrs.items()}
        if called_name(old) == "strided_slice" and old.attrs["begin"] != attrs["begin"]:
            raise _refusal(old, "begins a slice where the new tokens do")
        try:
            found = set_type(Call(new.op, new.args, Attrs(attrs), span=new.span))
        except TypeInferenceError as error:
            raise _refusal(old, str(error)) from None
        parts = [dim for dim in _shape(old) if self._grows(dim) and dim != self._caches.total]
        if parts or (_shape(old) and found.type != substitute_type(old.checked_type, self._values)):
            raise _refusal(old, f"of {old.type!r} would be {found.type!r}")
        return found

    def _grows(self, dim: object) -> bool:
        return isinstance(dim, SymDim) and str(self._caches.past) in dim.symbols()

    def _number(self, value: Dim) -> Expr:
        """Return a number of tokens as a scalar: that of the old ones is the position."""
        rest = value - self._caches.past
        if self._grows(rest) or isinstance(rest, Any):
            raise OptionError(f"cache_length: nothing is known of {value} tokens")
        return self._first if rest == 0 else call("add", self._first, self._length(rest))

    def _length(self, dim: Dim) -> Expr:
        if isinstance(dim, int):
            return const(dim, "int64")
        if dim not in self._lengths:
            raise OptionError(f"cache_length: no input is of length {dim}")
        return length_of(*self._lengths[dim])

    def _counted(self, first: Dim, length: Dim) -> Expr:
        """Return numbers of tokens, from a first one on."""
        if first == self._caches.past and length == self._caches.new:
            return self._position
        ends = const(0, "int64"), self._length(length), const(1, "int64")
        found = call("reshape", call("arange", *ends, dtype="int64"), newshape=(length,))
        return found if first == 0 else call("add", found, self._number(first))

    def _cut(self, old: Call, new: Call, first: Positions | None) -> Expr:
        """Return the entries of some new tokens, the last of all."""
        ends = [each.data.tolist() if isinstance(each, Constant) else [] for each in old.args[2:]]
        if first is None or ends[1] != [1] or len(ends[0]) != 1 or ends[0][0] < LAST:
            raise _refusal(old, "cuts out a part that ends where the new tokens do not")
        (axis,) = old.attrs["axes"]
        length = substitute(self._caches.total - first.offset, self._values)
        return call("take", new.args[0], self._counted(first.offset, length), axis=axis)

    def _written(self, old: Call, new: Call) -> Expr | None:
        """Return a cache with new rows in it, for one with rows behind it."""
        before, after = (each.args[0] if each.args else each for each in (old, new))
        if called_name(old) != "concatenate" or not isinstance(before, Tuple):
            return None
        first = before.fields[0]
        axis = self._caches.axes.get(first) if isinstance(first, Var) else None
        if axis is None or not isinstance(after, Tuple) or len(after.fields) != 2:
            return None
        if old.attrs["axis"] % tensor_type(old).rank != axis:
            return None
        cache, rows = after.fields
        batch, heads, *rest = tensor_type(cache).shape
        if batch != 1:  # One position for all: the texts count as heads.
            lengths = tensor_type(rows).shape[2:]
            cache = call("reshape", cache, newshape=(1, batch * heads, *rest))
            rows = call("reshape", rows, newshape=(1, batch * heads, *lengths))
        found = call("serde.tensor_scatter", cache, rows, self._place, axis=axis)
        return found if batch == 1 else call("reshape", found, newshape=(batch, heads, *rest))


def _refusal(node: Call, reason: str) -> OptionError:
    name = "" if node.span is None else f" {node.span.source_name}"
    return OptionError(f"cache_length: {called_name(node)}{name} {reason}")


def _require_hidden(body: Expr, caches: _Caches) -> None:
    """Refuse what may depend on rows of a cache that are not yet written.

    Raises:
        OptionError: Something does.
    """
    hiding: set[Expr] = set()
    for node in post_order(body):
        if _hides(node, caches, hiding):
            hiding.add(node)
        if not isinstance(node, Call):
            continue
        name, first = called_name(node), _shape(node.args[0]) if node.args else ()
        if name == "serde.attention":
            mixes, mask = _shape(node.args[1])[2] == caches.total, node.args[3]
        elif name == "nn.softmax":
            mixes, mask = first[node.attrs["axis"]] == caches.total, node.args[0]
        else:
            gone = caches.total in first and caches.total not in _shape(node)
            mixes, mask = gone and has_trait(node, Reduction), node
        if mixes and mask not in hiding:
            raise _refusal(node, "may see keys that are not yet there")


def _hides(node: Expr, caches: _Caches, hiding: set[Expr]) -> bool:
    """Whether a node is a mask, or a sum with one, by which no query sees a later key."""
    name = called_name(node)
    if not isinstance(node, Call):
        return isinstance(node, Var) and caches.new == 1 and node.name_hint == _MASK
    if name in _COMPARES:
        return read_mask(node).upper == caches.past
    if name == "where":
        low = node.args[2]
        hidden = isinstance(low, Constant) and bool((low.data <= _LOW).all())
        return hidden and node.args[0] in hiding
    if name in ("add", "logical_and"):
        return not hiding.isdisjoint(node.args)
    return name in _KEEPS and node.args[0] in hiding


def _shape(node: Expr) -> tuple[Dim, ...]:
    return node.type.shape if isinstance(node.type, TensorType) else ()
