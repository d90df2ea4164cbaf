"""Equal calls become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, Function, OpDef, Tuple, TupleGetItem
from serde.relay.ir.visit import rewrite_function
from serde.relay.transform.merge_equal_nodes import value_key
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["EliminateCommonSubexpr"]


@dataclass(frozen=True)
class EliminateCommonSubexpr(TypedPass):
    """Let calls of one operator with the same operands and attributes be one call.

    Operands are the same if they are one node, equal scalar constants, or tuples of such. Fields
    of one tuple are merged too; constants themselves, tuples, functions and their calls are not,
    nor what has no operands, and neither ``nn.dropout`` and what draws random numbers.

    Args:
        fskip: Gets a call or a field of a tuple, and says whether it is left alone.
    """

    name: ClassVar[str] = "EliminateCommonSubexpr"
    opt_level: ClassVar[int] = 3

    fskip: Callable[[Expr], bool] | None = None

    def transform(self, function: Function) -> Function:
        """Merge children first."""
        known: dict[Hashable, Expr] = {}

        def replace(_node: Expr, new: Expr) -> Expr:
            key = _key(new)
            if key is None or (self.fskip is not None and self.fskip(new)):
                return new
            return known.setdefault(key, new)

        return rewrite_function(function, replace)


def _key(node: Expr) -> Hashable | None:
    """Return what equal nodes share; None where a node is never merged."""
    if isinstance(node, TupleGetItem):
        return value_key(node)
    called = isinstance(node, Call) and isinstance(node.op, OpDef) and node.args
    return value_key(node, _operand_key) if called else None


def _operand_key(node: Expr) -> Hashable:
    if isinstance(node, Tuple):
        return ("tuple", tuple(_scalar_key(each) for each in node.fields))
    return _scalar_key(node)


def _scalar_key(node: Expr) -> Hashable:
    if isinstance(node, Constant) and node.data.ndim == 0:
        return ("scalar", str(node.data.dtype), node.data.tobytes())
    return node
