"""What ONNX Runtime has whole beyond ONNX: attention with its cache, norms of sums, rotations.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from serde.core import Report
from serde.onnx.foreign import OUTPUTS
from serde.onnx.runtime_calls import DTYPES, foreign
from serde.onnx.runtime_experts import expert_patterns
from serde.relay import transform
from serde.relay.ir import Dim, RelayModel, TensorType, call
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, const
from serde.relay.ir.visit import post_order, rewrite_function, use_counts
from serde.relay.lowering.lengths import length_of, permuted, positions, reshaped
from serde.relay.transform.compose import replace_nodes
from serde.relay.transform.positions import MaskRule, read_mask

__all__ = ["WHOLE", "fuse"]

WHOLE: Final = ("serde.attention", "serde.rms_norm", "serde.rotary_embedding")
"""Layers that are made of what spells them out, so that more becomes of them here."""

_RMS_SINCE: Final = 23
"""First version of the operator set that has the norm itself."""


_HIDES: Final = {"float32": -np.inf, "float16": float(np.finfo(np.float16).min) / 2}
"""What is added to hide a key: of halves, a row of infinities gives no numbers.

Half of the least number leaves the sum with a product finite.
"""


def fuse(model: RelayModel, opset: int, report: Report) -> RelayModel:
    """Return the model with operators that ONNX Runtime adds where they mean the same.

    Args:
        model: A model whose layers are whole.
        opset: Version of the default operator set.
        report: Gets what was found, and what stays as it is.
    """
    attention = _CachedAttention()
    passes = transform.Sequential(
        [
            attention, _Rotations(), transform.Compose(tuple(expert_patterns())),
            transform.RemoveIdentities(), transform.MergeEqualNodes(),
            _Norms(opset), transform.RemoveDeadCode(),
        ]
    )  # fmt: skip
    model = model.evolve(mod=passes.run(model.mod)[0])
    found: Counter[str] = Counter()
    plain: Counter[str] = Counter(attention.refused.values())
    for node in post_order(*model.mod.functions.values()):
        name = _name(node)
        if isinstance(node, Call) and name == "serde.foreign":
            found[node.attrs["name"]] += 1
    texts = [f"{count} {name}" for name, count in sorted(found.items())]
    report.notes.append(f"for ONNX Runtime: {', '.join(texts) or 'nothing found'}")
    report.notes += [
        f"{count} serde.attention stay as they are: {why}" for why, count in sorted(plain.items())
    ]
    return model


def _name(node: Expr) -> str:
    return getattr(node.op, "name", "") if isinstance(node, Call) else ""


def _joined(x: Expr) -> Expr:
    """Return (batch, heads, length, width) as (batch, length, heads times width)."""
    return call("reshape", permuted(x, (0, 2, 1, 3)), newshape=(0, 0, -3))


def _by_heads(x: Expr, heads: Dim) -> Expr:
    return permuted(call("reshape", x, newshape=(0, 0, heads, -1)), (0, 2, 1, 3))


def _type(x: Expr) -> TensorType:
    assert isinstance(x.type, TensorType)
    return x.type


class _CachedAttention(transform.FunctionPass):
    """Attention to what a cache holds and what is new, behind which the cache is returned."""

    name: ClassVar[str] = "CachedAttention"
    changes: ClassVar[Sequence[str | type]] = ("serde.attention",)

    def __init__(self) -> None:
        self.refused: dict[Expr, str] = {}

    def transform(self, function: Function) -> Function:
        """Replace attention and the longer caches at once."""
        uses = use_counts(function)
        kept = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
        replacements: dict[Expr, Expr] = {}
        for node in post_order(function):
            if not isinstance(node, Call) or _name(node) != "serde.attention":
                continue
            found = _read_attention(node)
            caches = node.args[1:3]
            if isinstance(found, MaskRule) and any(
                uses[each] != 1 + kept.count(each) for each in caches
            ):
                found = "its keys or values have another use"
            if isinstance(found, str):
                self.refused[node] = found
                continue
            whole = _grouped_query_attention(node, found)
            result: Expr = TupleGetItem(whole, 0)
            if found.rest and found.upper is not None and np.isfinite(_HIDES[_type(node).dtype]):
                result = call("where", _sees(node.args[3]), result, const(0.0, _type(node).dtype))
            replacements[node] = _by_heads(result, _type(node).shape[1])
            replacements |= {
                each: TupleGetItem(whole, index) for index, each in enumerate(caches, 1)
            }
        return replace_nodes(function, replacements) if replacements else function


def _read_attention(node: Call) -> MaskRule | str:
    """Return the rule of the mask, or why attention is not that of a cache."""
    query, key, value, mask = node.args
    for each in (key, value):
        fields = each.args[0] if isinstance(each, Call) and _name(each) == "concatenate" else None
        if not isinstance(fields, Tuple) or len(fields.fields) != 2:
            return "its keys are not those of a cache and new ones behind them"
        if not isinstance(each, Call) or each.attrs["axis"] not in (2, -2):
            return "its keys are not those of a cache and new ones behind them"
        new = fields.fields[1].type
        if not isinstance(new, TensorType) or new.shape[2] != _type(query).shape[2]:
            return "there are not as many new keys as queries"
    width = _type(query).shape[3]
    fixed = [_type(query).shape[1], width, *_type(key).shape[1::2], *_type(value).shape[1::2]]
    if not all(isinstance(each, int) for each in fixed) or _type(value).shape[3] != width:
        return "its values have another width than its keys, or heads without a number"
    if _type(query).dtype not in DTYPES or node.attrs["is_causal"]:
        return f"it is of {_type(query).dtype}, or causal without a past"
    if not isinstance(mask.type, TensorType):
        return "it has no mask"
    if mask.type.dtype != "bool":
        return MaskRule(None, None, (mask,))
    if mask.type.rank == 4 and mask.type.shape[1] != 1:
        return "its heads have masks of their own"
    rule = read_mask(mask)
    past = _type(key).shape[2] - _type(query).shape[2]
    if rule.upper != past or _window(rule, past) is None:
        return "its mask does not say that a query sees what is before it"
    return rule


def _sees(mask: Expr) -> Expr:
    """Return which queries see anything, as (batch, length, 1)."""
    shown = call("any", mask, axis=(-1,), keepdims=True)
    return call("squeeze", shown, axis=(1,)) if _type(shown).rank == 4 else shown


def _window(rule: MaskRule, past: Dim) -> int | None:
    """Return how many keys a query sees with its own, -1 for all; None if that has no number."""
    if rule.lower is None:
        return -1
    size = past - rule.lower + 1
    return size if isinstance(size, int) and size > 0 else None


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
    type_, dtype = _type(query), _type(query).dtype
    batch, heads, rows, width = type_.shape
    bias, total = None, None
    if rule.rest:
        bias = rule.rest[0]
        for each in rule.rest[1:]:
            bias = call("logical_and", bias, each)
        if _type(bias).shape[-1] == _type(key).shape[2]:
            total = length_of(bias, -1, "int32")
        blank = call("zeros", shape=(rows, 1), dtype=dtype)
        if rule.upper is not None:
            bias = call("where", bias, blank, const(_HIDES[dtype], dtype))
        elif _type(bias).shape[-2] != rows:
            bias = call("add", bias, blank)
        bias = reshaped(bias, bias, lambda own: [*[1] * (4 - len(own)), *own])
    if total is None:
        total = call("add", length_of(past_key, 2, "int32"), length_of(new_key, 2, "int32"))
    last = call("subtract", total, const(1, "int32"))
    counts = call("broadcast_to", call("reshape", last, newshape=(1,)), shape=(batch,))
    attributes = {"num_heads": heads, "kv_num_heads": _type(key).shape[1]}
    window = _window(rule, _type(key).shape[2] - rows)
    extra = {
        "scale": node.attrs["scale"], "softcap": node.attrs["softcap"],
        "local_window_size": None if window == -1 else window,
        "causal": 0 if rule.upper is None else None,
    }  # fmt: skip
    attributes |= {name: each for name, each in extra.items() if each is not None}
    assert isinstance(heads, int) and isinstance(width, int)
    out = TensorType((batch, rows, heads * width), dtype)
    return foreign(
        "GroupQueryAttention",
        [_joined(query), _joined(new_key), _joined(new_value), past_key, past_value,
         counts, total, None, None, None, bias],
        [out, _type(key), _type(value)], node.span,
        **attributes,
    )  # fmt: skip


class _Rotations(transform.FunctionPass):
    """Rotary embeddings over heads that stand side by side; tables are those of the call."""

    name: ClassVar[str] = "Rotations"
    changes: ClassVar[Sequence[str | type]] = ("serde.rotary_embedding",)

    def transform(self, function: Function) -> Function:
        """Replace what has angles for each place."""
        return rewrite_function(function, lambda _old, node: _rotation(node))


def _rotation(node: Expr) -> Expr:
    if not isinstance(node, Call) or _name(node) != "serde.rotary_embedding":
        return node
    data, cos, sin, ids = node.args
    if _type(data).rank != 4 or _type(data).dtype not in DTYPES or isinstance(ids.type, TensorType):
        return node
    batch, heads, rows, _ = _type(data).shape
    if _type(cos).shape[:2] != (batch, rows) or not isinstance(heads, int):
        return node
    half = _type(cos).shape[2]
    tables = [call("reshape", each, newshape=(-1, half)) for each in (cos, sin)]
    places = call("reshape", positions(tables[0], 0), newshape=(batch, rows))
    flat = _joined(data)
    found = foreign(
        "RotaryEmbedding", [flat, places, *tables], [_type(flat)], node.span, num_heads=heads,
        rotary_embedding_dim=node.attrs["rotary_dim"],
        interleaved=int(node.attrs["interleaved"]),
    )  # fmt: skip
    return _by_heads(found, heads)


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
            if not isinstance(node, Call) or _name(node) != "serde.rms_norm":
                continue
            data, gamma = node.args
            if _type(data).dtype not in DTYPES or _type(gamma).rank != 1:
                continue
            fields = data.args if isinstance(data, Call) and _name(data) == "add" else ()
            if (
                _type(data).rank == 3
                and data not in replacements
                and [each.type for each in fields] == [data.type] * 2
            ):
                found = foreign(
                    "SkipSimplifiedLayerNormalization", [*fields, gamma], [_type(data)] * 2,
                    node.span, epsilon=node.attrs["epsilon"], **{OUTPUTS: (0, 3)},
                )  # fmt: skip
                replacements[node] = TupleGetItem(found, 0)
                replacements[data] = TupleGetItem(found, 1)
            elif self._opset < _RMS_SINCE:
                replacements[node] = foreign(
                    "SimplifiedLayerNormalization", [data, gamma], [_type(data)], node.span,
                    axis=-1, epsilon=node.attrs["epsilon"],
                )  # fmt: skip
        return replace_nodes(function, replacements) if replacements else function
