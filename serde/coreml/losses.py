"""Compressed weights that become plain ones, where a target has no form for them."""

from __future__ import annotations

from collections.abc import Callable

from serde.coreml.ops.qnn.linear import stays_quantized
from serde.coreml.ops.table import constants_of
from serde.io.packed import PackedWeight
from serde.relay.expr import Call, Expr, Function, Var
from serde.relay.model import RelayModel
from serde.relay.module import IRModule
from serde.relay.registry import OpDef
from serde.relay.transform.infer_type import infer_function
from serde.relay.transform.legalize import decompose
from serde.relay.transform.purity import compressed, unpacks
from serde.relay.types import TensorType
from serde.relay.visit import free_vars, post_order, rebuild, rewrite
from serde.weights import Weight, numpy_dtype

__all__ = ["lost_compression", "with_plain_constants"]


def lost_compression(
    model: RelayModel, supported: Callable[[Call], bool], version: int, half: bool
) -> list[str]:
    """Return what is to be said of weights that are written larger than they are in the model.

    Args:
        model: The model.
        supported: Whether a call is written as it is.
        version: Version of iOS whose operators are written.
        half: Whether floats are written in float16.
    """
    plain = _ordered_anew(model)
    notes = []
    for node in compressed(model.main.body, _weights(model)):
        weights = {v.name_hint for v in free_vars(node)}
        if not weights or (_all_stay(node, supported, version) and node not in plain):
            continue
        name = node.span.source_name if node.span is not None else min(weights)
        before = sum(_stored(model.params[each]) for each in sorted(weights))
        hint = (
            ""
            if version >= 18 or node in plain
            else "; minimum_deployment_target=iOS18 has more forms"
        )
        text = f"{name}: {_kind(node)} of {before} bytes becomes {_plain(node, half)}"
        notes.append(text + hint)
    return notes


def with_plain_constants(
    model: RelayModel, supported: Callable[[Call], bool], version: int
) -> RelayModel:
    """Return the model with plain weights where their compressed form cannot stay.

    MIL's recurrent layers want constants, and what is unpacked can only be ordered when it runs.
    Of what is compressed twice, what one step gives would be unpacked further when it runs.

    Args:
        model: The model.
        supported: Whether a call is written as it is.
        version: Version of iOS whose operators are written.
    """
    plain = _ordered_anew(model)
    twice = _unpacked_further(model, supported, version)
    if not plain and not twice:
        return model
    memo: dict[Expr, Expr] = {}

    def spelled(old: Expr, new: Expr) -> Expr:
        return decompose(new) if old in plain and isinstance(new, Call) else new

    def replaced(old: Expr, new: Expr) -> Expr:
        kept = constants_of(old) if isinstance(old, Call) else []
        if not kept or not isinstance(old, Call) or not isinstance(new, Call):
            return new
        pairs = zip(old.args, new.args, strict=True)
        return rebuild(new, [rewrite(a, spelled, memo) if a in kept else b for a, b in pairs])

    def unpacked(old: Expr, new: Expr) -> Expr:
        return decompose(new) if old in twice and isinstance(new, Call) else replaced(old, new)

    main = model.main
    body = rewrite(main.body, unpacked)
    return model.evolve(mod=IRModule({"main": infer_function(Function(main.params, body))}))


def _ordered_anew(model: RelayModel) -> set[Expr]:
    """Return what unpacks weights that MIL wants in another order of their entries."""
    calls = [node for node in post_order(model.main.body) if isinstance(node, Call)]
    wanted = [each for node in calls for each in constants_of(node)]
    return {node for root in wanted for node in post_order(root) if unpacks(node)}


def _all_stay(node: Expr, supported: Callable[[Call], bool], version: int) -> bool:
    return all(_stays(each, supported, version) for each in post_order(node))


def _unpacked_further(
    model: RelayModel, supported: Callable[[Call], bool], version: int
) -> set[Expr]:
    """Return the steps that unpack what is compressed twice, where one cannot be written."""
    found: set[Expr] = set()
    for node in compressed(model.main.body, _weights(model)):
        steps = [each for each in post_order(node) if unpacks(each)]
        if len(steps) > 1 and not _all_stay(node, supported, version):
            found.update(steps)
    return found


def _weights(model: RelayModel) -> Callable[[Var], bool]:
    return lambda variable: variable.name_hint in model.params


def _stays(node: Expr, supported: Callable[[Call], bool], version: int) -> bool:
    if not unpacks(node) or not isinstance(node, Call):
        return True
    if isinstance(node.op, OpDef) and node.op.name == "serde.dequantize_linear":
        return stays_quantized(node, version)
    return supported(node)


def _stored(weight: Weight) -> int:
    return weight.packed.nbytes if isinstance(weight, PackedWeight) else weight.nbytes


def _kind(node: Expr) -> str:
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""


def _plain(node: Expr, half: bool) -> str:
    """Return the dtype and the bytes of the plain values."""
    if not isinstance(node.type, TensorType):
        return "plain values"
    dtype = "float16" if half and node.type.dtype == "float32" else node.type.dtype
    size = node.type.size
    total = "" if not isinstance(size, int) else f" of {size * numpy_dtype(dtype).itemsize} bytes"
    return f"plain {dtype}{total}"
