"""Compressed weights that become plain ones, where a target has no form for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.core import Array, Report, Weight, dataclass, numpy_dtype
from serde.coreml.mlprogram.ops.qnn.linear import stays_quantized
from serde.coreml.mlprogram.ops.table import constants_of
from serde.io.packed import PackedWeight
from serde.relay.ir import IRModule, OpDef, RelayModel, TensorType, called_name, infer_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, Var
from serde.relay.ir.visit import free_vars, post_order, rebuild, rewrite
from serde.relay.transform.decompose import decompose
from serde.relay.transform.purity import compressed, unpacks
from serde.relay.transform.weight_folding import fold_weights

__all__ = ["CompressionSupport", "decompress_unsupported", "describe_lost_compression"]

_NEWEST = 18
"""Version of iOS that has all forms of compressed weights."""

_STEP = 1 / 254
"""Half a step of 8 bits, as a part of the largest value: how far off a scale may be."""

_SCALES = {"serde.dequantize_blocks": 1, "serde.dequantize_linear": 1, "serde.dequantize_sparse": 2}
"""Which operand of what unpacks a weight is its scales."""


@dataclass(frozen=True)
class CompressionSupport:
    """What forms of compressed weights are written.

    Attributes:
        supported: Whether a call is written as it is.
        version: Version of iOS whose operators are written.
        half: Whether floats are written in float16.
        half_scales: Whether scales are, too.
    """

    supported: Callable[[Call], bool]
    version: int
    half: bool
    half_scales: bool

    def covers(self, node: Expr) -> bool:
        """Whether a step that unpacks a weight is written as it is; other nodes are."""
        if not unpacks(node) or not isinstance(node, Call):
            return True
        if isinstance(node.op, OpDef) and node.op.name == "serde.dequantize_linear":
            return stays_quantized(node, self.version)
        return self.supported(node)


def describe_lost_compression(model: RelayModel, support: CompressionSupport) -> list[str]:
    """Return what is to be said of weights that are written larger than they are in the model."""
    plain = _find_reordered(model)
    notes = []
    for node in compressed(model.main.body, _weights(model)):
        weights = {v.name_hint for v in free_vars(node)}
        held = all(map(support.covers, post_order(node)))
        faint = held and _scales_exceed_float16(node, model, support)
        if not weights or (held and not faint and node not in plain):
            continue
        name = node.span.source_name if node.span is not None else min(weights)
        before = sum(_count_bytes(model.params[each]) for each in sorted(weights))
        hint = ""
        if node not in plain and faint:
            hint = "; float16 does not hold its scales, compute_precision=float32 does"
        elif node not in plain and support.version < _NEWEST:
            hint = f"; minimum_deployment_target=iOS{_NEWEST} has more forms"
        after = _describe_decompressed(node, support.half)
        notes.append(f"{name}: {called_name(node)} of {before} bytes becomes {after}{hint}")
    return notes


def decompress_unsupported(
    model: RelayModel, support: CompressionSupport, report: Report
) -> RelayModel:
    """Return the model with plain weights where their compressed form cannot stay.

    MIL's recurrent layers want constants, and what is unpacked can only be ordered when it runs.
    Others are unpacked in the precision that they have, before that is narrowed.
    """
    plain, lost = _find_reordered(model), _find_unsupported(model, support)
    if not plain and not lost:
        return model
    memo: dict[Expr, Expr] = {}

    def decompose_plain(old: Expr, new: Expr) -> Expr:
        return decompose(new) if old in plain and isinstance(new, Call) else new

    def replace(old: Expr, new: Expr) -> Expr:
        if old in lost and isinstance(new, Call):
            return decompose(new)
        kept = constants_of(old) if isinstance(old, Call) else []
        if not kept or not isinstance(old, Call) or not isinstance(new, Call):
            return new
        pairs = zip(old.args, new.args, strict=True)
        return rebuild(
            new, [rewrite(a, decompose_plain, memo) if a in kept else b for a, b in pairs]
        )

    main = model.main
    body = rewrite(main.body, replace)
    mod = IRModule({"main": infer_function(Function(main.params, body))})
    return fold_weights(model.evolve(mod=mod), report=report, share=False)


def _find_reordered(model: RelayModel) -> set[Expr]:
    """Return what unpacks weights that MIL wants in another order of their entries."""
    calls = [node for node in post_order(model.main.body) if isinstance(node, Call)]
    wanted = [each for node in calls for each in constants_of(node)]
    return {node for root in wanted for node in post_order(root) if unpacks(node)}


def _find_unsupported(model: RelayModel, support: CompressionSupport) -> set[Expr]:
    """Return the steps that unpack weights of which one cannot be written."""
    found: set[Expr] = set()
    for node in compressed(model.main.body, _weights(model)):
        steps = post_order(node)
        if not all(map(support.covers, steps)) or _scales_exceed_float16(node, model, support):
            found.update(filter(unpacks, steps))
    return found


def _scales_exceed_float16(root: Expr, model: RelayModel, support: CompressionSupport) -> bool:
    """Whether a weight has scales so small or large that float16 does not hold them."""
    if not support.half_scales:
        return False
    for node in filter(unpacks, post_order(root)):
        place = _SCALES.get(called_name(node))
        scale = node.args[place] if place is not None and isinstance(node, Call) else None
        if isinstance(scale, Constant) and _loses_precision(scale.data):
            return True
        weight = model.params.get(scale.name_hint) if isinstance(scale, Var) else None
        if weight is not None and any(
            _loses_precision(weight.rows(start, stop)) for start, stop in weight.row_ranges()
        ):
            return True
    return False


def _loses_precision(scales: Array) -> bool:
    if scales.dtype != np.float32:
        return False
    with np.errstate(over="ignore"):
        held = scales.astype(np.float16).astype(np.float32)
    return bool((np.abs(held - scales) > np.abs(scales) * _STEP).any())


def _weights(model: RelayModel) -> Callable[[Var], bool]:
    return lambda variable: variable.name_hint in model.params


def _count_bytes(weight: Weight) -> int:
    return weight.packed.nbytes if isinstance(weight, PackedWeight) else weight.nbytes


def _describe_decompressed(node: Expr, half: bool) -> str:
    """Return the dtype and the bytes of the plain values."""
    if not isinstance(node.type, TensorType):
        return "plain values"
    dtype = "float16" if half and node.type.dtype == "float32" else node.type.dtype
    size = node.type.size
    total = "" if not isinstance(size, int) else f" of {size * numpy_dtype(dtype).itemsize} bytes"
    return f"plain {dtype}{total}"
