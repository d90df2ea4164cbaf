"""What a converter from Relay to PyTorch may reach."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final, Literal

import numpy as np

from serde.core.records import dataclass, field, replace
from serde.core.weights import Array, ArrayWeight, Weight, dtype_name, numpy_dtype
from serde.errors import ConverterBug, Unsupported
from serde.relay.ir import Any, Dim, Expr, SequenceType, TensorType, Var
from serde.relay.run.computed import ComputedWeight
from serde.torch import program as tree
from serde.torch.blocks import Block
from serde.torch.names import DTYPES, OF_MODULES, TAKES_NUMBERS, Names, identifier
from serde.torch.program import Expression, Statement
from serde.walk import export_context as walk
from serde.walk.table import ConverterTable

__all__ = ["ExportContext", "Value", "number_of"]

_POSITIONAL: Final = {
    "Conv": ("in_channels", "out_channels", "kernel_size"),
    "Linear": ("in_features", "out_features"),
    "Bilinear": ("in1_features", "in2_features", "out_features"),
    "BatchNorm": ("num_features",),
    "InstanceNorm": ("num_features",),
    "LayerNorm": ("normalized_shape",),
    "RMSNorm": ("normalized_shape",),
    "GroupNorm": ("num_groups", "num_channels"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    "LSTM": ("input_size", "hidden_size"),
    "GRU": ("input_size", "hidden_size"),
    "RNN": ("input_size", "hidden_size"),
    "PReLU": ("num_parameters",),
    "MultiheadAttention": ("embed_dim", "num_heads"),
    "Dropout": ("p",),
}
"""Arguments that are given by position, by the beginning of the class's name."""

BUFFERS: Final = frozenset(("running_mean", "running_var", "num_batches_tracked"))
"""What layers hold that is no parameter."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor or, among lengths, a number.

    Attributes:
        name: Its variable, or that of a weight or a constant.
        type: Its Relay type.
        data: Its value where it is a constant.
        weight: Name of the weight that it is.
        term: What is written for it where it has no variable.
    """

    name: str
    type: TensorType | SequenceType | None = None
    data: Array | None = field(default=None, compare=False)
    weight: str | None = None
    term: Expression | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is a constant or a weight."""
        return self.data is not None or self.weight is not None


class ExportContext(walk.ExportContext[Value]):
    """What a converter to PyTorch may reach.

    Functions are named as in ``model.py``: ``torch.*``, ``F.*`` (``torch.nn.functional``),
    ``torch.linalg.*``, ``torch.special.*`` and ``nn.*`` for layers. Arguments are values, Python
    literals, dtypes that :meth:`dtype` gave, and lists and tuples of these.

    Attributes:
        layers: Submodules by name.
        stored: Names in the module of weights and constants that are used outside of layers.
        weights: All weights by name, those that converters compute of others included.
        functions: Functions of ``serde.torch.written.functions`` that are called.
        dims: What tensors of lengths hold, by variable.
        hop: Whether control flow is written as higher-order operators.
        training: What only matters in training, by the names of nodes of the source.
    """

    scope: Block

    def __init__(self, table: ConverterTable, *, hop: bool = False) -> None:
        super().__init__(table, 1, Block())
        self.layers: dict[str, tree.Layer] = {}
        self.stored: dict[str, str] = {}
        self.weights: dict[str, Weight] = {}
        self.constants: set[str] = set()
        self.functions: list[str] = []
        self.types: dict[str, TensorType | SequenceType] = {}
        self.dims: dict[str, tuple[Dim, ...]] = {}
        self.hop = hop
        self.training: Mapping[str, Mapping[str, AnyValue]] = {}
        self._count = 0
        self._attributes = Names(OF_MODULES, first=1, joint="_")
        self._keys = Names(first=1, joint="_")
        self._claimed: dict[str, str] = {}
        self._same: dict[AnyValue, str] = {}

    def declare_weights(self, weights: Mapping[str, Weight]) -> None:
        """Have the weights of the source, which keep their names."""
        self.weights.update(weights)
        self._keys.take(*weights)

    # What converters call.

    def call(self, function: str, *arguments: AnyValue, **keywords: AnyValue) -> Value:
        """Write the call of a function that gives one tensor."""
        if function.startswith("F.") and ("pool" in function or "conv" in function):
            arguments = tuple(map(_shorten, arguments))
            keywords = {name: _shorten(each) for name, each in keywords.items()}
        given = self._terms(arguments, numbers=function in TAKES_NUMBERS)
        if function == "torch.where":
            given = given[:1] + self._terms(arguments[1:], numbers=True)
        return self.assign(tree.Apply(function, given, self._keywords(keywords)))

    def call_tuple(
        self, function: str, *arguments: AnyValue, outputs: int, **keywords: AnyValue
    ) -> tuple[Value, ...]:
        """Write the call of a function that gives a tuple or a list of tensors."""
        given = self._terms(arguments)
        return self.assign_tuple(tree.Apply(function, given, self._keywords(keywords)), outputs)

    def method(self, x: Value, name: str, *arguments: AnyValue, **keywords: AnyValue) -> Value:
        """Write the call of a method of a tensor that gives one tensor."""
        given = self._terms(arguments)
        return self.assign(tree.Method(self.term(x), name, given, self._keywords(keywords)))

    def infix(self, operator: str, x: AnyValue, y: AnyValue) -> Value:
        """Write a Python operator between two tensors, or a tensor and a number."""
        left, right = self._terms((x, y), numbers=True)
        return self.assign(tree.Infix(operator, left, right))

    def prefix(self, operator: str, x: Value) -> Value:
        """Write a Python operator before a tensor, such as ``-`` or ``~``."""
        return self.assign(tree.Prefix(operator, self.term(x)))

    def index(self, x: Value, items: AnyValue) -> Value:
        """Write ``x[items]``.

        Args:
            x: A tensor.
            items: Slices, integers, None, ``...`` and values, or one of these.
        """
        several = items if isinstance(items, tuple) else (items,)
        return self.assign(tree.Index(self.term(x), self._terms(several)))

    def layer(
        self,
        kind: str,
        arguments: Sequence[AnyValue],
        weights: Mapping[str, Value],
        **made: AnyValue,
    ) -> Value:
        """Write the call of a submodule that gives one tensor.

        Args:
            kind: Its class, such as ``nn.Conv2d``.
            arguments: What it is called with.
            weights: Its parameters and buffers, of which :meth:`is_weight` holds.
            made: Arguments of its constructor.
        """
        name = self._layer(kind, weights, made)
        return self.assign(tree.Submodule(name, self._terms(arguments)))

    def layer_states(
        self,
        kind: str,
        arguments: Sequence[AnyValue],
        weights: Mapping[str, Value],
        *,
        states: int,
        **made: AnyValue,
    ) -> tuple[Value, tuple[Value, ...]]:
        """Write the call of a recurrent layer, which gives its output and its states.

        Two states come as a tuple inside the tuple; see :meth:`layer`.
        """
        name = self._layer(kind, weights, made)
        value = tree.Submodule(name, self._terms(arguments))
        targets = tuple(self.variable() for _ in range(1 + states))
        inner = states if states > 1 else 0
        self.scope.statements.append(tree.Assign(targets, value, (), self._source, inner))
        found = tuple(map(Value, targets))
        return found[0], found[1:]

    def is_weight(self, *values: Value | None) -> bool:
        """Whether a layer can hold values: weights and constants that no layer holds yet.

        It holds each of them once. A layer that is used again, with the same weights, is the
        same; other uses of a weight read the parameter of its layer.
        """
        given = [each for each in values if each is not None]
        if len({each.name for each in given}) < len(given):
            return False
        return all(each.is_known and self._claimed.get(each.name) is None for each in given)

    def keep_fixed(self, *values: Value) -> None:
        """Have weights as buffers, which do not train."""
        self.constants.update(each.name for each in values)

    def in_training(self) -> Mapping[str, AnyValue]:
        """Return what the source says of the node that only matters in training."""
        return self.training.get(self._source, {})

    def sizes(self, dims: Sequence[Dim]) -> list[AnyValue]:
        """Return lengths for an argument: integers, and values that are read from inputs.

        Raises:
            Unsupported: A dimension is anonymous, or nothing shows its symbol.
        """
        return [dim if isinstance(dim, int) else self.length(dim) for dim in dims]

    def numbers(self, x: Value) -> list[AnyValue] | None:
        """Return the integers of a tensor for arguments, None where no shape or constant tells."""
        if x.data is not None:
            return [int(each) for each in x.data.flat]
        dims = self.dims.get(x.name, (Any(),))
        return None if any(isinstance(dim, Any) for dim in dims) else self.sizes(dims)

    def size(self, x: Value, axis: int) -> int | Value:
        """Return the length of an axis for an argument: an integer if it is known."""
        dim = self.type(x).shape[axis]
        if isinstance(dim, int):
            return dim
        return Value("", term=tree.Length(self.term(x), axis % self.type(x).rank))

    def dtype(self, name: str) -> tree.Dtype:
        """Return a dtype for an argument.

        Raises:
            Unsupported: PyTorch does not have it.
        """
        if name not in DTYPES:
            raise Unsupported(f"PyTorch has no {name}")
        return tree.Dtype(name)

    def const(self, value: AnyValue, dtype: AnyValue = None) -> Value:
        """Return a constant: a number where the call takes one, else a buffer of the module."""
        data = np.array(value, dtype=None if dtype is None else numpy_dtype(str(np.dtype(dtype))))
        self.dtype(dtype_name(data.dtype))
        key = (data.dtype.name, data.shape, data.tobytes())
        name = self._same.get(key) or self._same.setdefault(key, self._keys.reserve("constant"))
        return Value(name, TensorType(data.shape, dtype_name(data.dtype)), data)

    def scalar(self, x: Value) -> AnyValue:
        """Return a constant of one element as a Python number, None if it is none."""
        return None if x.data is None or x.data.size != 1 else x.data.reshape(-1)[0].item()

    def helper(self, name: str) -> str:
        """Return a function of ``serde.torch.written.functions`` for :meth:`call`.

        It is written into ``model.py`` once, with all of that package that it calls.
        """
        if name not in self.functions:
            self.functions.append(name)
        return name

    # Values.

    def typed(self, x: Value, type_: TensorType | SequenceType) -> Value:
        """Return a value with its Relay type; a sequence is a list of tensors."""
        if not x.is_known:
            self.types.setdefault(x.name, type_)
        return replace(x, type=type_)

    def assign(self, value: Expression) -> Value:
        """Write what gives a tensor, and return that."""
        return self.assign_tuple(value, 0)[0]

    def assign_tuple(self, value: Expression, outputs: int) -> tuple[Value, ...]:
        """Write what gives a tuple or a list, and return its items; with 0, a tensor."""
        names = [self.variable() for _ in range(outputs or 1)]
        targets = tuple(names)
        if outputs == 1:
            value = tree.Index(value, (tree.Literal(0),))
        self.scope.statements.append(tree.Assign(targets, value, (), self._source))
        return tuple(map(Value, names))

    def variable(self, hint: str = "") -> str:
        """Return a new variable; one with a hint is called so, and nothing else is."""
        self._count += 1
        return f"{hint}#{self._count}" if hint else f"v{self._count}"

    def block(self, step: str) -> Block:
        """Return where the statements of a loop inside this one go.

        Raises:
            Unsupported: Too many lie inside each other.
        """
        made = Block(self.scope, f"{self._source}/{step}")
        made.loops += 1
        made.require_python()
        return made

    def write(self, statement: Statement) -> None:
        """Write a statement."""
        self.scope.statements.append(statement)

    def write_all(self, names: Sequence[str], values: Sequence[Value]) -> None:
        """Assign variables, all at once."""
        if not names:
            return
        terms = tuple(map(self.term, values))
        value = terms[0] if len(terms) == 1 else tree.Items(terms)
        self.write(tree.Assign(tuple(names), value, (), self._source))

    def begin_list(self) -> str:
        """Write an empty list of tensors, and return its variable."""
        name = self.variable("rows")
        self.write(tree.Assign((name,), tree.Items((), True), annotation="list[Tensor]"))
        return name

    def append(self, rows: str, value: Value) -> None:
        """Write what appends a tensor to a list."""
        call = tree.Method(tree.Local(rows), "append", (self.term(value),))
        self.write(tree.Assign((), call, (), self._source))

    def term(self, value: AnyValue, *, number: bool = False) -> Expression:
        """Return what is written for an argument.

        Args:
            value: The argument.
            number: Whether a constant scalar may be a number of Python's.
        """
        if isinstance(value, Value):
            return self._value_term(value, number)
        if isinstance(value, (tree.Dtype, tree.Local, tree.Stored, tree.Literal)):
            return value
        if isinstance(value, slice):
            ends = value.start, value.stop, value.step
            return tree.Slice(*(None if each is None else self.term(each) for each in ends))
        if isinstance(value, (list, tuple)):
            return tree.Items(tuple(map(self.term, value)), isinstance(value, list))
        if isinstance(value, np.generic):
            value = value.item()
        if (
            value is None
            or value is Ellipsis
            or isinstance(value, (bool, int, float, complex, str))
        ):
            return tree.Literal(value)
        raise ConverterBug(f"{self._source}: {value!r} is no argument")

    def _value_term(self, value: Value, number: bool) -> Expression:
        if value.term is not None:
            return value.term
        if value.data is not None and number and value.data.ndim == 0:
            return tree.Literal(number_of(value.data.reshape(1)[0]))
        if value.is_known:
            self._store(value)
            return tree.Stored(value.name)
        return tree.Local(value.name)

    def _terms(
        self, values: Sequence[AnyValue], *, numbers: bool = False
    ) -> tuple[Expression, ...]:
        """Return arguments; constant scalars are numbers beside a tensor that is none."""
        known = (isinstance(each, Value) and each.data is not None for each in values)
        numbers = numbers and not all(known)
        return tuple(self.term(each, number=numbers) for each in values)

    def _keywords(self, given: Mapping[str, AnyValue]) -> tuple[tuple[str, Expression], ...]:
        return tuple((name, self.term(each)) for name, each in given.items())

    # Weights and layers.

    def _store(self, value: Value) -> None:
        """Have a weight or a constant as an attribute of the module, if it is no layer's."""
        if value.data is not None and value.weight is None and value.name not in self.weights:
            self.weights[value.name] = ArrayWeight(value.data)
            self.constants.add(value.name)
        if value.name not in self.stored and value.name not in self._claimed:
            wanted = "constant" if value.weight is None else value.name
            self.stored[value.name] = self.attribute(wanted)

    def attribute(self, wanted: str) -> str:
        """Return an unused name of an attribute of the module, like the one that is wanted."""
        return self._attributes.reserve(identifier(wanted) or "layer")

    def _layer(self, kind: str, weights: Mapping[str, Value], made: Mapping[str, AnyValue]) -> str:
        """Return the submodule of a class with these weights and arguments."""
        arguments = self._constructor(kind, weights, made)
        key = (kind, arguments, tuple((name, each.name) for name, each in weights.items()))
        if weights and key in self._same:
            return self._same[key]
        sources = [each.weight for each in weights.values() if each.weight is not None]
        name = self.attribute(_common_name(sources) or self._source or kind)
        fixed = tuple(
            each
            for each, value in weights.items()
            if each not in BUFFERS and (value.weight is None or value.weight in self.constants)
        )
        held = self._hold(name, weights)
        self.layers[name] = tree.Layer(kind, arguments, held, fixed)
        self._same[key] = name
        return name

    def _hold(self, layer: str, weights: Mapping[str, Value]) -> dict[str, str]:
        """Give a layer its weights; a constant of its own to each layer."""
        held = {}
        for name, value in weights.items():
            held[name] = value.name
            if value.weight is None and value.data is not None:
                held[name] = self._keys.reserve(f"{layer}.{name}")
                self.weights[held[name]] = ArrayWeight(value.data)
            else:
                self._claimed[value.name] = layer
                self.stored.pop(value.name, None)
        return held

    def _constructor(
        self, kind: str, weights: Mapping[str, Value], made: Mapping[str, AnyValue]
    ) -> tuple[tuple[str, Expression], ...]:
        # That which counts batches is an int64, whatever the layer is.
        counted = (each for name, each in weights.items() if name != "num_batches_tracked")
        dtypes = {self.type(each).dtype for each in counted} - {"float32"}
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} if "Conv" in kind else {}
        given = {**usual, **made}  # Blocks are compared by all that may differ.
        if len(dtypes) == 1 and dtypes != {"int64"}:
            given["dtype"] = self.dtype(dtypes.pop())
        first = next((names for key, names in _POSITIONAL.items() if key in kind), ())
        order = sorted(given, key=lambda name: first.index(name) if name in first else len(first))
        shorten = _shorten if "Conv" in kind else _keep
        return tuple((name, self.term(shorten(given[name]))) for name in order)

    def computed_weight(self, root: Expr, values: Mapping[Expr, Value]) -> Value | None:
        """Return the weight that an expression of constants and weights alone is."""
        if not all(each.is_known for each in values.values()):
            return None
        sources = {
            leaf: self.weights[value.name]
            for leaf, value in values.items()
            if isinstance(leaf, Var) and value.weight is not None
        }
        weight = ComputedWeight(root, sources)
        base = next((each.name for each in values.values() if each.weight is not None), "constant")
        name = self._keys.reserve(f"{base}_computed")
        self.weights[name] = weight
        return Value(name, TensorType(weight.shape, weight.dtype), weight=name)

    # Lengths: numbers of Python's.

    def length(self, dim: Dim) -> Value:
        """Return a number, computed at run time where it is symbolic.

        Raises:
            Unsupported: It is anonymous, or nothing shows its symbol.
        """
        if isinstance(dim, int):
            return Value("", term=tree.Literal(dim))
        if isinstance(dim, Any):
            raise Unsupported("needs a length that is not known before the model runs")
        return super().length(dim)

    def shape(self, dims: Sequence[Dim]) -> Value:
        """Return a vector of int64 that holds `dims`."""
        fixed = [dim for dim in dims if isinstance(dim, int)]
        if len(fixed) == len(dims):
            return self.const(np.array(fixed, np.int64))
        found = self.call("torch.tensor", self.sizes(dims), dtype=self.dtype("int64"))
        return replace(found, type=TensorType((len(dims),), "int64"))

    def symbol_length(self, name: str) -> Value:
        """Return the length that a symbol stands for."""
        _, value, axis = self.symbols.find(name, self.scope)
        return self.axis_length(value, axis)

    def axis_length(self, x: Value, axis: int) -> Value:
        """Return the length of an axis."""
        return Value("", term=tree.Length(self.term(x), axis))

    def lengths(self, values: Sequence[int]) -> Value:
        """Return a number that is known."""
        (value,) = values
        return Value("", term=tree.Literal(value))

    def combine_lengths(
        self, operator: Literal["mul", "add", "floor_div"], one: Value, other: Value
    ) -> Value:
        """Return the product, the sum or the quotient of two numbers."""
        symbol = {"mul": "*", "add": "+", "floor_div": "//"}[operator]
        return Value("", term=tree.Infix(symbol, self.term(one), self.term(other)))


def number_of(scalar: np.generic) -> AnyValue:
    """Return the number of Python's with the fewest digits of which PyTorch makes a scalar.

    It computes with numbers in float32 beside narrower tensors, and takes none beyond float32.
    """
    value = scalar.item()
    if dtype_name(scalar.dtype) != "float32" or not math.isfinite(value):
        return value
    shortest = float(str(scalar))
    return shortest if abs(shortest) <= float(np.finfo(np.float32).max) else value


def _shorten(value: AnyValue) -> AnyValue:
    """Return equal lengths along all axes as one number, as layers take them."""
    if isinstance(value, tuple) and len(value) > 1 and len(set(value)) == 1:
        return value[0] if type(value[0]) is int else value
    return value


def _keep(value: AnyValue) -> AnyValue:
    return value


_PARAMETERS: Final = (
    "weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "running_mean",
    "running_var", "alpha", "kernel", "w", "b",
)  # fmt: skip


def _common_name(weights: Sequence[str]) -> str:
    """Return what the names of a layer's weights have in common: that of the layer."""
    if not weights:
        return ""
    parts = [re.split(r"([_./:]+)", name) for name in weights]
    common: list[str] = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    if len(common) == min(map(len, parts)) and common[-1].lower() in _PARAMETERS:
        common.pop()
    return "".join(common).strip("_./:")
