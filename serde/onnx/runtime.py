"""What ONNX Runtime has whole beyond ONNX, found in models that spell it out.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, ClassVar, Final

import numpy as np

from serde.core import Report
from serde.onnx.block_products import fuse_block_products
from serde.onnx.custom_operators import PLAIN
from serde.onnx.foreign import OUTPUTS
from serde.onnx.versions import RUNTIME_OPERATORS
from serde.relay import transform
from serde.relay.ir import Dim, Foreign, RelayModel, TensorType, call, called_name, get, tensor_type
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var, const
from serde.relay.ir.visit import post_order, use_counts
from serde.relay.lowering.lengths import length_of, permuted, positions, reshaped
from serde.relay.transform.compose import Match, Pattern, replace_nodes
from serde.relay.transform.positions import MaskRule, read_mask

__all__ = ["WHOLE", "fuse"]

WHOLE: Final = ("serde.attention", "serde.rms_norm", "serde.rotary_embedding")
"""Layers that are made of what spells them out, so that more becomes of them here."""

_DTYPES: Final = ("float32", "float16")
"""What its kernels for processors take."""
_HIDES: Final = {"float32": -np.inf, "float16": float(np.finfo(np.float16).min) / 2}
"""What is added to hide a key: of halves, a row of infinities gives no numbers.

Half of the least number leaves the sum with a product finite.
"""
_RMS_SINCE: Final = 23
"""First version of the operator set that has the norm itself."""


def fuse(model: RelayModel, opset: int, report: Report) -> RelayModel:
    """Return the model with operators that ONNX Runtime adds where they mean the same.

    Args:
        model: A model whose layers are whole.
        opset: Version of the default operator set.
        report: Gets which attention stays as it is.
    """
    attention = _CachedAttention()
    rotary = Call(get("serde.rotary_embedding"), [Var(name) for name in ("x", "cos", "sin", "ids")])
    passes = transform.Sequential(
        [
            attention,
            transform.Compose((Pattern("rotation", rotary, _rotation), *_expert_patterns())),
            transform.RemoveIdentities(), transform.MergeEqualNodes(),
            _Norms(opset), transform.RemoveDeadCode(),
        ]
    )  # fmt: skip
    mod = passes.run(model.mod)[0]
    for why, count in sorted(Counter(attention.refused.values()).items()):
        report.notes.append(f"{count} serde.attention stay as they are: {why}")
    if attention.takes_batches:
        report.notes.append(
            "GroupQueryAttention takes several tokens behind a cache for one text, not for a batch"
        )
    return fuse_block_products(model.evolve(mod=mod))


def _foreign(
    name: str,
    inputs: Sequence[Expr | None],
    results: Sequence[Expr],
    node: Call,
    **attributes: AnyValue,
) -> Call:
    """Return an operator of ONNX Runtime's for a node, whose results have the types of others."""
    found = Foreign(
        framework="onnx", name=name, version=1, results=tuple(map(tensor_type, results)),
        domain=PLAIN if name in RUNTIME_OPERATORS else "com.microsoft",
        attributes={name: each for name, each in attributes.items() if each is not None},
        absent=tuple(index for index, each in enumerate(inputs) if each is None),
    )  # fmt: skip
    return found.build([each for each in inputs if each is not None], node.span)


def _join_heads(x: Expr) -> Expr:
    return call("reshape", permuted(x, (0, 2, 1, 3)), newshape=(0, 0, -3))


def _split_heads(x: Expr, heads: Dim) -> Expr:
    return permuted(call("reshape", x, newshape=(0, 0, heads, -1)), (0, 2, 1, 3))


class _CachedAttention(transform.FunctionPass):
    """Attention to what a cache holds and what is new, behind which the cache is returned.

    Attributes:
        refused: Why attention stays as it is.
        takes_batches: Whether what was replaced took several tokens of several texts.
    """

    name: ClassVar[str] = "CachedAttention"
    changes: ClassVar[Sequence[str | type]] = ("serde.attention",)

    def __init__(self) -> None:
        self.refused: dict[Expr, str] = {}
        self.takes_batches = False

    def transform(self, function: Function) -> Function:
        """Replace attention and the longer caches at once."""
        uses = use_counts(function)
        kept = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
        replacements: dict[Expr, Expr] = {}
        for node in post_order(function):
            if not isinstance(node, Call) or called_name(node) != "serde.attention":
                continue
            caches, rule = node.args[1:3], _read_attention(node)
            if any(uses[each] != 1 + kept.count(each) for each in caches):
                rule = "its keys or values have another use"
            if isinstance(rule, str):
                self.refused[node] = rule
                continue
            whole = _grouped_query_attention(node, rule)
            batch, _, rows, _ = tensor_type(node).shape
            self.takes_batches |= 1 not in (batch, rows)
            result: Expr = TupleGetItem(whole, 0)
            type_ = tensor_type(node)
            if rule.rest and rule.upper is not None and np.isfinite(_HIDES[type_.dtype]):
                seen = call("any", node.args[3], axis=(-1,), keepdims=True)
                seen = call("squeeze", seen, axis=(1,)) if tensor_type(seen).rank == 4 else seen
                result = call("where", seen, result, const(0.0, type_.dtype))
            replacements[node] = _split_heads(result, type_.shape[1])
            replacements |= {x: TupleGetItem(whole, i) for i, x in enumerate(caches, 1)}
        return replace_nodes(function, replacements) if replacements else function


def _read_attention(node: Call) -> MaskRule | str:
    """Return the rule of the mask, or why attention is not that of a cache."""
    query, key, value, mask = node.args
    _, heads, rows, width = tensor_type(query).shape
    for each in (key, value):
        fields = each.args[0] if isinstance(each, Call) and each.args else each
        if called_name(each) != "concatenate" or not isinstance(fields, Tuple):
            return "its keys are not those of a cache and new ones behind them"
        axis = each.attrs["axis"] if isinstance(each, Call) else None
        new = tensor_type(fields.fields[-1]).shape
        if axis not in (2, -2) or len(fields.fields) != 2 or new[2:] != (rows, width):
            return "its keys are not those of a cache and as many new ones as queries"
        if not isinstance(new[1], int) or not isinstance(heads, int) or not isinstance(width, int):
            return "its heads have no number or width"
    type_, total = mask.type, tensor_type(key).shape[2]
    if tensor_type(query).dtype not in _DTYPES:
        return f"it is of {tensor_type(query).dtype}"
    if not isinstance(type_, TensorType):
        return "it has no mask"
    if type_.shape[-1:] != (total,) or node.attrs["is_causal"]:
        return "its mask has no number for each key"
    if type_.dtype != "bool":
        return MaskRule(None, None, (mask,))
    rule, past = read_mask(mask), total - rows
    if rule.rest and all(tensor_type(each).shape[-1:] != (total,) for each in rule.rest):
        return "its mask has no number for each key"
    if rule.upper != past or _window(rule, past) is None or type_.shape[-3:-2] not in ((), (1,)):
        return "its mask does not say that a query sees what is before it, the same for all heads"
    return rule


def _window(rule: MaskRule, past: Dim) -> int | None:
    """Return how many keys a query sees with its own, -1 for all; None if that has no number."""
    size = -1 if rule.lower is None else past - rule.lower + 1
    return size if isinstance(size, int) and (size > 0 or rule.lower is None) else None


def _grouped_query_attention(node: Call, rule: MaskRule) -> Call:
    """Return attention and the caches; all keys of a sample count, and a bias hides some.

    A query that sees nothing gives zeros where the bias is minus infinity. What adds other
    numbers to the products says itself what is behind a query.
    """
    query, key, value, _ = node.args
    (past_key, new_key), (past_value, new_value) = (
        each.args[0].fields for each in (key, value)
        if isinstance(each, Call) and isinstance(each.args[0], Tuple)
    )  # fmt: skip
    dtype, (batch, heads, rows, _) = tensor_type(query).dtype, tensor_type(query).shape
    bias: Expr | None = None
    total: Expr = call("add", length_of(past_key, 2, "int32"), length_of(new_key, 2, "int32"))
    if rule.rest:
        bias = rule.rest[0]
        for each in rule.rest[1:]:
            bias = call("logical_and", bias, each)
        total = length_of(bias, -1, "int32")
        blank = call("zeros", shape=(rows, 1), dtype=dtype)
        if rule.upper is not None:
            bias = call("where", bias, blank, const(_HIDES[dtype], dtype))
        elif tensor_type(bias).shape[-2] != rows:
            bias = call("add", bias, blank)
        bias = reshaped(bias, bias, lambda own: [*[1] * (4 - len(own)), *own])
    last = call("subtract", total, const(1, "int32"))
    counts = call("broadcast_to", call("reshape", last, newshape=(1,)), shape=(batch,))
    flat = _join_heads(query)
    return _foreign(
        "GroupQueryAttention",
        [flat, _join_heads(new_key), _join_heads(new_value), past_key, past_value,
         counts, total, None, None, None, bias],
        [flat, key, value], node, num_heads=heads, kv_num_heads=tensor_type(key).shape[1],
        scale=node.attrs["scale"], softcap=node.attrs["softcap"],
        local_window_size=None if rule.lower is None else _window(rule, rule.upper or 0),
        causal=0 if rule.upper is None else None,
    )  # fmt: skip


def _rotation(match: Match) -> Expr | None:
    """Return heads side by side, rotated; the tables are those of the call, row by row."""
    data, cos, sin, ids = (match.bound[name] for name in ("x", "cos", "sin", "ids"))
    type_, attrs = tensor_type(data), match.root.attrs
    batch, heads, rows = type_.shape[0], type_.shape[1], type_.shape[-2]
    own_tables = not isinstance(ids.type, TensorType) and isinstance(heads, int)
    if type_.rank != 4 or type_.dtype not in _DTYPES or not own_tables:
        return None
    if tensor_type(cos).shape[:2] != (batch, rows):
        return None
    half = tensor_type(cos).shape[2]
    tables = [call("reshape", each, newshape=(-1, half)) for each in (cos, sin)]
    order = call("reshape", positions(tables[0], 0), newshape=(batch, rows))
    flat = _join_heads(data)
    found = _foreign(
        "RotaryEmbedding", [flat, order, *tables], [flat], match.root, num_heads=heads,
        rotary_embedding_dim=attrs["rotary_dim"], interleaved=int(attrs["interleaved"]),
    )  # fmt: skip
    return _split_heads(found, heads)


class _Norms(transform.FunctionPass):
    """Norms by the root of the mean square, with the sum before them where there is one."""

    name: ClassVar[str] = "Norms"
    changes: ClassVar[Sequence[str | type]] = ("serde.rms_norm",)

    def __init__(self, opset: int) -> None:
        self._opset = opset

    def transform(self, function: Function) -> Function:
        """Replace norms over the last axis, and sums that others use too."""
        replacements: dict[Expr, Expr] = {}
        for node in post_order(function):
            if not isinstance(node, Call) or called_name(node) != "serde.rms_norm":
                continue
            (data, gamma), epsilon = node.args, node.attrs["epsilon"]
            if tensor_type(data).dtype not in _DTYPES or tensor_type(gamma).rank != 1:
                continue
            terms = data.args if isinstance(data, Call) and called_name(data) == "add" else ()
            same = [each.type for each in terms] == [data.type] * 2
            if same and tensor_type(data).rank == 3 and data not in replacements:
                found = _foreign(
                    "SkipSimplifiedLayerNormalization", [*terms, gamma], [data, data], node,
                    epsilon=epsilon, **{OUTPUTS: (0, 3)},
                )  # fmt: skip
                replacements |= {node: TupleGetItem(found, 0), data: TupleGetItem(found, 1)}
            elif self._opset < _RMS_SINCE:
                replacements[node] = _foreign(
                    "SimplifiedLayerNormalization", [data, gamma], [data], node,
                    axis=-1, epsilon=epsilon,
                )  # fmt: skip
        return replace_nodes(function, replacements) if replacements else function


_ATTRIBUTES: Final[Mapping[str, Mapping[str, tuple[AnyValue, ...]]]] = {
    "split": {"axis": (2, -1), "indices_or_sections": (2,)},
    "nn.softmax": {"axis": (1, -1)},
    "topk": {"axis": (1, -1), "is_ascend": (False,), "ret_type": ("both",)},
    "expand_dims": {"axis": (2,), "num_newaxis": (1,)},
    "transpose": {"axes": ((1, 0), None)},
    "nn.batch_matmul": {"transpose_a": (False,)},
}
"""What the operators that experts are spelled out in must be given."""


def _op(name: str, *args: Expr) -> Call:
    return Call(get(name), args)


def _expert_patterns() -> Iterator[Pattern]:
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
        spread = _op("sum", _op("multiply", _op("cast", chosen), _op("expand_dims", shares)))
        by_expert = _op("expand_dims", _op("transpose", spread))
        root = _op("sum", _op("multiply", found, by_expert))
        sums: dict[Expr, AnyValue] = {root: (0, False), spread: (1, False), total: (1, True)}
        yield Pattern("experts", root, partial(_experts, sums=sums))


def _experts(match: Match, sums: Mapping[Expr, tuple[int, bool]]) -> Expr | None:
    """Return the operator; rows of the first layer are those of a gate and its partner in turn."""
    calls = [
        (key, called_name(key), node.attrs)
        for key, node in match.nodes.items()
        if isinstance(key, Call) and isinstance(node, Call)
    ]
    attributes = {name: attrs for _, name, attrs in calls}
    for key, name, attrs in calls:
        wanted = _ATTRIBUTES.get(name, {})
        if any(attrs[each] not in values for each, values in wanted.items()):
            return None
        if key in sums and (attrs["axis"], attrs["keepdims"]) != ((sums[key][0],), sums[key][1]):
            return None
    x, first, second, logits, numbers = (
        match.bound[name] for name in ("x", "first", "second", "logits", "numbers")
    )
    if not attributes["nn.batch_matmul"]["transpose_b"]:
        second = call("transpose", second, axes=(0, 2, 1))
    data, up, down = map(tensor_type, (x, first, second))
    if (data.rank, up.rank, down.rank) != (2, 3, 3) or data.dtype not in _DTYPES:
        return None
    experts, width = down.shape[0], down.shape[2]
    if not isinstance(experts, int) or not isinstance(width, int):
        return None
    if up.shape[::2] != (experts, 2 * width) or tensor_type(logits).shape[1:] != (experts,):
        return None
    counted = isinstance(numbers, Constant) and numbers.data.reshape(-1).tolist()
    if counted != [*range(experts)]:
        return None
    rows = call("reshape", call("transpose", first, axes=(0, 2, 1)), newshape=(0, 2, width, -1))
    rows = call("transpose", rows, axes=(0, 2, 1, 3))
    rows = call("reshape", rows, newshape=(experts, 2 * width, -1))
    return _foreign(
        "MoE", [x, logits, rows, None, second], [x], match.root,
        k=attributes["topk"]["k"], normalize_routing_weights=int("divide" in attributes),
        activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.0, activation_beta=0.0,
    )  # fmt: skip
