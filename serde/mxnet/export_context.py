"""What a converter from Relay to MXNet may reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from typing import Any as AnyValue, Final, Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import Array, dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.builder import GraphBuilder, Subgraph, Value
from serde.mxnet.model import COMPUTED
from serde.relay.ir import Any, Dim, Function, TensorType, TupleType, Type
from serde.relay.ir.shapes import find_inserted
from serde.walk import export_context as walk
from serde.walk.export_context import Body, Values, Writing
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable

__all__ = ["ExportContext", "Subgraph", "require_computed"]

_MOST_RESHAPED: Final = 6
"""Axes of what oneDNN reshapes to, at most, which MXNet asks to; its NumPy's operator does not."""

MAX_LEVEL: Final = 30
"""Subgraphs inside each other: MXNet reads their JSON text recursively."""


class ExportContext(walk.ExportContext[Value]):
    """What a converter to MXNet may reach.

    Attributes:
        np_shape: Whether MXNet runs the graph with NumPy's shapes. If not, what is a scalar in
            Relay has one axis of length 1 in MXNet.
        in_loop: Whether the nodes go into the body of a loop.
    """

    def __init__(self, table: ConverterTable, builder: GraphBuilder) -> None:
        super().__init__(table, 1, Scope())
        self.np_shape = builder.np_shape
        self.in_loop = False
        self._builder = builder
        self._level = 0

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`.

        Raises:
            Unsupported: MXNet computes no such dtype.
        """
        super().enter(source, result)
        require_computed(result)

    def emit(self, op: str, *inputs: Value | None, **attrs: AnyValue) -> Value:
        """Append a node of which one output is used; an attribute that is None is left out."""
        return self._builder.add(op, inputs, 1, attrs, self._source)[0]

    def emit_tuple(
        self, op: str, *inputs: Value | None, outputs: int, **attrs: AnyValue
    ) -> tuple[Value, ...]:
        """Append a node with several outputs."""
        return self._builder.add(op, inputs, outputs, attrs, self._source)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant; it becomes a parameter where a node takes it as an input.

        Integers of a dtype that MXNet does not compute have a wider one: what they are for, such
        as indices, does not depend on it.

        Raises:
            Unsupported: MXNet computes no such dtype.
        """
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        if data.dtype.name not in COMPUTED:
            data = _computed(data)
        return Value(-1, 0, TensorType(data.shape, data.dtype), data)

    def emit_with_bodies(
        self,
        op: str,
        inputs: Sequence[Value],
        bodies: Sequence[Subgraph],
        outputs: int,
        **attrs: AnyValue,
    ) -> tuple[Value, ...]:
        """Append a node with subgraphs."""
        graphs = tuple(body.graph for body in bodies)
        return self._builder.add(op, inputs, outputs, attrs, self._source, graphs)

    @contextmanager
    def graph(self, outputs: int) -> Iterator[GraphBuilder]:
        """Write into a graph of its own meanwhile.

        Args:
            outputs: How many tensors it yields.

        Raises:
            Unsupported: There are too many inside each other.
        """
        if self._level >= MAX_LEVEL:
            raise Unsupported(f"more than {MAX_LEVEL} loops and conditionals inside each other")
        heads = [f"out{index}" for index in range(outputs)]
        inner = GraphBuilder(self._table, heads, np_shape=self.np_shape, outer=self._builder)
        before = self._builder, self.in_loop, self._source, self.result
        self._builder, self.in_loop, self._source = inner, False, ""
        self._level += 1
        try:
            yield inner
        finally:
            self._builder, self.in_loop, self._source, self.result = before
            self._level -= 1

    def subgraph(
        self,
        names: Sequence[str],
        types: Sequence[TensorType],
        write: Callable[[Sequence[Value]], Writing[Sequence[Value]]],
        count: int,
    ) -> Writing[Subgraph]:
        """Return a graph of its own of variables called `names`.

        Args:
            names: What its variables are called.
            types: Relay types of the variables.
            write: Emits the nodes, given the variables, and returns what the graph yields.
            count: How much it yields at most.

        Raises:
            Unsupported: There are too many inside each other.
        """
        step = self.scope.inner(f"{self._source}/body")
        with self.inside(step), self.graph(count) as inner:
            results = yield from write(inner.variables(names, types))
            return inner.subgraph(results)

    def finish(self, results: Sequence[Value]) -> Subgraph:
        """Return the graph that is written into, with what it yields."""
        return self._builder.subgraph(results)

    def depend(self, outputs: Sequence[Value], variables: Sequence[Value]) -> bool:
        """Whether some of `outputs` of the graph that is written into need some `variables`."""
        return self._builder.depend(outputs, variables)

    def identity(self, names: Sequence[str], types: Sequence[TensorType]) -> Subgraph:
        """Return a graph of its own that yields its variables, called `names`."""
        with self.graph(len(names)) as inner:
            return inner.subgraph(inner.variables(names, types))

    def captured(self, x: Value) -> Value:
        """Return the variable that stands for a value of the graph around this one."""
        return self._builder.capture(x)

    def write_body(
        self, body: Function, params: Sequence[Values[Value]]
    ) -> Writing[tuple[Value, ...]]:
        """Write a body of a loop here and return what it yields; see :meth:`body`."""
        self.in_loop = True
        found = yield Body(body, params)
        return found if isinstance(found, tuple) else (found,)

    def scalar(self, x: Value) -> float | None:
        """Return the number that a constant of rank 0 is, None for all else.

        An integer that is no float64 is left to be a tensor.
        """
        if x.data is None or x.data.ndim or x.data.dtype == np.bool_:
            return None
        number = float(x.data)
        return number if x.data.dtype.kind == "f" or int(number) == int(x.data) else None

    def absorb(self, x: Value, op: str) -> Value:
        """Return what a node of `op` takes that gives `x` and came from the same layer, or `x`."""
        return self._builder.absorb(x, op, self._source)

    def is_weight(self, x: Value) -> bool:
        """Whether `x` is a parameter of the graph, or a constant, which becomes one."""
        return x.data is not None or self._builder.is_weight(x)

    def emit_bytes(self, op: str, *inputs: Value, **attrs: AnyValue) -> Value:
        """Append a node whose bool operands go as uint8: few of MXNet's operators take bool."""
        narrow = [self.cast(x, "uint8") if self.type(x).dtype == "bool" else x for x in inputs]
        result = self.emit(op, *narrow, **attrs)
        return (
            result
            if self.result_type().dtype != "bool"
            else self.emit("Cast", result, dtype="bool")
        )

    def where(self, condition: Value, x: Value, y: Value, shape: Sequence[Dim]) -> Value:
        """Append ``_npi_where``, which spreads nothing over no elements: it writes past its memory.

        Args:
            condition: Bools.
            x: What is taken where they are true.
            y: What is taken elsewhere.
            shape: The shape of all three spread over each other.
        """
        given = condition, x, y
        if 0 in shape:
            whole = [self.spell(lambda a: relay.broadcast_to(a, shape), each) for each in given]
            return self.emit("_npi_where", *whole)
        return self.emit("_npi_where", *given)

    def cast(self, x: Value, dtype: str) -> Value:
        """Return `x` in another dtype of MXNet's."""
        type_ = TensorType(self.type(x).shape, dtype)
        if x.data is not None:
            return self.const(x.data.astype(numpy_dtype(dtype)))
        return replace(self.emit("Cast", x, dtype=dtype), type=type_)

    def reshape(self, x: Value, shape: Sequence[Dim], kept: int = 0) -> Value:
        """Return `x` in another shape of the same size, with symbols where one can be inferred.

        Args:
            x: The data.
            shape: Its new shape.
            kept: How many leading lengths that are not known are those of `x`, place by place.

        Raises:
            Unsupported: More than one length is neither fixed nor that of the same axis.
        """
        old = self.type(x).shape
        unknown = [index for index, dim in enumerate(shape) if isinstance(dim, Any)]
        if tuple(shape) == old and (len(unknown) < 2 or unknown[-1] < kept):
            return x
        type_ = TensorType(shape, self.type(x).dtype)
        fixed = tuple(dim for dim in shape if isinstance(dim, int))
        if x.data is not None and len(fixed) == len(shape):
            return self.const(x.data.reshape(fixed))
        if not shape and not self.np_shape:
            shape = (1,)
        if not shape or 0 in fixed:
            if len(fixed) < len(shape):
                raise Unsupported(f"a shape with open lengths and one of 0: {type_!r}")
            return replace(self.emit("_npx_reshape", x, newshape=fixed), type=type_)
        codes = _reshape_codes(old, shape, kept)
        if codes.count(-1) > 1:
            return replace(self._reshape_open(x, old, shape), type=type_)
        if len(codes) > _MOST_RESHAPED:
            wide = tuple(-2 if code == 0 else code for code in codes)
            return replace(self.emit("_npx_reshape", x, newshape=wide), type=type_)
        return replace(self.emit("Reshape", x, shape=codes), type=type_)

    def _reshape_open(self, x: Value, old: Sequence[Dim], new: Sequence[Dim]) -> Value:
        """Return `x` in a shape with several open lengths: by axes of 1, or like another."""
        if any(isinstance(dim, Any) for dim in new):
            raise Unsupported(f"a shape with several open lengths: {', '.join(map(str, new))}")
        inserted, removed = find_inserted(old, new), find_inserted(new, old)
        if removed:
            return self.emit("squeeze", x, axis=tuple(removed))
        if not inserted:
            pairs = zip(reversed(old), reversed(new), strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            first, last = len(old) - same, len(new) - same
            like = self.spell(
                lambda x: relay.broadcast_to(x, new[:last]), self.const(0.0, "float32")
            )
            return self.emit(
                "reshape_like", x, like, lhs_begin=0, lhs_end=first, rhs_begin=0, rhs_end=last
            )
        for axis in inserted:
            x = self.emit("expand_dims", x, axis=axis)
        return x

    # MXNet takes no lengths that are computed, but axes as long as another: a vector stands for
    # its length, and one of -1 for what is taken away.

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a vector as long as a number."""
        (length,) = values
        return self.const(np.full(abs(length), np.sign(length)), "float32")

    def axis_length(self, x: Value, axis: int) -> Value:
        """Write a vector as long as an axis."""
        type_ = self.type(x)
        if type_.dtype == "bool":
            return self.axis_length(self.cast(x, "uint8"), axis)
        stop = [None if index == axis else 1 for index in range(type_.rank)]
        row = self.emit("slice", x, begin=[0] * type_.rank, end=stop)
        vector = TensorType((type_.shape[axis],), type_.dtype)
        return self.cast(replace(self.emit("Reshape", row, shape=(-1,)), type=vector), "float32")

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Write a vector as long as the product, the sum or the quotient of two lengths."""
        if one.data is not None and operator != "floor_div":
            one, other = other, one
        count = None if other.data is None else int(other.data.sum())
        if operator == "add" and (count is None or count > 0):
            found = self.emit("Concat", one, other, num_args=2, dim=0)
        elif operator == "add":
            found = self.emit("slice", one, begin=[-(count or 0)], end=[None])
        elif count is None or count < 1:
            raise Unsupported("needs a length that is no sum of multiples of those of inputs")
        elif operator == "mul":
            found = self.emit("tile", one, reps=(count,))
        else:
            found = self.emit("slice", one, begin=[count - 1], end=[None], step=[count])
        return replace(found, type=TensorType((Any(),), "float32"))


def _reshape_codes(old: Sequence[Dim], new: Sequence[Dim], kept: int) -> tuple[int, ...]:
    """Return the codes of MXNet's Reshape: 0 keeps the axis of that place, -1 is inferred."""

    def code(index: int, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        alike = index < len(old) and old[index] == dim
        return 0 if alike and (index < kept or not isinstance(dim, Any)) else -1

    return tuple(code(index, dim) for index, dim in enumerate(new))


def _computed(data: Array) -> Array:
    """Return integers as int32 or int64, whichever holds them."""
    if data.dtype.kind in "iu":
        for dtype in (np.int32, np.int64):
            wide = data.astype(dtype)
            if np.array_equal(wide, data):
                return wide
    raise Unsupported(f"MXNet computes no {dtype_name(data.dtype)}")


def require_computed(type_: Type) -> None:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    for each in fields:
        if isinstance(each, TensorType) and each.dtype not in COMPUTED:
            raise Unsupported(f"MXNet computes no {each.dtype}")
