"""Mixtures of experts as ONNX Runtime computes them: only those that a router picks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.onnx.runtime_calls import DTYPES, foreign
from serde.relay.ir import OpDef, TensorType, call, get
from serde.relay.ir.expr import Call, Constant, Expr, TupleGetItem, Var
from serde.relay.transform.compose import Match, Pattern

__all__ = ["expert_patterns"]

_ATTRIBUTES: Final[Mapping[str, Mapping[str, tuple[AnyValue, ...]]]] = {
    "split": {"axis": (2, -1), "indices_or_sections": (2,)},
    "nn.softmax": {"axis": (1, -1)},
    "topk": {"axis": (1, -1), "is_ascend": (False,), "ret_type": ("both",)},
    "expand_dims": {"axis": (2,), "num_newaxis": (1,)},
    "transpose": {"axes": ((1, 0), None)},
    "nn.batch_matmul": {"transpose_a": (False,)},
}
"""What the operators of the form must be given."""


def _op(name: str, *args: Expr) -> Call:
    return Call(get(name), args)


def expert_patterns() -> Iterator[Pattern]:
    """Yield the forms of gated experts, with shares that are made to sum to one or not."""
    for normalized in (False, True):
        x, logits = Var("x"), Var("logits")
        parts = _op("split", _op("serde.matmul", x, Var("first")))
        gate = _op("serde.silu", TupleGetItem(parts, 0))
        hidden = _op("multiply", gate, TupleGetItem(parts, 1))
        found = _op("nn.batch_matmul", hidden, Var("second"))
        best = _op("topk", _op("nn.softmax", logits))
        shares: Expr = TupleGetItem(best, 0)
        total = _op("sum", shares)
        if normalized:
            shares = _op("divide", shares, total)
        chosen = _op("equal", _op("expand_dims", TupleGetItem(best, 1)), Var("numbers"))
        spread = _op("multiply", _op("cast", chosen), _op("expand_dims", shares))
        spread = _op("sum", spread)
        by_expert = _op("expand_dims", _op("transpose", spread))
        root = _op("sum", _op("multiply", found, by_expert))
        sums = {root: ((0,), False), spread: ((1,), False), total: ((1,), True)}
        yield Pattern("experts", root, lambda match, sums=sums: _experts(match, sums))


def _experts(match: Match, sums: Mapping[Expr, tuple[tuple[int, ...], bool]]) -> Expr | None:
    """Return the operator; rows of the first layer are those of a gate and its partner in turn."""
    turned = False
    for key, node in match.nodes.items():
        if not isinstance(key, Call) or not isinstance(node, Call):
            continue
        name = key.op.name if isinstance(key.op, OpDef) else ""
        wanted = _ATTRIBUTES.get(name, {})
        if any(node.attrs[each] not in values for each, values in wanted.items()):
            return None
        if key in sums and (node.attrs["axis"], node.attrs["keepdims"]) != sums[key]:
            return None
        if name == "topk":
            count = node.attrs["k"]
        if name == "nn.batch_matmul" and not node.attrs["transpose_b"]:
            turned = True
    x, first, second, logits, numbers = (
        match.bound[name] for name in ("x", "first", "second", "logits", "numbers")
    )
    if turned:
        second = call("transpose", second, axes=(0, 2, 1))
    types = [each.type for each in (x, first, second, logits)]
    if not all(isinstance(each, TensorType) for each in types):
        return None
    data, up, down, router = (each for each in types if isinstance(each, TensorType))
    if (data.rank, up.rank, down.rank, router.rank) != (2, 3, 3, 2) or data.dtype not in DTYPES:
        return None
    experts, width = down.shape[0], down.shape[2]
    if not isinstance(experts, int) or not isinstance(width, int):
        return None
    if up.shape[0] != experts or up.shape[2] != 2 * width or router.shape[1] != experts:
        return None
    if not isinstance(numbers, Constant) or not np.array_equal(
        numbers.data.reshape(-1), np.arange(experts)
    ):
        return None
    rows = call("reshape", call("transpose", first, axes=(0, 2, 1)), newshape=(0, 2, width, -1))
    rows = call("transpose", rows, axes=(0, 2, 1, 3))
    rows = call("reshape", rows, newshape=(experts, 2 * width, -1))
    normalized = any(isinstance(k, Call) and k.op is get("divide") for k in match.nodes)
    return foreign(
        "MoE", [x, logits, rows, None, second], [data], span=match.root.span, k=count,
        normalize_routing_weights=int(normalized), activation_type="swiglu", swiglu_fusion=1,
        activation_alpha=1.0, activation_beta=0.0,
    )  # fmt: skip
