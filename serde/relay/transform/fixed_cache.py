"""Caches of a decoder that have a fixed length and are written at a position; none grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from serde.errors import OptionError, TypeInferenceError
from serde.relay.ir import IRModule, RelayModel, as_dtype, call, called_name, const, has_trait
from serde.relay.ir.dims import Dim, SymDim, substitute
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, Tuple, Var, tensor_type
from serde.relay.ir.leaves import known_shape
from serde.relay.ir.registry import set_type
from serde.relay.ir.traits import Reduction
from serde.relay.ir.types import TensorType, substitute_type
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.lowering.lengths import LAST, length_of
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.input_types import resolve_attribute, with_input_types
from serde.relay.transform.positions import Positions, read_mask, read_positions

__all__ = ["fix_cache", "with_batch"]

_MASK, _NUMBERS, _POSITION = "attention_mask", "position_ids", "cache_position"

_LOW: Final = -1e4
"""A number that hides a key, where it is added to the product with a query, is at most that."""

_COMPARES: Final = ("greater", "greater_equal", "less", "less_equal")
_KEEPS: Final = ("broadcast_to", "cast", "expand_dims", "reshape", "serde.gather_nd", "squeeze")
"""Operators behind which a mask still is one."""


def fix_cache(model: RelayModel, length: int | None, batch: int | None = None) -> RelayModel:
    """Return a model whose caches have room for `length` tokens and are told where the next go.

    What was concatenated behind a cache is written into the rows that the new input
    ``cache_position`` counts, one for each token. Rows behind these are hidden, as no query sees a
    later key. Of one text, neither a mask nor the numbers of its tokens are asked for.

    Args:
        model: A decoder that takes caches and returns them longer.
        length: Tokens that a cache has room for; None leaves caches as they are.
        batch: How many texts are read at once, where that is open; one if left out.

    Raises:
        OptionError: The model keeps nothing that grows, or does with it what no decoder does.
    """
    for name, given in (("cache_length", length), ("cache_batch", batch)):
        if given is not None and given < 1:
            raise OptionError(f"{name}: expected 1 or more, found {given}")
    if length is not None or batch is not None:
        model = with_batch(model, batch or 1)
    return model if length is None else _Fixing(model, length).run()


def with_batch(model: RelayModel, batch: int) -> RelayModel:
    """Return a model that keeps something, for a number of texts if it takes any."""
    inputs = {each.name_hint: known_shape(each) for each in model.inputs()}
    values = {str(inputs[name][0]): batch for name in model.meta.states.values()}
    shapes = {name: [substitute(dim, values) for dim in x] for name, x in inputs.items()}
    return model.evolve(mod=with_input_types(model.mod, {*model.params}, shapes, {}))


class _Fixing:
    """Writes new rows into the caches of a model where they were concatenated.

    A token has the same row before and after; what has an entry for each of the old and the new
    tokens has one for each row of the cache.
    """

    def __init__(self, model: RelayModel, length: int) -> None:
        self._model, self._range = model, f"1:{length}:1"
        names = {each.name_hint: each for each in model.inputs()}
        body = model.main.body
        fields = body.fields if isinstance(body, Tuple) else (body,)
        results = dict(zip(model.meta.outputs, fields, strict=True))
        # Along which axis an input grows, from which length on, and by how much.
        self._axes: dict[Expr, int] = {}
        growth: set[tuple[Dim, Dim]] = set()
        for output, name in model.meta.states.items():
            ends = zip(known_shape(names[name]), known_shape(results[output]), strict=True)
            for axis, (old, new) in enumerate(ends):
                if old != new:
                    self._axes[names[name]] = axis
                    growth.add((old, new - old))
        if len(growth) != 1 or any(isinstance(past, int) for past, _ in growth):
            raise OptionError("cache_length: the model keeps nothing that grows from call to call")
        ((self._past, self._new),) = growth
        self._total = self._past + self._new
        self._values: dict[str, Dim] = {str(self._past): length - self._new}
        self._known = read_positions(body)
        taken = UniqueNames([*names, *model.meta.outputs, *model.params])
        self._position = Var(taken.reserve(_POSITION), TensorType((self._new,), "int64"))
        self._first = call("take", self._position, const(0, "int64"), axis=0, mode="fast")
        self._inputs = {each: self._fixed(each, length) for each in names.values()}
        single = all(known_shape(each)[0] == 1 for each in self._axes)
        self._derived = (_MASK, _NUMBERS) if single else ()
        self._lengths = {
            dim: (new, axis)
            for old, new in self._inputs.items()
            if old not in self._axes and old.name_hint not in self._derived
            for axis, dim in enumerate(known_shape(new))
        }

    def _fixed(self, param: Var, length: int) -> Var:
        type_, axis = tensor_type(param), self._axes.get(param)
        dims = [substitute(dim, self._values) for dim in type_.shape]
        shape = [length if place == axis else dim for place, dim in enumerate(dims)]
        return Var(param.name_hint, TensorType(shape, type_.dtype), param.span)

    def run(self) -> RelayModel:
        """Return the model."""
        main, meta = self._model.main, self._model.meta
        self._require_hidden(main.body)
        body = rewrite(main.body, self._replace, self._of_inputs())
        kept = [each for each in self._inputs.values() if each.name_hint not in self._derived]
        states = [each for each in kept if each.name_hint in meta.states.values()]
        params = [*(each for each in kept if each not in states), self._position, *states]
        weights = [each for each in main.params if each not in self._inputs]
        function = Function([*params, *weights], body, None, attrs=main.attrs)
        extra = dict(meta.extra)
        if isinstance(self._new, SymDim):
            extra[f"{self._new}.range"] = self._range
        found = replace(meta, inputs=tuple(each.name_hint for each in params), extra=extra)
        mod = InferType()(IRModule({"main": function}))
        return self._model.evolve(mod=mod, values={}, meta=found)

    def _of_inputs(self) -> dict[Expr, Expr]:
        """Return what stands for each input.

        The mask and the numbers of the tokens of one text follow from the position. A graph that
        takes one token at a time has no other mask: no query is before another one.
        """
        found: dict[Expr, Expr] = dict(self._inputs.items())
        for old, new in self._inputs.items():
            type_, derived = tensor_type(new), old.name_hint in self._derived
            if old.name_hint == _MASK:
                mask = call("ones", shape=type_.shape, dtype=type_.dtype) if derived else new
                if self._new == 1:
                    there = call("less_equal", self._counted(0, type_.shape[1]), self._first)
                    mask = call("multiply", mask, call("cast", there, dtype=type_.dtype))
                found[old] = mask
            elif old.name_hint == _NUMBERS and derived:
                found[old] = call("expand_dims", self._position, axis=0)
        return found

    def _replace(self, old: Expr, new: Expr) -> Expr:
        """Return what stands for a node, given it with other operands."""
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        name, value = called_name(old), self._known.get(old)
        ends = [self._known.get(each) for each in old.args]
        told = any(each is not None and self._grows(each.offset) for each in ends)
        if value == Positions({-1: 1}, self._past) and known_shape(old) == (self._new,):
            return as_dtype(self._position, tensor_type(old).dtype)
        if name == "arange" and value is not None and told:
            first, last = (each.offset for each in ends[:2] if each is not None)
            return self._counted(first, substitute(last - first, self._values))
        if name == "dyn.strided_slice" and told:
            return self._cut(old, new, ends[1])
        if value is not None and not value.factors and self._grows(value.offset):
            number = as_dtype(self._number(value.offset), tensor_type(old).dtype)
            shape = tuple(substitute(dim, self._values) for dim in known_shape(old))
            return call("broadcast_to", number, shape=shape) if shape else number
        return self._written(old, new) or self._as_long(old, new)

    def _as_long(self, old: Call, new: Call) -> Expr:
        """Return a call with an entry for each row of the cache or new token; refuse others."""
        attrs = {name: resolve_attribute(each, self._values) for name, each in new.attrs.items()}
        if called_name(old) == "strided_slice" and old.attrs["begin"] != attrs["begin"]:
            raise _refusal(old, "begins a slice where the new tokens do")
        try:
            found = set_type(Call(new.op, new.args, Attrs(attrs), span=new.span))
        except TypeInferenceError as error:
            raise _refusal(old, str(error)) from None
        parts = [dim for dim in known_shape(old) if self._grows(dim) and dim != self._total]
        if parts or (
            known_shape(old) and found.type != substitute_type(old.checked_type, self._values)
        ):
            raise _refusal(old, f"of {old.type!r} would be {found.type!r}")
        return found

    def _grows(self, dim: object) -> bool:
        return isinstance(dim, SymDim) and str(self._past) in dim.symbols()

    def _number(self, value: Dim) -> Expr:
        """Return a number of tokens as a scalar: that of the old ones is the position."""
        rest = value - self._past
        return self._first if rest == 0 else call("add", self._first, self._length(rest))

    def _length(self, dim: Dim) -> Expr:
        if isinstance(dim, int):
            return const(dim, "int64")
        if dim not in self._lengths:
            raise OptionError(f"cache_length: nothing is known of {dim} tokens")
        return length_of(*self._lengths[dim])

    def _counted(self, first: Dim, length: Dim) -> Expr:
        """Return numbers of tokens, from a first one on."""
        if first == self._past and length == self._new:
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
        length = substitute(self._total - first.offset, self._values)
        return call("take", new.args[0], self._counted(first.offset, length), axis=axis)

    def _written(self, old: Call, new: Call) -> Expr | None:
        """Return a cache with new rows in it, for one with rows behind it."""
        before, after = (each.args[0] if each.args else each for each in (old, new))
        if called_name(old) != "concatenate" or not isinstance(before, Tuple):
            return None
        axis = self._axes.get(before.fields[0])
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
        place = call("reshape", self._first, newshape=(1,))
        found = call("serde.tensor_scatter", cache, rows, place, axis=axis)
        return found if batch == 1 else call("reshape", found, newshape=(batch, heads, *rest))

    def _require_hidden(self, body: Expr) -> None:
        """Refuse what may depend on rows of a cache that are not yet written."""
        hiding: set[Expr] = set()
        for node in post_order(body):
            if self._hides(node, hiding):
                hiding.add(node)
            if not isinstance(node, Call):
                continue
            name, first = called_name(node), known_shape(node.args[0]) if node.args else ()
            if name == "serde.attention":
                mixes, mask = known_shape(node.args[1])[2] == self._total, node.args[3]
            elif name == "nn.softmax":
                mixes, mask = first[node.attrs["axis"]] == self._total, node.args[0]
            else:
                gone = self._total in first and self._total not in known_shape(node)
                mixes, mask = gone and has_trait(node, Reduction), node
            if mixes and mask not in hiding:
                raise _refusal(node, "may see keys that are not yet there")

    def _hides(self, node: Expr, hiding: set[Expr]) -> bool:
        """Whether a node is a mask, or a sum with one, by which no query sees a later key."""
        name = called_name(node)
        if not isinstance(node, Call):
            return isinstance(node, Var) and self._new == 1 and node.name_hint == _MASK
        if name in _COMPARES:
            return read_mask(node).upper == self._past
        if name == "where":
            low = node.args[2]
            hidden = isinstance(low, Constant) and bool((low.data <= _LOW).all())
            return hidden and node.args[0] in hiding
        if name in ("add", "logical_and"):
            return not hiding.isdisjoint(node.args)
        return name in _KEEPS and node.args[0] in hiding


def _refusal(node: Call, reason: str) -> OptionError:
    name = "" if node.span is None else f" {node.span.source_name}"
    return OptionError(f"cache_length: {called_name(node)}{name} {reason}")
