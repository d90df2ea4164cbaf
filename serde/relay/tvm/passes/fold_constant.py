"""Calls of operators on constants, replaced by their value."""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from serde.core import dataclass, field, numpy_dtype
from serde.relay.ir import Call, Constant, Expr, Function, Let, OpDef, Var
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import check_constant, children, rebuild
from serde.relay.transform.evaluate_constants import chosen, evaluated
from serde.relay.transform.purity import must_wait
from serde.relay.tvm.passes.typed import TypedPass, is_call

__all__ = ["ConstantFolder", "FoldConstant", "FoldConstantExpr"]


@dataclass(frozen=True)
class FoldConstant(TypedPass):
    """Evaluate calls of operators whose operands are constants.

    A let of a constant goes, its variable is the constant; an ``if`` on a constant is its branch;
    a field of a tuple is that field. ``shape_of`` and ``ndarray_size`` of a tensor of known shape
    are constants whatever the tensor is. Calls without operands stay (``ones`` is shorter than
    its value), and so do ``full`` and its like, ``nn.dropout``, random numbers, loops, calls of
    functions, everything inside functions with ``Primitive``, and what a kernel refuses.

    Args:
        fold_qnn: Whether quantised operators are evaluated too.
    """

    name: ClassVar[str] = "FoldConstant"
    opt_level: ClassVar[int] = 2

    fold_qnn: bool = False

    def transform(self, function: Function) -> Function:
        """Fold children first."""
        result = ConstantFolder(self.fold_qnn).run(function)
        return result if isinstance(result, Function) else function


def FoldConstantExpr(  # noqa: N802
    expr: Expr, mod: object = None, fold_qnn: bool = False
) -> Expr:
    """Return an expression with its constants folded; see :class:`FoldConstant`.

    Args:
        expr: The expression; ``shape_of`` needs the type of its operand.
        mod: Accepted as TVM does; calls of global functions are not evaluated.
        fold_qnn: Whether quantised operators are evaluated too.
    """
    return ConstantFolder(fold_qnn).run(expr)


def _is_opaque(node: Expr) -> bool:
    return isinstance(node, Function) and bool(node.attrs.get("Primitive"))


def _below(node: Expr) -> tuple[Expr, ...]:
    """Return what is folded before a node; the value of a let before its variable's uses."""
    if _is_opaque(node):
        return ()
    if isinstance(node, Let):
        return (node.value, node.var, node.body)
    return children(node)


@dataclass
class ConstantFolder:
    """Folds constants below an expression.

    Attributes:
        fold_qnn: Whether quantised operators are evaluated too.
        done: What nodes have become.
    """

    fold_qnn: bool
    done: dict[Expr, Expr] = field(default_factory=dict)

    def run(self, root: Expr) -> Expr:
        """Return what stands for `root`."""
        stack = [(root, iter(_below(root)))]
        while stack:
            node, pending = stack[-1]
            child = next((each for each in pending if each not in self.done), None)
            if child is not None:
                stack.append((child, iter(_below(child))))
                continue
            stack.pop()
            if node not in self.done:
                self.done[node] = self._fold(node)
            if stack and isinstance(stack[-1][0], Let):
                self._bind(stack[-1][0])
        return self.done[root]

    def _bind(self, let: Let) -> None:
        """Let a constant stand for its variable once it is known."""
        value = self.done.get(let.value)
        if isinstance(value, Constant):
            self.done[let.var] = value

    def _fold(self, node: Expr) -> Expr:
        if isinstance(node, Let) and isinstance(self.done[node.value], Constant):
            return self.done[node.body]
        if _is_opaque(node):
            return node
        below = children(node)
        new = rebuild(node, [self.done[child] for child in below]) if below else node
        new = chosen(new)
        if isinstance(node, Call) and isinstance(new, Call):
            return self.fold_call(node, new)
        return new

    def fold_call(self, old: Call, new: Call) -> Expr:
        """Return what stands for a call whose operands are folded."""
        if not isinstance(new.op, OpDef) or not new.args:
            return new
        if is_call(new, "shape_of", "ndarray_size"):
            return _measure(old, new)
        if not self._may_evaluate(new, new.op.name):
            return new
        return evaluated(new)

    def _may_evaluate(self, node: Call, name: str) -> bool:
        if name in _KEPT or must_wait(node) or name.startswith(_NOT_COMPUTED):
            return False
        if name.startswith("qnn.") and not self.fold_qnn:
            return False
        return all(map(check_constant, node.args))


_KEPT = ("device_copy", "full", "full_like", "nn.dropout", "ones_like", "zeros_like")
_NOT_COMPUTED = ("annotation.", "memory.", "vm.", "on_device")


def _measure(old: Call, new: Call) -> Expr:
    """Return the shape or the size of a tensor, where its type tells them."""
    type_ = old.args[0].type if not isinstance(new.args[0], Constant) else new.args[0].type
    if isinstance(old.args[0], Var) and type_ is None:
        return new
    if not isinstance(type_, TensorType) or type_.concrete_shape is None:
        return new
    shape = type_.concrete_shape
    result: object = shape if is_call(new, "shape_of") else prod(shape)
    return Constant(np.array(result, dtype=numpy_dtype(new.attrs["dtype"])))
