"""Integer operators for real ones between dequantisation and quantisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any as AnyValue, ClassVar, Final

from serde.core.records import dataclass, field
from serde.errors import RelayError, TypeInferenceError
from serde.relay.ir import OpDef, call, infer_call, infer_function, rewrite_function
from serde.relay.ir.affine_type import AffineType, TensorAffineType, TupleAffineType
from serde.relay.ir.attrs import get_op_attr
from serde.relay.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, tensor_type
from serde.relay.transform.base import TvmFunctionPass

__all__ = ["FakeQuantizationToInteger"]

KEY: Final = "FTVMFakeQuantizationToInteger"
OPTIONAL_KEY: Final = "FTVMOptionalFakeQuantizationToInteger"

_WITHOUT_QUANTIZE: Final = frozenset((
    "broadcast_to", "clip", "expand_dims", "max", "maximum", "min", "minimum", "nn.avg_pool2d",
    "nn.batch_flatten", "nn.batch_matmul", "nn.bias_add", "nn.conv2d", "nn.conv2d_transpose",
    "nn.dense", "nn.depth_to_space", "nn.global_avg_pool2d", "nn.max_pool2d", "nn.pad", "nn.relu",
    "reshape", "split", "squeeze", "strided_slice", "transpose",
))  # fmt: skip
"""Operators that become integer ones though no quantisation follows, where that is asked for."""

Types = dict[Expr, AffineType]
Rule = Callable[[Call, Types], Sequence[AnyValue]]


@dataclass(frozen=True)
class FakeQuantizationToInteger(TvmFunctionPass):
    """Compute in integers what stands between ``qnn.dequantize`` and ``qnn.quantize``.

    Each operator there needs a function as its attribute ``FTVMFakeQuantizationToInteger``. It
    gets the call, its operands being integers already, and what expressions stand for: a mapping
    of :class:`~serde.relay.ir.affine_type.AffineType`, which for the call itself says what the
    quantisation wants. It returns what stands for the call, and what that stands for. Where an
    operator has none, or it refuses, the region stays as it is. So does one in which a variable
    or a function is met without a dequantisation.

    Args:
        hard_fail: Whether to refuse the function where a region cannot be converted.
        use_qat: Whether operators of dequantised tensors become integer ones though no
            quantisation follows; dequantisation then moves behind them.
        optional_qnn_ops: Names of operators that are converted by their attribute
            ``FTVMOptionalFakeQuantizationToInteger``, which loses precision (``nn.softmax``).

    Raises:
        RelayError: A region cannot be converted, and `hard_fail` is set.
    """

    name: ClassVar[str] = "FakeQuantizationToInteger"
    required: ClassVar[Sequence[str]] = ("InferType", "DivToMul")

    hard_fail: bool = False
    use_qat: bool = False
    optional_qnn_ops: Sequence[str] | None = None

    def transform(self, function: Function) -> Function:
        """Convert the regions of one function, each where it ends."""
        result = _Quantized(self._rules(), self.hard_fail).run(function)
        if self.use_qat:
            result = _Unquantized(self._rules(), self.hard_fail).run(infer_function(result))
        return result

    def _rules(self) -> Callable[[str], Rule | None]:
        optional = frozenset(self.optional_qnn_ops or ())

        def find(name: str) -> Rule | None:
            rule: Rule | None = get_op_attr(name, KEY)
            if rule is None and name in optional:
                rule = get_op_attr(name, OPTIONAL_KEY)
            return rule

        return find


class _NotConvertibleError(RelayError):
    """A region is not converted, and why."""


@dataclass
class _Regions(ABC):
    """Replaces regions of a function by integer forms, where each ends.

    Attributes:
        rules: Gives the function that converts an operator, if any.
        hard_fail: Whether a region that cannot be converted refuses the function.
    """

    rules: Callable[[str], Rule | None]
    hard_fail: bool
    done: dict[Expr, Expr] = field(default_factory=dict)
    free: dict[Expr, bool] = field(default_factory=dict)

    def run(self, function: Function) -> Function:
        return rewrite_function(function, self._replace, self.done)

    def _replace(self, old: Expr, new: Expr) -> Expr:
        self._note(old, new)
        if not isinstance(new, Call) or not isinstance(new.op, OpDef):
            return new
        try:
            found = self._convert(old, new)
        except Exception as error:  # Rules are the user's, too: what they raise means no.
            if self.hard_fail:
                where = f"{new.op.name} ends a region that cannot be converted"
                raise RelayError(f"{where}: {error}") from error
            return new
        if found is None:
            return new
        self.free[found] = False
        return found

    def _note(self, old: Expr, new: Expr) -> None:
        """Note whether a node depends on something else than dequantised tensors and constants."""
        self.free[old] = _is_free(old, self.free)

    @abstractmethod
    def _convert(self, old: Expr, new: Call) -> Expr | None:
        """Return what stands for a region that ends in a node; None where none does."""

    def _apply(self, node: Call, types: Types) -> tuple[Expr, AffineType]:
        name = _op_name(node)
        rule = self.rules(name)
        if rule is None:
            raise _NotConvertibleError(f"{name} has no {KEY}")
        found = rule(node, types)
        if len(found) != 2 or not isinstance(found[0], Expr):
            raise _NotConvertibleError(f"{KEY} of {name} returned {found!r}")
        types[found[0]] = found[1]
        return found[0], found[1]


class _Quantized(_Regions):
    """Regions that end in a quantisation."""

    def _convert(self, old: Expr, new: Call) -> Expr | None:
        if _op_name(new) != "qnn.quantize" or self.free[old]:
            return None
        types: Types = {}
        names = set()
        for node in _region(old, quantize_all=False):
            if not isinstance(node, Call):
                continue
            name = _op_name(node)
            if name in ("qnn.quantize", "qnn.dequantize"):
                types[new if node is old else self.done[node]] = _type_of(node)
            if name != "qnn.quantize":
                names.add(name)
        if not names:
            return None
        for name in sorted(names):
            if self.rules(name) is None:
                raise _NotConvertibleError(f"{name} has no {KEY}")
        result = self._build(new, types)
        if result.type != new.type:
            raise _NotConvertibleError(f"the region would be {result.type!r}, not {new.type!r}")
        return result

    def _build(self, end: Call, types: Types) -> Expr:
        wanted = types[end]
        built: dict[Expr, Expr] = {}
        for node in _region(end, quantize_all=True):
            if not isinstance(node, Call):
                built[node] = _rebuild_tuple(node, built, types)
                continue
            given = node
            if _op_name(node) != "qnn.dequantize":
                given = _with_args(node, [built.get(arg, arg) for arg in node.args])
                types[given] = wanted
            built[node] = self._apply(given, types)[0]
        return built[end]


class _Unquantized(_Regions):
    """Single operators of dequantised tensors; what they yield is dequantised behind them."""

    def _note(self, old: Expr, new: Expr) -> None:
        self.free[new] = _is_free(new, self.free)

    def _convert(self, old: Expr, new: Call) -> Expr | None:
        name = _op_name(new)
        if name not in _WITHOUT_QUANTIZE or self.rules(name) is None or self.free[new]:
            return None
        below = list(_operands(new.args))
        types = {node: _type_of(node) for node in below if _op_name(node) == "qnn.dequantize"}
        if not types and not any(isinstance(node, Call) for node in below):
            return None
        other = next((n for n in below if isinstance(n, Call) and n not in types), None)
        if other is not None:
            raise _NotConvertibleError(f"{_op_name(other)} is no qnn.dequantize")
        return self._build(new, below, dict(types))

    def _build(self, end: Call, below: Iterable[Expr], types: Types) -> Expr:
        built: dict[Expr, Expr] = {}
        for node in below:
            if isinstance(node, Call):
                built[node] = self._apply(node, types)[0]
            else:
                built[node] = _rebuild_tuple(node, built, types)
        result, found = self._apply(_with_args(end, [built[arg] for arg in end.args]), types)
        if not isinstance(found, TensorAffineType):
            raise _NotConvertibleError(f"{_op_name(end)} yields several tensors")
        real = call("qnn.dequantize", result, found.scale, found.zero_point, axis=found.axis,
                    out_dtype="float32")  # fmt: skip
        if real.type != end.type:
            raise _NotConvertibleError(f"the result would be {real.type!r}, not {end.type!r}")
        return real


def _op_name(node: Expr) -> str:
    return node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else ""


def _is_free(node: Expr, free: dict[Expr, bool]) -> bool:
    """Whether a node depends on something else than dequantised tensors and constants.

    Nodes that are not noted do: they stand in functions, or are no data flow.
    """
    if isinstance(node, Constant) or _op_name(node) == "qnn.dequantize":
        return False
    if isinstance(node, TupleGetItem):
        return free.get(node.tuple_value, True)
    if isinstance(node, Tuple):
        return any(free.get(each, True) for each in node.fields)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return True
    args = node.args[:1] if node.op.name == "qnn.quantize" else node.args
    return any(free.get(arg, True) for arg in args)


def _type_of(node: Expr) -> TensorAffineType:
    """Return what a quantised or dequantised tensor stands for."""
    if not isinstance(node, Call):
        raise _NotConvertibleError(f"expected a call, found {node!r}")
    data, scale, zero_point = node.args
    integers = node.attrs["out_dtype"]
    if _op_name(node) == "qnn.dequantize":
        integers = tensor_type(data).dtype
    return TensorAffineType(scale, zero_point, integers, node.attrs["axis"])


def _region(end: Expr, *, quantize_all: bool) -> Iterator[Expr]:
    """Yield the nodes that `end` depends on, up to dequantised tensors, children first.

    Args:
        end: The last node.
        quantize_all: Whether scales and zero points of quantisations count.
    """

    def below(node: Expr) -> Iterator[Expr]:
        name = _op_name(node)
        if isinstance(node, TupleGetItem):
            return iter((node.tuple_value,))
        if isinstance(node, Tuple):
            return iter(node.fields)
        if not isinstance(node, Call) or name == "qnn.dequantize":
            return iter(())
        return iter(node.args if quantize_all or name != "qnn.quantize" else node.args[:1])

    seen = {end}
    stack = [(end, below(end))]
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each not in seen), None)
        if child is None:
            stack.pop()
            yield node
        else:
            seen.add(child)
            stack.append((child, below(child)))


def _operands(args: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the calls and constants that operands consist of, and tuples behind their fields."""
    seen: set[Expr] = set()
    for arg in args:
        stack = [(arg, False)]
        while stack:
            node, expanded = stack.pop()
            parts: tuple[Expr, ...] = ()
            if isinstance(node, (Tuple, TupleGetItem)):
                parts = node.fields if isinstance(node, Tuple) else (node.tuple_value,)
            if expanded or not parts:
                if node not in seen:
                    seen.add(node)
                    yield node
                continue
            stack.append((node, True))
            stack += [(each, False) for each in reversed(parts)]


def _rebuild_tuple(node: Expr, built: dict[Expr, Expr], types: Types) -> Expr:
    """Return a tuple or a field of one for new parts, and note what it stands for."""
    new = node
    if isinstance(node, Tuple):
        new = Tuple([built[each] for each in node.fields], node.span)
        found = [types[each] for each in new.fields]
        types[new] = TupleAffineType(each for each in found if isinstance(each, TensorAffineType))
    elif isinstance(node, TupleGetItem):
        new = TupleGetItem(built[node.tuple_value], node.index, node.span)
        whole = types[new.tuple_value]
        if not isinstance(whole, TupleAffineType):
            raise _NotConvertibleError(f"a field is taken of {whole!r}")
        types[new] = whole.types[node.index]
    return new


def _with_args(node: Call, args: Sequence[Expr]) -> Call:
    """Return a call of other operands; without a type where its operator refuses integers."""
    new = Call(node.op, args, node.attrs, span=node.span)
    try:
        new.type = infer_call(new)
    except TypeInferenceError:
        new.type = None
    return new
