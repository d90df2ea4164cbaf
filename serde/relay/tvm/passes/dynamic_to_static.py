"""Static forms of operators that read their shape from a tensor."""

from __future__ import annotations

from typing import ClassVar

from serde.errors import RelayError
from serde.relay.ir import Call, Expr, Function, accepts
from serde.relay.transform.fold_shape import static_form
from serde.relay.tvm.passes.fold_constant import ConstantFolder
from serde.relay.tvm.passes.typed import TypedPass, is_call

__all__ = ["DynamicToStatic"]


class DynamicToStatic(TypedPass):
    """Give operators below ``dyn.`` whose shape is a constant their static form.

    Constants are folded on the way as :class:`FoldConstant` does, with the shapes that become
    known by it: a reshape to the shape of another reshape is static, too.
    :class:`~serde.relay.transform.FoldShape` does more, of symbols.
    """

    name: ClassVar[str] = "DynamicToStatic"
    opt_level: ClassVar[int] = 2

    def transform(self, function: Function) -> Function:
        """Fold and replace, operands first."""
        result = _StaticFolder(fold_qnn=False).run(function)
        if not isinstance(result, Function) or result is function:
            return function
        return result.evolve(ret_type=None)


class _StaticFolder(ConstantFolder):
    def fold_call(self, old: Call, new: Call) -> Expr:
        """Return the static form of a call, else what folding makes of it."""
        static = _static(new)
        if static is not None:
            return super().fold_call(static, static)
        # What was dynamic may have a known shape by now.
        return super().fold_call(new if is_call(new, "shape_of", "ndarray_size") else old, new)


def _static(node: Call) -> Call | None:
    try:
        found = static_form(node)
    except RelayError:
        return None
    if found is None or found.type is None or node.type is None:
        return found
    return found if accepts(node.type, found.type) else None
