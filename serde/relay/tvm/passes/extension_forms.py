"""Patterns of what extension operators decompose to, for :class:`Compose`.

No conversion uses them: an importer that finds an operator builds it. They are for modules that
were written, or decomposed, without extension operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any as AnyValue, Final

import numpy as np

from serde.errors import RelayError
from serde.relay.ir import OpDef, Sample, TensorType, get, sample, set_type, tensor
from serde.relay.ir.expr import Attrs, Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.visit import post_order, rewrite
from serde.relay.transform.compose import Match, Pattern, same_calls
from serde.relay.transform.decompose import Decompose

__all__ = ["FORMS", "extension_patterns"]

_X = tensor((2, 3, 4), "float64")
_NUMBER, _VECTOR = tensor((), "float64"), tensor((3,), "float64")
_BYTES, _BYTE = tensor((2, 3, 4), "int8"), tensor((), "int8")
_SCALE, _ZERO = tensor(()), tensor((), "int32")
_QUERY = tensor((2, 3, 4, 5), "float64")
_HEADS = tensor((2, 2, 6, 5), "float64")

_ELEMENTWISE = (
    "celu", "elu", "erfinv", "expm1", "gelu", "hard_sigmoid", "hard_swish", "lgamma", "log1p",
    "log_sigmoid", "mish", "round_even", "selu", "shrink", "silu", "softplus", "softsign",
    "swish", "tgamma", "thresholded_relu",
)  # fmt: skip
_QUANTIZED = (
    "abs", "erf", "exp", "hardswish", "leaky_relu", "log", "rsqrt", "sigmoid", "softmax", "sqrt",
    "tanh",
)  # fmt: skip
_REDUCTIONS = (
    "hardmax", "logsumexp", "lp_normalization", "reduce_l1", "reduce_l2", "reduce_log_sum",
    "reduce_sum_square",
)  # fmt: skip

FORMS: Final[tuple[tuple[str, Sample], ...]] = (
    *((f"serde.{name}", sample(_X)) for name in _ELEMENTWISE),
    *((f"serde.{name}", sample(tensor((4,)))) for name in ("erfinv", "lgamma", "tgamma")),
    *((f"serde.{name}", sample(_X)) for name in _REDUCTIONS),
    *((f"qnn.{name}", sample(_BYTES, _SCALE, _ZERO, _SCALE, _ZERO)) for name in _QUANTIZED),
    *(
        (f"qnn.{name}", sample(_BYTES, _BYTES, *[_SCALE, _ZERO] * 3))
        for name in ("add", "mul", "subtract")
    ),
    ("serde.gelu", sample(_X, approximate="tanh")),
    ("serde.logsumexp", sample(_X, axis=1, keepdims=True)),
    ("serde.lp_normalization", sample(_X, p=1)),
    ("serde.mean_variance_normalization", sample(_QUERY)),
    ("serde.rms_norm", sample(_X, tensor((4,), "float64"))),
    ("serde.swiglu", sample(_X, _X, alpha=1.702)),
    ("serde.matmul", sample(_QUERY, tensor((2, 3, 5, 6), "float64"))),
    ("serde.matmul", sample(tensor((2, 1, 4, 5), "float64"), tensor((3, 5, 6), "float64"))),
    ("serde.matmul", sample(_QUERY, tensor((5, 6), "float64"))),
    ("serde.matmul", sample(tensor((5,), "float64"), tensor((2, 5, 6), "float64"))),
    ("serde.matmul", sample(_QUERY, tensor((5,), "float64"))),
    ("serde.matmul", sample(_VECTOR, _VECTOR)),
    ("serde.matmul_integer", sample(tensor((3, 4), "uint8"), tensor((4, 5), "int8"))),
    ("serde.attention", sample(_QUERY, tensor((2, 3, 6, 5), "float64"),
                               tensor((2, 3, 6, 7), "float64"))),
    ("serde.attention", sample(_QUERY, _QUERY, _QUERY, scale=0.25)),
    ("serde.attention", sample(tensor((2, 4, 3, 5), "float64"), _HEADS, _HEADS,
                               tensor((3, 6), "float64"), softcap=0.75)),
    ("serde.dequantize_linear", sample(_BYTES, _SCALE, _BYTE)),
    ("serde.dequantize_linear", sample(_BYTES, tensor((3,)), tensor((3,), "int8"), axis=1)),
    ("serde.dequantize_linear", sample(_BYTES, tensor((3,)), axis=1)),
    ("serde.quantize_linear", sample(_X, _NUMBER, _BYTE, out_dtype="int8")),
    ("serde.quantize_linear", sample(_X, _VECTOR, tensor((3,), "int8"), axis=1, out_dtype="int8")),
    ("serde.nonzero", sample(tensor((2, 3), "bool"))),
)  # fmt: skip
"""What is looked for: an operator, and a call whose decomposition is the template.

Operands are variables; their dtype is that of the constants, which match narrower ones rounded.
"""


@cache
def extension_patterns() -> tuple[Pattern, ...]:
    """Return a pattern for each of :data:`FORMS`.

    Scalar attributes are read from the constants and attributes that they become; a match
    counts only if decomposing what it would be raised to gives the very nodes that were found.

    Raises:
        RelayError: The decomposition of a form is not a graph of calls.
    """
    return tuple(_extension_pattern(get(name), form) for name, form in FORMS)


def _decompose_fully(node: Call) -> Expr:
    """Return a call in operators that TVM has, other than its own."""

    def is_other(each: Call) -> bool:
        name = each.op.name if isinstance(each.op, OpDef) else ""
        return each.op is not node.op and not name.startswith("serde.")

    params = [argument for argument in node.args if isinstance(argument, Var)]
    return Decompose(is_other).transform(Function(params, node)).body


def _extension_pattern(definition: OpDef, form: Sample) -> Pattern:
    operands = _variables(definition, form)
    attrs = dict(definition.bind(form.attrs))
    markers = {
        name: 0.3710937 + 0.0117187 * index
        for index, (name, value) in enumerate(attrs.items())
        if isinstance(value, float)
    }
    node = set_type(Call(definition, operands, definition.bind({**attrs, **markers})))
    template = _decompose_fully(node)
    graph = post_order(template)
    allowed = (Call, Constant, Var, Tuple, TupleGetItem)
    if not isinstance(template, Call) or not all(isinstance(n, allowed) for n in graph):
        raise RelayError(f"{definition.name}: its decomposition is not a graph of calls")
    slots, captures = _slots(graph, markers)

    def build(match: Match) -> Expr | None:
        return _raise_call(definition, operands, attrs, slots, match)

    return Pattern(definition.name, template, build, captures)


def _variables(definition: OpDef, form: Sample) -> list[Expr]:
    """Return a variable for each operand of a form, nothing for those left out."""
    given = (*form.operands, *[None] * (len(definition.operands) - len(form.operands)))
    return [
        Tuple(()) if value is None else Var(operand.name, TensorType(value.shape, value.dtype))
        for operand, value in zip(definition.operands, given, strict=True)
    ]


_Slot = tuple[str, Expr, str | None, int]
"""An attribute, the node of the template it shows in, the attribute it became there, its sign."""


def _slots(
    graph: Sequence[Expr], markers: Mapping[str, float]
) -> tuple[list[_Slot], frozenset[Expr]]:
    slots: list[_Slot] = []
    captures: set[Expr] = set()
    signed = [(name, sign * value, sign) for name, value in markers.items() for sign in (1, -1)]
    for node in graph:
        for name, marker, sign in signed:
            if isinstance(node, Constant) and node.data.size == 1 and node.data.dtype.kind == "f":
                if float(node.data.reshape(())) == float(np.array(marker, node.data.dtype)):
                    slots.append((name, node, None, sign))
                    captures.add(node)
            elif isinstance(node, Call):
                slots += [(name, node, key, sign) for key, v in node.attrs.items() if v == marker]
    return slots, frozenset(captures)


def _raise_call(
    definition: OpDef,
    operands: Sequence[Expr],
    attrs: Mapping[str, AnyValue],
    slots: Sequence[_Slot],
    match: Match,
) -> Expr | None:
    """Return the extension call that a match stands for; None where it does not infer."""
    values = dict(attrs)
    for name, template, key, sign in slots:
        node = match.nodes[template]
        if key is None and isinstance(node, Constant):
            values[name] = _exact(definition.attributes[name].default, node, sign)
        elif key is not None and isinstance(node, Call):
            values[name] = sign * node.attrs[key]
    args = [match.nodes.get(operand, operand) for operand in operands]
    try:
        result = set_type(Call(definition, args, definition.bind(values), span=match.root.span))
        again = _decompose_over(result)
    except RelayError:
        return None
    return result if same_calls(again, match.root) else None


def _exact(default: AnyValue, node: Constant, sign: int) -> float:
    """Return the attribute that a constant was rounded from.

    That is the default if it rounds to the constant, else the shortest decimal that does:
    0.2, not 0.200000003.
    """
    value = node.data.reshape(())
    if isinstance(default, float) and np.array(sign * default, value.dtype) == value:
        return default
    return sign * float(str(value))


def _decompose_over(node: Call) -> Expr:
    """Return the full decomposition of a call over operands that stay as they are."""
    fresh: dict[Expr, Expr] = {}
    for argument in node.args:
        if not isinstance(argument, Tuple):
            fresh[argument] = Var("operand", argument.type)
    call = Call(
        node.op, [fresh.get(arg, arg) for arg in node.args], Attrs(node.attrs), span=node.span
    )
    call.type = node.type
    back = {variable: argument for argument, variable in fresh.items()}
    return rewrite(_decompose_fully(call), lambda _node, new: new, back)
