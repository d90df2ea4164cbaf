"""Arithmetic in a narrower floating-point type where operators say that they bear it.

Each operator may have a function as its attribute ``FTVMMixedPrecisionConversionType``: it gets
the call and the narrow type, and says whether the operator is computed in it always, where its
operands are, or never; and the types in which it accumulates and hands out its result. What TVM
says of its operators stands below.

Source: ``ToMixedPrecision`` of TVM 0.18.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, ClassVar, Final, TypeVar

import numpy as np

from serde.core import dataclass, dtype_name, field, numpy_dtype
from serde.errors import OptionError, RelayError, Unsupported
from serde.relay.ir import IRModule, Match, carried, find_callees, is_float, limits, registration
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.registry import OpDef, call, set_type
from serde.relay.ir.types import TensorType, TupleType, Type
from serde.relay.ir.visit import Binding, binding_order, children, rebuild
from serde.relay.transform.base import TvmFunctionPass
from serde.relay.transform.context import PassContext

__all__ = [
    "DEFAULT_ALWAYS_LIST", "DEFAULT_FOLLOW_LIST", "DEFAULT_NEVER_LIST",
    "MIXED_PRECISION_ALWAYS", "MIXED_PRECISION_FOLLOW", "MIXED_PRECISION_NEVER",
    "ToMixedPrecision", "generic_always_op", "generic_follow_op", "generic_never_op",
    "get_generic_out_dtypes", "register_func_to_op_list", "register_mixed_precision_conversion",
]  # fmt: skip

_LOG = logging.getLogger(__name__)

MIXED_PRECISION_ALWAYS: Final = 0
"""Computed in the narrow type."""

MIXED_PRECISION_FOLLOW: Final = 1
"""Computed in the narrow type where operands are in it, or are variables and constants."""

MIXED_PRECISION_NEVER: Final = 2
"""Computed in float32."""

KEY: Final = "FTVMMixedPrecisionConversionType"
KEEP_OUTPUT: Final = "relay.ToMixedPrecision.keep_orig_output_dtype"

register_mixed_precision_conversion = registration(KEY)

DEFAULT_ALWAYS_LIST = [
    *(f"nn.conv{rank}d" for rank in (1, 2, 3)),
    *(f"nn.conv{rank}d_transpose" for rank in (1, 2, 3)),
    "nn.batch_matmul", "nn.dense",
]  # fmt: skip

DEFAULT_FOLLOW_LIST = [
    # What arranges elements, or makes new ones.
    "argwhere", "broadcast_to_like", "concatenate", "dyn.broadcast_to", "dyn.full", "dyn.reshape",
    "dyn.strided_slice", "dyn.tile", "expand_dims", "full", "nn.batch_flatten",
    "nn.depth_to_space", "nn.pad", "reshape", "scatter", "scatter_elements", "scatter_nd", "split",
    "squeeze", "strided_slice", "take", "tile", "transpose", "where", "zeros",
    # Comparison, and what takes its type from its operand.
    "cast", "cast_like", "copy", "greater", "greater_equal", "less", "less_equal", "shape_of",
    # Arithmetic.
    "add", "divide", "multiply", "nn.batch_norm", "nn.bias_add", "sqrt", "subtract",
    # Extrema, and activations.
    "argmax", "argmin", "fast_erf", "fast_exp", "fast_tanh", "max", "maximum", "min", "minimum",
    "nn.dropout", "nn.leaky_relu", "nn.prelu", "nn.relu", "sigmoid", "tanh",
    # Windows.
    *(f"nn.{kind}_pool{rank}d" for kind in ("avg", "max") for rank in (1, 2, 3)),
    *(f"nn.adaptive_max_pool{rank}d" for rank in (1, 2, 3)),
    "image.resize2d", "nn.global_max_pool2d",
]  # fmt: skip

DEFAULT_NEVER_LIST = [
    # Results far greater than operands, and ends of ranges that may be great.
    "arange", "erf", "exp", "nn.cross_entropy", "nn.cross_entropy_with_logits", "nn.l2_normalize",
    "nn.softmax", "power",
    # Sums of many terms.
    *(f"nn.adaptive_avg_pool{rank}d" for rank in (1, 2, 3)),
    "mean", "nn.global_avg_pool2d", "nn.layer_norm", "sum", "variance",
]  # fmt: skip

Verdict = Sequence[AnyValue]
"""Category, type of accumulation, type of the result."""

JudgeT = TypeVar("JudgeT", bound=Callable[[Call, str], Verdict])


def get_generic_out_dtypes(call_node: Call, mixed_precision_type: str) -> list[str]:
    """Return the types in which most operators accumulate and hand out: both the narrow one."""
    return [mixed_precision_type, mixed_precision_type]


def register_func_to_op_list(list_ops: Sequence[str]) -> Callable[[JudgeT], JudgeT]:
    """Return a decorator that registers what a function says for several operators."""

    def decorate(func: JudgeT) -> JudgeT:
        for name in list_ops:
            register_mixed_precision_conversion(name, func)
        return func

    return decorate


def generic_always_op(call_node: Call, mixed_precision_type: str) -> Verdict:
    """Say that a call is always computed in the narrow type."""
    return [MIXED_PRECISION_ALWAYS, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_follow_op(call_node: Call, mixed_precision_type: str) -> Verdict:
    """Say that a call is computed in the narrow type where its operands are."""
    return [MIXED_PRECISION_FOLLOW, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_never_op(call_node: Call, mixed_precision_type: str) -> Verdict:
    """Say that a call is computed in float32."""
    return [MIXED_PRECISION_NEVER, *get_generic_out_dtypes(call_node, mixed_precision_type)]


def _judge_clip(call_node: Call, mixed_precision_type: str) -> Verdict:
    """Say that a clip follows its operand, unless the narrow type lacks one of its bounds."""
    info = limits(mixed_precision_type)
    bounds = (call_node.attrs["a_min"], call_node.attrs["a_max"])
    if min(bounds) < float(info.min) or max(bounds) > float(info.max):
        return generic_never_op(call_node, mixed_precision_type)
    return generic_follow_op(call_node, mixed_precision_type)


for _names, _judge in (
    (DEFAULT_ALWAYS_LIST, generic_always_op),
    (DEFAULT_FOLLOW_LIST, generic_follow_op),
    (DEFAULT_NEVER_LIST, generic_never_op),
    (["clip"], _judge_clip),
):
    register_func_to_op_list(_names)(_judge)


@dataclass(frozen=True)
class ToMixedPrecision(TvmFunctionPass):
    """Compute in a narrow floating-point type what operators bear in it, float32 elsewhere.

    Calls of functions get float32; bodies of loops that a call carries stay as they are. Functions
    of the module that are called keep the types of their parameters and results, where TVM
    refuses their calls. With
    ``relay.ToMixedPrecision.keep_orig_output_dtype`` set in the context of the pass, a result
    that is a call or a tuple keeps its type.

    Args:
        mixed_precision_type: The narrow type.
        missing_op_mode: What happens where operators say nothing of themselves and are hence
            taken to follow: 0 refuses the function, 1 logs a warning, 2 passes it over.

    Raises:
        ValueError: `missing_op_mode` is another number.
        RelayError: The type is not floating-point; operators say nothing and the mode is 0.
        Unsupported: Branches of an ``if`` would differ; or a function that calls itself would get
            another type.
    """

    name: ClassVar[str] = "ToMixedPrecision"

    mixed_precision_type: str = "float16"
    missing_op_mode: int = 1

    def __post_init__(self) -> None:
        if self.missing_op_mode not in (0, 1, 2):
            raise OptionError(f"missing_op_mode is 0, 1 or 2, not {self.missing_op_mode!r}")
        try:
            dtype = dtype_name(self.mixed_precision_type)
        except TypeError:
            raise OptionError(f"{self.mixed_precision_type!r} is no dtype") from None
        object.__setattr__(self, "mixed_precision_type", dtype)
        if not is_float(self.mixed_precision_type):
            raise RelayError(f"expected a floating-point type, found {self.mixed_precision_type}")

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Convert every function; the results of those that others call keep their types."""
        new, changed = super().run(mod)
        functions = dict(new.functions)
        for variable in {callee for callees in find_callees(mod).values() for callee in callees}:
            old, converter = mod.functions[variable], _Converter(self.mixed_precision_type, None)
            body = converter.as_type(functions[variable].body, old.body.type)
            functions[variable] = _with_body(functions[variable], body)
        return new.with_functions(functions), changed

    def transform(self, function: Function) -> Function:
        """Convert one function."""
        keep = bool(PassContext.current().config.get(KEEP_OUTPUT, False))
        converter = _Converter(self.mixed_precision_type, function.body if keep else None)
        result = converter.run(function)
        for name, count in converter.missing.items() if self.missing_op_mode < 2 else ():
            _LOG.warning("operator %s, %s of the nodes, has no %s", name, count, KEY)
        if converter.missing and self.missing_op_mode == 0:
            raise RelayError(f"operators without {KEY}: {', '.join(sorted(converter.missing))}")
        return result

    def transform_body(self, body: Function) -> Function:
        """Leave what a call carries; its parameters and results have types of their own."""
        return body


@dataclass
class _Converter:
    """Builds the mixed form of a function, node by node.

    Attributes:
        narrow: The narrow type.
        root: The result that keeps its type, if any.
    """

    narrow: str
    root: Expr | None
    done: dict[Expr, Expr] = field(default_factory=dict)
    casts: dict[tuple[Expr, str], Expr] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)

    def run(self, function: Function) -> Function:
        for step in binding_order(function):
            if isinstance(step, Binding):
                self._bind(step.node)
            else:
                self.done[step] = self._convert(step)
        result = self.done[function]
        return result if isinstance(result, Function) else function

    def _bind(self, let: Let | Match) -> None:
        """Give a variable the type of its new value."""
        if isinstance(let, Match):
            raise Unsupported("a match of data types has no mixed precision")
        value = self.done[let.value]
        if let.var in self.done:
            if value.type != let.var.type:
                raise Unsupported(f"%{let.var.name_hint} would get another type inside itself")
        elif value.type != let.var.type:
            self.done[let.var] = Var(let.var.name_hint, value.type, let.var.span)

    def _convert(self, node: Expr) -> Expr:
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Var):
            return self.done.get(node, node)
        parts = [self.done[child] for child in children(node)]
        if isinstance(node, Function):
            return _with_body(node, parts[-1])
        if isinstance(node, If) and parts[1].type != parts[2].type:
            raise Unsupported(f"branches would be {parts[1].type!r} and {parts[2].type!r}")
        new = rebuild(node, parts)
        if node is self.root and isinstance(node, Tuple) and isinstance(new, Tuple):
            return self.as_type(new, node.type)
        return new

    def as_type(self, node: Expr, wanted: Type | None) -> Expr:
        """Return `node` with the dtypes of a type, tuples field by field."""
        if isinstance(wanted, TensorType):
            return self._cast(node, wanted.dtype)
        if not isinstance(wanted, TupleType) or node.type == wanted:
            return node
        return Tuple(map(self.as_type, _fields(node, wanted), wanted.fields), node.span)

    def _call(self, node: Call) -> Expr:
        args = [self.done[arg] for arg in node.args]
        if not isinstance(node.op, OpDef) or carried(node):
            return self._call_function(node, args)
        category, accumulation, output = self._judge(node, node.op)
        if category == MIXED_PRECISION_FOLLOW:
            follows = all(map(self._is_convertible, args))
            category = MIXED_PRECISION_ALWAYS if follows else MIXED_PRECISION_NEVER
        wanted = self.narrow if category == MIXED_PRECISION_ALWAYS else "float32"
        operands = [self._cast(arg, wanted) for arg in args]
        if category == MIXED_PRECISION_NEVER:
            return rebuild(node, operands)
        attrs = node.op.bind(_with_dtype(node.op, dict(node.attrs), accumulation))
        new: Expr = set_type(Call(node.op, operands, attrs, span=node.span))
        if accumulation != output:
            new = self._cast(new, output)
        if node is self.root and isinstance(node.type, TensorType) and node.type.dtype != output:
            new = self._cast(new, node.type.dtype)
        return new

    def _call_function(self, node: Call, args: list[Expr]) -> Expr:
        if isinstance(node.op, GlobalVar):
            same = [self.as_type(new, old.type) for new, old in zip(args, node.args, strict=True)]
            return rebuild(node, same)
        operands = [self._cast(arg, "float32") for arg in args]
        callee = () if isinstance(node.op, OpDef) else (self.done[node.op],)
        return rebuild(node, [*operands, *callee])

    def _judge(self, node: Call, definition: OpDef) -> tuple[int, str, str]:
        judge: Callable[[Call, str], Verdict] | None = definition.get_attr(KEY)
        if judge is None:
            self.missing[definition.name] += 1
            return MIXED_PRECISION_FOLLOW, self.narrow, self.narrow
        verdict = judge(node, self.narrow)
        if len(verdict) != 3:
            raise RelayError(f"{KEY} of {definition.name}: expected three values, found {verdict}")
        return int(verdict[0]), dtype_name(verdict[1]), dtype_name(verdict[2])

    def _is_convertible(self, arg: Expr) -> bool:
        """Whether a follower may have an operand in the narrow type."""
        return isinstance(arg, (Var, Constant)) or self._is_narrow(arg.type)

    def _is_narrow(self, type_: Type | None) -> bool:
        if isinstance(type_, TupleType):
            return all(map(self._is_narrow, type_.fields))
        if not isinstance(type_, TensorType):
            raise Unsupported(f"{type_!r} has no mixed precision")
        return not is_float(type_.dtype) or type_.dtype == self.narrow

    def _cast(self, node: Expr, wanted: str) -> Expr:
        """Return `node` in the wanted type, where it is floating-point.

        A cast back gives what was cast.
        """
        if isinstance(node.type, TupleType):
            return self._cast_fields(node, node.type, wanted)
        if not isinstance(node.type, TensorType):
            raise Unsupported(f"{node.type!r} has no mixed precision")
        found = node.type.dtype
        if not is_float(found) or found == wanted:
            return node
        if (node, wanted) not in self.casts:
            new = call("cast", node, dtype=numpy_dtype(wanted))
            self.casts[node, wanted] = new
            self.casts[new, found] = node
        return self.casts[node, wanted]

    def _cast_fields(self, node: Expr, type_: TupleType, wanted: str) -> Expr:
        fields = _fields(node, type_)
        new = [self._cast(each, wanted) for each in fields]
        return node if all(a is b for a, b in zip(new, fields, strict=True)) else Tuple(new)


def _fields(node: Expr, type_: TupleType) -> Sequence[Expr]:
    if isinstance(node, Tuple):
        return node.fields
    return [TupleGetItem(node, index) for index in range(len(type_.fields))]


def _with_body(function: Function, body: Expr) -> Function:
    """Return a function of another body, which tells what its result is."""
    if body is function.body:
        return function
    attrs = function.attrs
    return Function(function.params, body, body.type, attrs=attrs, span=function.span)


def _with_dtype(definition: OpDef, attrs: dict[str, AnyValue], dtype: str) -> dict[str, AnyValue]:
    """Return attributes with the type of accumulation, where they name a floating-point type."""
    key = _DTYPE_KEYS.get(definition.name)
    if key is not None and (attrs[key] is None or is_float(np.dtype(attrs[key]).name)):
        attrs[key] = numpy_dtype(dtype)
    return attrs


_DTYPE_KEYS: Final = {
    **dict.fromkeys((*DEFAULT_ALWAYS_LIST, "nn.deformable_conv2d"), "out_dtype"),
    **{
        f"{prefix}{name}": "dtype"
        for prefix in ("", "dyn.")
        for name in ("broadcast_to", "full", "ones", "zeros")
    },
}
"""Attributes that name the type of the result, of the operators of which TVM sets it."""
