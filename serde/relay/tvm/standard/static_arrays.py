"""Tensor arrays of tensors of one shape, as TVM's Prelude defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Final

from serde.relay.ir import Any, Constructor, GlobalTypeVar, GlobalVar
from serde.relay.tvm.standard.tensor_arrays import static_name, tensor_text
from serde.relay.tvm.standard.texts import define, fill

__all__ = ["StaticTensorArrayOps"]


class StaticTensorArrayOps:
    """Defines the functions of tensor arrays of one element type and one shape.

    Args:
        prelude: The Prelude whose module gets them.
        dtype: Element type.
        shape: Lengths; ``relay.Any()`` for one that is not known.
        batch_dim: 1 where stacks are of one tensor only.
    """

    def __init__(
        self, prelude: AnyValue, dtype: str, shape: Sequence[AnyValue], batch_dim: int | None = None
    ) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape = shape
        self.batch_dim = batch_dim
        self.list, self.cons, self.nil = prelude.mod.get_type("List")

    def get_name(
        self, canonical: str, extra_shapes: dict[str, Sequence[AnyValue]] | None = None
    ) -> str:
        """Return the name of a function, type or constructor."""
        return static_name(canonical, self.dtype, self.shape, self.batch_dim, extra_shapes)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """Return the variable of a function."""
        found: GlobalVar = self.prelude.mod.get_global_var(self.get_name(canonical))
        return found

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """Return the variable of the type of tensors."""
        found: GlobalTypeVar = self.prelude.mod.get_global_type_var(self.get_name(canonical))
        return found

    def get_ctor(self, canonical: str) -> Constructor:
        """Return a constructor of tensors."""
        mod = self.prelude.mod
        found: Constructor = mod.get_constructor(
            self.get_name("tensor_t"), self.get_name(canonical)
        )
        return found

    def is_cached(self, name: str) -> bool:
        """Whether the module has a function of this name."""
        return name in self.prelude.mod

    def register(self) -> None:
        """Define all functions; those that scalars cannot have are left out for scalars."""
        self.define_tensor_adt()
        self.define_tensor_take()
        self.define_tensor_concatenate()
        self.define_tensor_expand_dims()
        self.define_tensor_array()
        self.define_tensor_array_read()
        self.define_tensor_array_write()
        self.define_tensor_array_unstack()
        self.define_tensor_array_scatter()
        self.define_tensor_array_split()
        self.define_tensor_array_concat()
        self.define_tensor_array_stack()
        self.define_tensor_array_gather()
        self.define_tensor_get_data()

    def define_tensor_adt(self) -> None:
        """Define the type of tensors: none, or a tensor of this shape."""
        known = {header.name_hint for header in self.prelude.mod.type_definitions}
        if self.get_name("tensor_t") not in known:
            self._define("tensor_adt")

    def define_tensor_take(self) -> None:
        """Define ``tensor_take(t, lower, upper)``: a range along the first axis."""
        if self.shape and not self.is_cached(self.get_name("tensor_take")):
            self._define("tensor_take", result=self._of([Any(), *self.shape[1:]]))

    def define_tensor_concatenate(self) -> None:
        """Define ``tensor_concatenate(x, y)``: two tensors along the first axis."""
        if self.shape and not self.is_cached(self.get_name("tensor_concatenate")):
            self._define("tensor_concatenate", result=self._of([Any(), *self.shape[1:]]))

    def define_tensor_expand_dims(self) -> None:
        """Define ``tensor_expand_dims(x)``: a tensor with an axis of length 1 in front."""
        self._define("tensor_expand_dims", result=self._of([self._new_axis, *self.shape]))

    def define_tensor_array(self) -> None:
        """Define ``tensor_array(n)``: an array of `n` absent tensors."""
        self._define("tensor_array")

    def define_tensor_array_read(self) -> None:
        """Define ``tensor_array_read(array, n)``: the tensor at an index."""
        if not self.is_cached(self.get_name("tensor_array_read")):
            self._define("tensor_array_read")

    def define_tensor_array_write(self) -> None:
        """Define ``tensor_array_write(array, n, v)``: the array with another tensor at an index."""
        if not self.is_cached(self.get_name("tensor_array_write")):
            self._define("tensor_array_write")

    def define_tensor_array_unstack(self) -> None:
        """Define ``tensor_array_unstack(t)``: the array of the parts of a tensor."""
        if self.shape:
            self._define("tensor_array_unstack", part=self._of(self.shape[1:]))

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[AnyValue] | None = None, force_update: bool = False
    ) -> None:
        """Define ``tensor_array_scatter(array, indices, values)``: values written at indices.

        Args:
            indices_shape: Shape of the indices, where it is known.
            force_update: Whether a function of this name is replaced.
        """
        extra = {"indices": indices_shape} if indices_shape is not None else None
        name = self.get_name("tensor_array_scatter", extra)
        if force_update or not self.is_cached(name):
            self._define(
                "tensor_array_scatter",
                name=name,
                helper=self.get_name("tensor_array_scatter_helper", extra),
                places=tensor_text(indices_shape or [Any()], "int32"),
                count=_length("%places", indices_shape),
            )

    def define_tensor_array_split(
        self,
        value_shape: Sequence[AnyValue] | None = None,
        lengths_shape: Sequence[AnyValue] | None = None,
        force_update: bool = False,
    ) -> None:
        """Define ``tensor_array_split(array, value, lengths)``: parts of a tensor written in turn.

        Args:
            value_shape: Shape of the tensor; that of the arrays by default.
            lengths_shape: Shape of the lengths, where it is known.
            force_update: Whether a function of this name is replaced.
        """
        name = self.get_name("tensor_array_split")
        if not self.shape or (self.is_cached(name) and not force_update):
            return
        result = self._of([Any(), *self.shape[1:]])
        result.define_tensor_array_write()
        value = self if value_shape is None else self._of(value_shape)
        value.define_tensor_take()
        lengths = tensor_text(lengths_shape or [Any()], "int32")
        count = _length("%lengths", lengths_shape)
        self._define("tensor_array_split", result=result, value=value, lengths=lengths, count=count)

    def define_tensor_array_concat(self) -> None:
        """Define ``tensor_array_concat(array)``: all tensors along the first axis."""
        if self.shape and not self.is_cached(self.get_name("tensor_array_concat")):
            result = self._of([Any(), *self.shape[1:]])
            result.define_tensor_concatenate()
            self._define("tensor_array_concat", result=result)

    def define_tensor_array_stack(self) -> None:
        """Define ``tensor_array_stack(array)``: all tensors along a new first axis."""
        result = self._of([self._new_axis, *self.shape])
        result.define_tensor_concatenate()
        folded = f"@foldl(@{result.get_name('tensor_concatenate')}, @hd(%rows), @tl(%rows))"
        joined = "@id(@hd(%rows))" if self.batch_dim == 1 else folded
        self._define("tensor_array_stack", result=result, joined=joined)

    def define_tensor_array_gather(self) -> None:
        """Define ``tensor_array_gather(array, indices)``: chosen tensors along a new first axis."""
        self._define("tensor_array_gather", result=self._of([self._new_axis, *self.shape]))

    def define_tensor_get_data(self) -> None:
        """Define ``tensor_get_data(t)``: the tensor itself."""
        self._define("tensor_get_data")

    @property
    def _new_axis(self) -> AnyValue:
        # Not 1, since a stack concatenates its tensors one by one.
        return 1 if self.batch_dim == 1 else Any()

    def _of(self, shape: Sequence[AnyValue]) -> StaticTensorArrayOps:
        """Return the functions for another shape, its type being defined."""
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape, self.batch_dim)
        other.define_tensor_adt()
        return other

    def _define(self, part: str, /, **given: StaticTensorArrayOps | str) -> None:
        """Define what a part of the text says, of which some names are given."""

        def find(name: str) -> str:
            owner, _, own = name.rpartition(".")
            arrays = given[owner] if owner else given.get(own, self)
            return arrays if isinstance(arrays, str) else arrays._find(own)

        define(self.prelude.mod, fill("static_arrays.rly", find, part))

    def _find(self, name: str) -> str:
        if name == "tensor":
            return tensor_text(self.shape, self.dtype)
        return self.get_name(_SHORT.get(name, name))


_SHORT: Final = {"type": "tensor_t", "some": "tensor_constructor"}


def _length(variable: str, shape: Sequence[AnyValue] | None) -> str:
    known = None if shape is None else shape[0]
    if isinstance(known, int):
        return str(known)
    return f'take(shape_of({variable}, dtype="int32"), 0)'
