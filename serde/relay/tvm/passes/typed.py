"""What the passes of TVM's library have in common: types come first, and scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, Constant, Expr, IRModule, Op, OpDef, all_nodes, infer_module
from serde.relay.transform.base import TvmFunctionPass

__all__ = ["TypedPass", "is_call", "is_scalar", "operator_of", "same_scalar", "scalar"]


class TypedPass(TvmFunctionPass):
    """A pass that asks for types; they are inferred before it, and of what it makes after it."""

    required: ClassVar[Sequence[str]] = ("InferType",)

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Infer, transform every function, and infer again, where types are missing."""
        typed, inferred = (mod, False) if mod.checked else infer_module(mod)
        after, changed = super().run(typed)
        if not changed:
            return typed, inferred
        nodes = all_nodes(*after.functions.values())
        if all(node.type is not None or isinstance(node, Op) for node in nodes):
            return after, True
        return infer_module(after.with_functions(after.functions, checked=False))[0], True


def operator_of(node: Expr) -> str:
    """Return the name of the operator that a node calls, or nothing."""
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""


def is_call(node: Expr, *names: str) -> bool:
    """Whether a node calls one of these operators."""
    return operator_of(node) in names


def scalar(value: float, dtype: str) -> Constant:
    """Return a constant of rank 0."""
    return Constant(np.array(value).astype(numpy_dtype(dtype)))


def is_scalar(node: Expr) -> bool:
    """Whether a node is a constant of rank 0."""
    return isinstance(node, Constant) and node.data.ndim == 0


def same_scalar(one: Expr, other: Expr) -> bool:
    """Whether both are constants of rank 0, with one dtype and one value to the bit."""
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return False
    if one.data.ndim or other.data.ndim or one.data.dtype != other.data.dtype:
        return False
    return one.data.tobytes() == other.data.tobytes()
