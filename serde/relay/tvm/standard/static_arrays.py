"""Tensor arrays of tensors of one shape, as TVM's Prelude defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.relay.ir import Any, Constructor, GlobalTypeVar, GlobalVar
from serde.relay.tvm.standard.tensor_arrays import static_name, tensor_text
from serde.relay.tvm.standard.texts import define

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
        name = self.get_name("tensor_t")
        if name not in {header.name_hint for header in self.prelude.mod.type_definitions}:
            none, some = self.get_name("tensor_nil"), self.get_name("tensor_constructor")
            self._define(f"type {name} {{ {none}, {some}({self._tensor}), }}")

    def define_tensor_take(self) -> None:
        """Define ``tensor_take(t, lower, upper)``: a range along the first axis."""
        if self.shape and not self.is_cached(self.get_name("tensor_take")):
            result = self._of([Any(), *self.shape[1:]])
            taken = 'take(%t, arange(%lower, %upper, 1, dtype="int32"), axis=0)'
            self._define(
                f"def @{self.get_name('tensor_take')}(%tensor: {self._type}, %lower: int32, "
                f"%upper: int32) -> {result._type} {{ match? (%tensor) {{ "
                f"{self._some}(%t) => {result._some}({taken}), }} }}"
            )

    def define_tensor_concatenate(self) -> None:
        """Define ``tensor_concatenate(x, y)``: two tensors along the first axis."""
        if self.shape and not self.is_cached(self.get_name("tensor_concatenate")):
            result = self._of([Any(), *self.shape[1:]])
            self._define(
                f"def @{self.get_name('tensor_concatenate')}(%x: {self._type}, %y: {self._type})"
                f" -> {result._type} {{ match? ((%x, %y)) {{ ({self._some}(%a), {self._some}(%b))"
                f" => {result._some}(concatenate((%a, %b), axis=0)), }} }}"
            )

    def define_tensor_expand_dims(self) -> None:
        """Define ``tensor_expand_dims(x)``: a tensor with an axis of length 1 in front."""
        result = self._of([self._new_axis, *self.shape])
        self._define(
            f"def @{self.get_name('tensor_expand_dims')}(%x: {self._type}) -> {result._type} {{ "
            f"match? (%x) {{ {self._some}(%t) => {result._some}(expand_dims(%t, axis=0)), }} }}"
        )

    def define_tensor_array(self) -> None:
        """Define ``tensor_array(n)``: an array of `n` absent tensors."""
        name = self.get_name("tensor_array")
        absent = self.get_name("tensor_nil")
        self._define(
            f"def @{name}(%x: int32) -> List[{self._type}] {{ "
            f"if (%x == 0) {{ Nil }} else {{ Cons({absent}, @{name}(%x - 1)) }} }}"
        )

    def define_tensor_array_read(self) -> None:
        """Define ``tensor_array_read(array, n)``: the tensor at a place."""
        name = self.get_name("tensor_array_read")
        if not self.is_cached(name):
            self._define(
                f"def @{name}(%tensor_array: List[{self._type}], %x: int32) -> {self._type} {{ "
                "@nth(%tensor_array, %x) }"
            )

    def define_tensor_array_write(self) -> None:
        """Define ``tensor_array_write(array, n, v)``: the array with another tensor at a place."""
        name = self.get_name("tensor_array_write")
        if not self.is_cached(name):
            self._define(
                f"def @{name}(%tensor_array: List[{self._type}], %x: int32, %v: {self._type}) "
                f"-> List[{self._type}] {{ @update(%tensor_array, %x, %v) }}"
            )

    def define_tensor_array_unstack(self) -> None:
        """Define ``tensor_array_unstack(t)``: the array of the parts of a tensor."""
        if not self.shape:
            return
        helper = self.get_name("tensor_array_unstack_helper")
        part = self._of(self.shape[1:])
        self._define(
            f"def @{helper}(%i: int32, %up: int32, %t: {self._tensor}) -> List[{part._type}] {{ "
            f"if (%i == %up) {{ Nil }} else {{ "
            f"Cons({part._some}(take(%t, %i, axis=0)), @{helper}(%i + 1, %up, %t)) }} }}\n"
            f"def @{self.get_name('tensor_array_unstack')}(%tensor: {self._tensor}) "
            f"-> List[{part._type}] {{ "
            f'@{helper}(0, take(shape_of(%tensor, dtype="int32"), 0), %tensor) }}'
        )

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[AnyValue] | None = None, force_update: bool = False
    ) -> None:
        """Define ``tensor_array_scatter(array, indices, values)``: values written at places.

        Args:
            indices_shape: Shape of the indices, where it is known.
            force_update: Whether a function of this name is replaced.
        """
        extra = {"indices": indices_shape} if indices_shape is not None else None
        name = self.get_name("tensor_array_scatter", extra)
        if self.is_cached(name) and not force_update:
            return
        helper = self.get_name("tensor_array_scatter_helper", extra)
        array, indices = f"List[{self._type}]", tensor_text(indices_shape or [Any()], "int32")
        read, write = self.get_name("tensor_array_read"), self.get_name("tensor_array_write")
        self._define(
            f"def @{helper}(%ta: {array}, %current: int32, %limit: int32, %places: {indices}, "
            f"%values: {array}) -> {array} {{ if (%current == %limit) {{ %ta }} else {{ "
            f"let %value = @{read}(%values, %current); "
            f"let %written = @{write}(%ta, take(%places, %current), %value); "
            f"@{helper}(%written, %current + 1, %limit, %places, %values) }} }}\n"
            f"def @{name}(%ta: {array}, %places: {indices}, %values: {array}) -> {array} {{ "
            f"@{helper}(%ta, 0, {_length('%places', indices_shape)}, %places, %values) }}"
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
        helper, array = self.get_name("ta_split_helper"), f"List[{result._type}]"
        lengths = tensor_text(lengths_shape or [Any()], "int32")
        self._define(
            f"def @{helper}(%ta: {array}, %value: {value._type}, %offset: int32, "
            f"%current: int32, %limit: int32, %lengths: {lengths}) -> {array} {{ "
            f"if (%current == %limit) {{ %ta }} else {{ "
            f"let %end = %offset + take(%lengths, %current); "
            f"let %others = @{helper}(%ta, %value, %end, %current + 1, %limit, %lengths); "
            f"let %part = @{value.get_name('tensor_take')}(%value, %offset, %end); "
            f"@{result.get_name('tensor_array_write')}(%others, %current, %part) }} }}\n"
            f"def @{name}(%ta: {array}, %value: {value._type}, %lengths: {lengths}) -> {array} {{ "
            f"@{helper}(%ta, %value, 0, 0, {_length('%lengths', lengths_shape)}, %lengths) }}"
        )

    def define_tensor_array_concat(self) -> None:
        """Define ``tensor_array_concat(array)``: all tensors along the first axis."""
        name = self.get_name("tensor_array_concat")
        if not self.shape or self.is_cached(name):
            return
        result = self._of([Any(), *self.shape[1:]])
        result.define_tensor_concatenate()
        join = result.get_name("tensor_concatenate")
        self._define(
            f"def @{name}(%tensor_array: List[{result._type}]) -> {result._type} {{ "
            f"match? (%tensor_array) {{ Nil => {result.get_name('tensor_nil')}, "
            f"Cons(%hd, Nil) => %hd, Cons(%hd, %tl) => @{join}(%hd, @{name}(%tl)), }} }}"
        )

    def define_tensor_array_stack(self) -> None:
        """Define ``tensor_array_stack(array)``: all tensors along a new first axis."""
        result = self._of([self._new_axis, *self.shape])
        result.define_tensor_concatenate()
        join = result.get_name("tensor_concatenate")
        first = "@id(@hd(%rows))"
        folded = f"@foldl(@{join}, @hd(%rows), @tl(%rows))"
        self._define(
            f"def @{self.get_name('tensor_array_stack')}(%tensor_array: List[{self._type}]) "
            f"-> {result._type} {{ "
            f"let %rows = @map(@{self.get_name('tensor_expand_dims')}, %tensor_array); "
            f"{first if self.batch_dim == 1 else folded} }}"
        )

    def define_tensor_array_gather(self) -> None:
        """Define ``tensor_array_gather(array, indices)``: chosen tensors along a new first axis."""
        helper, name = self.get_name("tensor_array_gather_helper"), "tensor_array_gather"
        result = self._of([self._new_axis, *self.shape])
        array = f"List[{self._type}]"
        read, stack = self.get_name("tensor_array_read"), self.get_name("tensor_array_stack")
        self._define(
            f"def @{helper}(%ta: {array}, %accu: {array}, %current: int32, %limit: int32, "
            f"%places: Tensor[(?), int32]) -> {result._type} {{ "
            f"if (%current == 0) {{ @{stack}(%accu) }} else {{ let %before = %current - 1; "
            f"let %read = @{read}(%ta, take(%places, %before)); "
            f"@{helper}(%ta, Cons(%read, %accu), %before, %limit, %places) }} }}\n"
            f"def @{self.get_name(name)}(%ta: {array}, %places: Tensor[(?), int32]) "
            f"-> {result._type} {{ let %limit = {_length('%places', None)}; "
            f"@{helper}(%ta, Nil, %limit, %limit, %places) }}"
        )

    def define_tensor_get_data(self) -> None:
        """Define ``tensor_get_data(t)``: the tensor itself."""
        self._define(
            f"def @{self.get_name('tensor_get_data')}(%tensor: {self._type}) -> {self._tensor} {{ "
            f"match? (%tensor) {{ {self._some}(%t) => %t, }} }}"
        )

    @property
    def _tensor(self) -> str:
        return tensor_text(self.shape, self.dtype)

    @property
    def _type(self) -> str:
        return self.get_name("tensor_t")

    @property
    def _some(self) -> str:
        return self.get_name("tensor_constructor")

    @property
    def _new_axis(self) -> AnyValue:
        # Not 1, since a stack concatenates its tensors one by one.
        return 1 if self.batch_dim == 1 else Any()

    def _of(self, shape: Sequence[AnyValue]) -> StaticTensorArrayOps:
        """Return the functions for another shape, its type being defined."""
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape, self.batch_dim)
        other.define_tensor_adt()
        return other

    def _define(self, text: str) -> None:
        define(self.prelude.mod, text)


def _length(variable: str, shape: Sequence[AnyValue] | None) -> str:
    known = None if shape is None else shape[0]
    if isinstance(known, int):
        return str(known)
    return f'take(shape_of({variable}, dtype="int32"), 0)'
