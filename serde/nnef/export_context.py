"""What a converter from Relay to NNEF may reach."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

from serde.core.records import dataclass, field, replace
from serde.core.weights import Array, ArrayWeight, Weight, dtype_name, numpy_dtype
from serde.errors import ConverterBug, Unsupported
from serde.nnef.dat import write_header
from serde.nnef.fragments import FRAGMENTS, REQUIRED, Operand
from serde.nnef.model import (
    Argument,
    Block,
    Definition,
    ElementType,
    Operation,
    Quantization,
    Ref,
    flatten,
)
from serde.nnef.names import Identifiers, Labels
from serde.relay.ir import SequenceType, TensorType, Type, tensor_type, value_types
from serde.walk import export_context as walk
from serde.walk.holes import Incomplete
from serde.walk.placement import Scope
from serde.walk.table import ConverterTable
from serde.walk.takes import Fact

__all__ = ["EXACT", "ExportContext", "Quantized", "Value", "element_type", "is_exact", "is_spoken"]

_INLINE: Final = 8
"""Most elements of a constant that is written in the text."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph.

    Attributes:
        name: Its identifier; "" for a constant or a weight until a fragment takes it.
        type: Its Relay type.
        data: Its value where it is a constant.
        weight: The label of the weight that it is.
    """

    name: str
    type: TensorType | SequenceType | None = None
    data: Array | None = field(default=None, compare=False)
    weight: str | None = None


@dataclass(frozen=True, slots=True)
class Quantized:
    """How quantised integers came about.

    Attributes:
        data: What was quantised.
        parameters: All that the inverse has in common with it.
        limits: The least and the greatest code, where they are not those of the dtype.
    """

    data: Value
    parameters: Hashable
    limits: tuple[float, float] | None = None


Given: TypeAlias = "Value | float | int | bool | Sequence[Value]"


def element_type(dtype: str) -> ElementType:
    """Return what NNEF calls the elements of a dtype.

    Raises:
        Unsupported: It has no such elements.
    """
    if dtype == "bool":
        return "logical"
    if dtype in ("float16", "float32", "float64"):
        return "scalar"
    if dtype.rstrip("0123456789") in ("int", "uint") and dtype[-1] in "8624":
        return "integer"
    raise Unsupported(f"NNEF has no {dtype}")


def _literal_type(value: AnyValue) -> str:
    """Return the type that a parameter has which takes a literal."""
    if isinstance(value, (tuple, list)):
        return f"{_literal_type(value[0]) if value else 'scalar'}[]"
    kinds: dict[type, str] = {bool: "logical", int: "integer", str: "string"}
    return kinds.get(type(value), "scalar")


def is_exact(dtype: str, *values: float) -> bool:
    """Whether numbers of the text, which have 32 bits, are those of a computation in `dtype`.

    An infinity or what is no number is never.
    """
    kind = numpy_dtype(dtype).type
    with np.errstate(over="ignore"):
        short = [np.float32(each) for each in values]
    return all(
        math.isfinite(own) and kind(str(own)) == kind(each)
        for own, each in zip(short, values, strict=True)
    )


EXACT: Final = Fact(
    "a number that the text holds", lambda x, node: is_exact(tensor_type(node.args[0]).dtype, x)
)


class ExportContext(walk.ExportContext[Value]):
    """What a converter from Relay to NNEF may reach.

    Args:
        table: The converters.
        scalar: The dtype of scalars, where it is known beforehand.
        told: Whether what is read of the graph tells that dtype, as its variables do.

    Attributes:
        identifiers: Identifiers, with the names that they stand for.
        labels: Labels of variables, with the names that they stand for.
        externals: Declarations of inputs.
        variables: Declarations of variables.
        constants: Constants of the text, and variables in other shapes.
        operations: All other assignments.
        blocks: Which of them were functions of the source.
        weights: Data of variables by label.
        quantization: How tensors are quantised, by identifier.
        constant_labels: Labels of variables that are constants of the source.
        stored_quantized: Labels of variables whose data are quantised integers.
        places: Where in a window elements stand, by the identifier of their places in the tensor.
        quantized: How integers came about that a quantisation made, by identifier.
        declared: Fragments without a body that are invoked, by name.
    """

    def __init__(
        self, table: ConverterTable, scalar: str | None = None, *, told: bool = True
    ) -> None:
        super().__init__(table, 1, Scope())
        self.identifiers = Identifiers()
        self.labels = Labels()
        self.externals: list[Operation] = []
        self.variables: list[Operation] = []
        self.constants: list[Operation] = []
        self.operations: list[Operation] = []
        self.blocks: list[Block] = []
        self.weights: dict[str, Weight] = {}
        self.quantization: dict[str, Quantization] = {}
        self.constant_labels: set[str] = set()
        self.stored_quantized: set[str] = set()
        self.places: dict[str, Value] = {}
        self.quantized: dict[str, Quantized] = {}
        self.declared: dict[str, Definition] = {}
        self._scalar = scalar
        self._told = told
        self._producers: dict[str, Operation] = {}
        self._open = False
        self._placed: dict[Hashable, str] = {}
        self._labels: dict[Hashable, str] = {}

    @property
    def scalar(self) -> str:
        """The dtype of scalars."""
        return self._scalar or "float32"

    def enter(self, source: str, result: Type) -> None:
        """Turn to the node called `source`, whose Relay type is `result`.

        Raises:
            Unsupported: NNEF has no such tensors.
        """
        super().enter(source, result)
        for each in value_types(result):
            if not isinstance(each, TensorType):
                raise Unsupported("NNEF has no sequences of tensors")
            if each.concrete_shape is None:
                self._refuse_shape(each)
            self.require(each)

    def _refuse_shape(self, type_: TensorType) -> None:
        """Refuse a shape that is open though inputs have fixed ones; else theirs count."""
        if self._open:
            raise Incomplete
        raise Unsupported(f"NNEF has fixed shapes only, and that of {type_!r} depends on values")

    def require(self, type_: TensorType) -> None:
        """Refuse a type that NNEF has not, or that it cannot have beside others of the model.

        Raises:
            Unsupported: Its elements or its shape cannot be said.
        """
        if type_.concrete_shape is None:
            self._open = True
            raise Unsupported(
                f"NNEF has fixed shapes only, found {type_!r}",
                hint="give the shapes of the inputs: --input-shape, input_shapes=",
            )
        if element_type(type_.dtype) == "scalar":
            self._scalar = self._scalar or type_.dtype
            if type_.dtype != self._scalar:
                raise Unsupported(
                    f"NNEF has one kind of scalar, found {type_.dtype} beside {self._scalar}"
                )

    def external(self, name: str, type_: TensorType) -> Value:
        """Declare an input of the graph."""
        own = self.identifiers.claim(name, exact=True)
        attributes = {"shape": list(self.static_shape(Value(own, type_)))}
        kind = element_type(type_.dtype)
        self.externals.append(Operation("external", {}, attributes, (own,), kind))
        return Value(own, type_)

    def add_weight(self, name: str, weight: Weight) -> str:
        """Return the label under which a weight is stored once a fragment takes it.

        Weights that are the same bytes of a file, or the same array, have one.
        """
        source = weight.source
        key: Hashable = id(weight) if source is None else (source, weight.shape, weight.dtype)
        if key not in self._labels:
            self._labels[key] = self.labels.claim(name)
            self.weights[self._labels[key]] = weight
        return self._labels[key]

    # What converters call.

    def emit(
        self, op: str, *inputs: Given, dtype: ElementType | None = None, **attributes: AnyValue
    ) -> Value:
        """Write an assignment of one tensor; attributes at their defaults are left out of it.

        Raises:
            Unsupported: The fragment does not take tensors of these elements.
        """
        name = self.identifiers.claim(self.source or op)
        self._append(op, inputs, attributes, (name,), dtype)
        return Value(name)

    def emit_tuple(
        self,
        op: str,
        *inputs: Given,
        outputs: int,
        dtype: ElementType | None = None,
        **attributes: AnyValue,
    ) -> tuple[Value, ...]:
        """Write an assignment of several tensors, or of a list of them where that is the result."""
        names = tuple(self.identifiers.claim(self.source or op) for _ in range(outputs))
        is_list = FRAGMENTS[op].outputs[0].is_list
        self._append(op, inputs, attributes, (names,) if is_list else names, dtype)
        return tuple(map(Value, names))

    def emit_own(
        self,
        name: str,
        inputs: Mapping[str, AnyValue],
        attributes: Mapping[str, AnyValue],
        types: Sequence[TensorType],
        element: ElementType | None,
    ) -> tuple[Value, ...]:
        """Write an assignment of a fragment without a body, which the text declares.

        Args:
            name: The fragment.
            inputs: Its operands by parameter: values, lists of them, and literals.
            attributes: Its attributes.
            types: Types of its results.
            element: The type of elements that the invocation says, if it does.

        Raises:
            Unsupported: The fragment is in use with other parameters, or a literal has more bits
                than those of the text.
        """
        for each in flatten([*attributes.values()]):
            if not self._is_literal(each):
                raise Unsupported(f"{name}: no literal of NNEF says {each!r}")
        own = Identifiers([*inputs, *attributes])
        results = {own.claim(f"y{index}"): each for index, each in enumerate(types)}
        declared = Definition(
            name,
            {key: self._own_element(each) for key, each in inputs.items()},
            {key: f"tensor<{element_type(each.dtype)}>" for key, each in results.items()},
            (),
            {key: _literal_type(each) for key, each in attributes.items()},
            generic=element is not None,
        )
        if self.declared.setdefault(name, declared) != declared:
            raise Unsupported(f"the fragment {name} is in use with other parameters")
        names = tuple(self.identifiers.claim(self.source or name) for _ in types)
        given = {key: self._own_argument(each, name) for key, each in inputs.items()}
        self.operations.append(Operation(name, given, dict(attributes), names, element))
        return tuple(Value(each, type_) for each, type_ in zip(names, types, strict=True))

    def _own_element(self, given: AnyValue) -> str:
        """Return the type of a parameter of a fragment of the model's own."""
        if isinstance(given, tuple):
            return f"{self._own_element(given[0])}[]" if given else "tensor<scalar>[]"
        kind = element_type(self.type(given).dtype) if isinstance(given, Value) else None
        return f"tensor<{kind or _literal_type(given)}>"

    def _own_argument(self, given: AnyValue, name: str) -> Argument:
        if isinstance(given, tuple):
            return tuple(self._own_argument(each, name) for each in given)
        return self.operand(given, name) if isinstance(given, Value) else given

    def stored(self, codes: Value, entry: Quantization) -> Value:
        """Return the values of a weight or constant of integers, which graph.quant explains.

        Args:
            codes: The integers.
            entry: What they stand for.

        Raises:
            Unsupported: Files of tensors hold no such weight.
        """
        label = codes.weight
        if codes.data is not None:
            label = self.add_weight(f"{self.source}_codes", ArrayWeight(codes.data))
        if label is None:
            raise ConverterBug(f"{self.source}: only what is stored can be explained")
        shape = self.static_shape(codes)
        key = ("stored", label, shape, repr(entry))
        if key in self._placed:
            return Value(self._placed[key])
        if label in self._placed:
            # What is read already are the codes themselves, or they stand for other values there.
            label = self._store_again(label)
        name = self._placed[key] = self._variable(label, shape, "scalar")
        self.quantization[name] = entry
        self.stored_quantized.add(label)
        return Value(name)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant, written as a literal, in the text or as a variable."""
        data = np.asarray(value, None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        return Value("", TensorType(data.shape, dtype_name(data.dtype)), data)

    def align(self, *operands: Value) -> list[Value]:
        """Return operands of one number of axes: Relay broadcasts from the last axis on."""
        rank = max(self.type(x).rank for x in operands)
        return [self.pad_rank(x, rank) for x in operands]

    def pad_rank(self, x: Value, rank: int) -> Value:
        """Return a tensor with axes of length 1 before its own; a scalar stays one."""
        type_ = self.type(x)
        if not type_.rank or type_.rank == rank:
            return x
        return self.reshape(x, (*(1 for _ in range(rank - type_.rank)), *self.static_shape(x)))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Return `x` in another shape of the same size.

        A weight is stored in the shape in which a fragment takes it first, and reshaped by the
        graph where another is wanted.

        Raises:
            Unsupported: A length is 0, which says that it is the one there is.
        """
        type_ = TensorType(shape, self.type(x).dtype)
        if x.data is not None:
            return self.const(x.data.reshape(tuple(shape)))
        if x.weight is not None:
            return replace(x, type=type_)
        _check_reshape(self.static_shape(x), shape)
        return replace(self.emit("reshape", x, shape=list(shape)), type=type_)

    def producer(self, x: Value | Argument, op: str) -> Operation | None:
        """Return the assignment of a tensor, if it is of a fragment.

        So a compound is written in place of the last step of its body; steps that nothing else
        reads are dropped when the graph is whole.
        """
        name = x.name if isinstance(x, (Value, Ref)) else ""
        found = self._producers.get(name)
        return found if found is not None and found.op == op else None

    # Operands.

    def _append(
        self,
        op: str,
        inputs: Sequence[Given],
        attributes: dict[str, AnyValue],
        outputs: tuple[str | tuple[str, ...], ...],
        dtype: ElementType | None,
    ) -> None:
        signature = FRAGMENTS[op]
        unknown = attributes.keys() - signature.attributes.keys()
        if unknown or len(inputs) > len(signature.inputs):
            raise ConverterBug(f"{self.source}: {op} takes no {sorted(unknown) or inputs}")
        attributes = {
            name: self._attribute(name, each, signature.attributes[name])
            for name, each in attributes.items()
        }
        given = {
            parameter.name: self._argument(op, parameter, each)
            for parameter, each in zip(signature.inputs, inputs, strict=False)
        }
        operation = Operation(op, given, attributes, outputs, dtype)
        self.operations.append(operation)
        self._producers.update(dict.fromkeys(operation.results(), operation))

    def _attribute(self, name: str, given: AnyValue, default: AnyValue) -> AnyValue:
        """Return an attribute, a float where the standard has one."""
        if default is not REQUIRED and isinstance(default, float):
            given = float(given)
        for each in flatten(given):
            if not self._is_literal(each):
                raise Unsupported(f"no literal of NNEF says {name}={each!r}")
        return given

    def _is_literal(self, value: AnyValue) -> bool:
        """Whether a literal says a value: they have 32 bits."""
        if isinstance(value, (float, np.floating)):
            with np.errstate(over="ignore"):
                short = np.float32(value)
            exact = self._scalar != "float64" or float(str(short)) == float(value)
            return bool(np.isfinite(short)) and exact
        return isinstance(value, (str, bool)) or abs(int(value)) < 2**31

    def _argument(self, op: str, parameter: Operand, given: Given) -> Argument:
        """Return an operand as it is written."""
        if isinstance(given, Value):
            return self.operand(given, op, parameter.element)
        if isinstance(given, (bool, int, float)):
            literal = float(given) if parameter.element == "scalar" else given
            if self._is_literal(literal):
                return literal
            return self._constant(np.asarray(literal, self._scalar or "float32"))
        return tuple(self.operand(each, op, parameter.element) for each in given)

    def operand(self, x: Value, op: str, element: str = "?") -> Ref | float | int | bool:
        """Return a tensor as a fragment takes it: a literal, or the name of what was written.

        Raises:
            Unsupported: The fragment takes other elements.
        """
        if isinstance(x.type, TensorType) and element in ("scalar", "integer", "logical"):
            found = element_type(x.type.dtype)
            if found != element:
                what = f"{op} takes tensors of {element}, found {x.type.dtype}"
                if found == "integer":
                    what = f"NNEF has no arithmetic of integers: {what}"
                raise Unsupported(what)
        if x.data is not None:
            return self._constant(x.data)
        if x.weight is not None:
            return Ref(self._variable(x.weight, self.static_shape(x)))
        return Ref(x.name)

    def _constant(self, data: Array) -> Ref | float | int | bool:
        """Return a constant: a literal, a constant of the text, or a variable."""
        # A variable must tell what scalars are; a literal does not.
        spoken = is_spoken(data) and (data.dtype.kind != "f" or self._told)
        if spoken and not data.ndim:
            literal: float | int | bool = data.item()
            return literal
        key = (data.dtype.str, data.shape, data.tobytes())
        if key in self._placed:
            return Ref(self._placed[key])
        uniform = data.dtype.kind == "f" and bool(data.size) and _is_uniform(data)
        if spoken and (data.size <= _INLINE or uniform):
            name = self.identifiers.claim(f"{self.source}_constant")
            values = data.reshape(-1)[: 1 if uniform else None].tolist()
            attributes = {"shape": list(data.shape), "value": values}
            kind = element_type(dtype_name(data.dtype))
            self.constants.append(Operation("constant", {}, attributes, (name,), kind))
            self._placed[key] = name
        else:
            label = self.add_weight(f"{self.source or 'constant'}_constant", ArrayWeight(data))
            self.constant_labels.add(label)
            self._placed[key] = self._variable(label, data.shape)
            self._told = self._told or data.dtype.kind == "f"
        return Ref(self._placed[key])

    def _store_again(self, label: str) -> str:
        """Return another label for a weight."""
        own = self.labels.claim(label)
        self.labels.names[own] = self.labels.names[label]
        self.weights[own] = self.weights[label]
        return own

    def _variable(self, label: str, shape: Sequence[int], kind: ElementType | None = None) -> str:
        """Return the identifier of a variable in a shape; it is stored in the first asked for."""
        if kind is None and label in self.stored_quantized:
            codes = self._placed.get(("codes", label)) or self._store_again(label)
            label = self._placed["codes", label] = codes
        key = (label, tuple(shape))
        if key in self._placed:
            return self._placed[key]
        kind = kind or element_type(self.weights[label].dtype)
        own = self._placed.get(label)
        if own is None:
            weight = self.weights[label]
            write_header(tuple(shape), weight.dtype)
            name = self._placed[label] = self.identifiers.claim(label)
            if tuple(shape) != weight.shape:
                self.weights[label] = weight.reshaped(tuple(shape))
            attributes = {"shape": list(shape), "label": label}
            self.variables.append(Operation("variable", {}, attributes, (name,), kind))
        else:
            _check_reshape(self.weights[label].shape, shape)
            name = self.identifiers.claim(f"{own}_reshaped")
            attributes = {"shape": list(shape)}
            self.constants.append(Operation("reshape", {"input": Ref(own)}, attributes, (name,)))
        self._placed[key] = name
        return name


def _is_uniform(data: Array) -> bool:
    """Whether all elements are the same; only scalars may be filled in Khronos' runtime."""
    first = data.reshape(-1)[:1]
    return bool((data == first).all() and (np.signbit(data) == np.signbit(first)).all())


def _check_reshape(own: Sequence[int], shape: Sequence[int]) -> None:
    """Refuse a shape whose zeros would be taken for lengths that stay."""
    if any(not length and own[index : index + 1] != (0,) for index, length in enumerate(shape)):
        raise Unsupported(f"no reshape of {list(own)} to {list(shape)}: a 0 keeps the length")


def is_spoken(data: Array) -> bool:
    """Whether a literal is exactly what each element is; Khronos' parser reads 32 bits.

    Of 64 bits it is the number that the text has, as 32 bits have it, too.
    """
    if not data.size:
        return False
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):
            short = data.astype(np.float32)
        if not np.isfinite(short).all() or not (short == data).all():
            return False
        distinct = np.unique(short) if data.dtype.itemsize > 4 else ()
        return len(distinct) <= _INLINE and all(
            float(str(each)) == float(each) for each in distinct
        )
    return data.dtype.kind == "b" or -(2**31) < int(data.min()) <= int(data.max()) < 2**31
