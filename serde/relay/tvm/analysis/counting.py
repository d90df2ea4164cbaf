"""Counts of operators, of layers, and of multiplications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from serde.errors import RelayError
from serde.relay.ir import Call, Expr, IRModule, Op, TensorType, TupleWrapper, Type, astuple
from serde.relay.ir.registry import called_name, is_call
from serde.relay.tvm.analysis.variables import parts, post_order

__all__ = [
    "count_layers", "get_total_mac_number", "list_fake_quantized_op_freqs", "list_op_freqs",
    "op_frequencies",
]  # fmt: skip


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """Return how often ``main`` calls each operator, by its name."""
    return op_frequencies(post_order(mod["main"]))


def op_frequencies(nodes: Sequence[Expr]) -> dict[str, int]:
    """Return how often nodes call each operator, by its name."""
    calls = (node.op for node in nodes if isinstance(node, Call))
    return dict(Counter(op.name for op in calls if isinstance(op, Op)))


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """Return how often each operator runs on dequantised values whose result is quantised.

    Such operators stand between ``qnn.dequantize`` and ``qnn.quantize`` in ``main``; the two
    themselves do not count. A call between several results that are quantised counts for each.
    """
    total: Counter[str] = Counter()
    for node in post_order(mod["main"]):
        if is_call(node, "qnn.quantize"):
            total.update(op_frequencies(_region(node)))
    return dict(total)


def _region(quantize: Expr) -> list[Expr]:
    """Return what is computed in floats for the operand of a ``qnn.quantize``."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    pending = [quantize]
    while pending:
        node = pending.pop()
        if node in seen or is_call(node, "qnn.dequantize"):
            continue
        seen.add(node)
        if is_call(node, "qnn.quantize"):
            pending.append(node.args[0])
        else:
            found.append(node)
            pending.extend(parts(node))
    return found


def count_layers(expr: Expr | TupleWrapper | IRModule, valid_ops: Sequence[str]) -> int:
    """Return how many calls of some operators the longest chain of them has.

    Two that run side by side count as one.

    Args:
        expr: An expression, or a module, of which ``main`` is meant.
        valid_ops: Names of the operators.
    """
    root = expr["main"] if isinstance(expr, IRModule) else astuple(expr)
    depth: dict[Expr, int] = {}
    for node in post_order(root):
        depth[node] = is_call(node, *valid_ops) + max(
            (depth[each] for each in parts(node)), default=0
        )
    return depth[root]


def get_total_mac_number(expr: Expr | TupleWrapper) -> int:
    """Return the number of multiplications and additions of an expression that is typed.

    Only convolutions over two axes, plain and transposed, ``nn.dense`` and ``nn.batch_matmul``
    count, and calls without a type do not.

    Raises:
        RelayError: A length is not known.
    """
    return sum(_macs(node) for node in post_order(expr) if isinstance(node, Call))


def _macs(call: Call) -> int:
    name = called_name(call)
    if call.type is None or name not in _COUNTED:
        return 0
    data, weight = (_shape(arg.type) for arg in call.args[:2])
    if name == "nn.dense":
        return data[0] * data[1] * weight[0]
    if name == "nn.batch_matmul":
        return data[0] * data[1] * data[2] * weight[1]
    layout = call.attrs.data_layout
    inputs = prod(data[index] for index, axis in enumerate(_axes(layout)) if axis in "Cc")
    return prod(_shape(call.type)) * prod(call.attrs.kernel_size) * (inputs // call.attrs.groups)


_COUNTED = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")


def _axes(layout: str) -> str:
    """Return the axes of a layout such as ``NCHW16c``, one letter each."""
    return "".join(each for each in layout if each.isalpha())


def _shape(type_: Type | None) -> tuple[int, ...]:
    shape = type_.concrete_shape if isinstance(type_, TensorType) else None
    if shape is None:
        raise RelayError(f"expected a tensor of known shape, found {type_!r}")
    return shape
