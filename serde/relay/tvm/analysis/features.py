"""Which constructs of the language a program uses."""

from __future__ import annotations

from enum import IntEnum

from serde.relay.ir import Constant, Expr, Function, GlobalVar, IRModule, Let, Op, Var
from serde.relay.tvm.analysis.variables import free_vars, parts

__all__ = ["Feature", "detect_feature"]


Feature = IntEnum(
    "Feature",
    "fVar fGlobalVar fConstant fTuple fTupleGetItem fFunction fOp fCall fLet fIf fRefCreate "
    "fRefRead fRefWrite fConstructor fMatch fGraph fLetRec",
    start=0,
)
"""Constructs that a program may use; ``fGraph`` is sharing, ``fLetRec`` recursion."""

_KINDS = {feature.name[1:]: feature for feature in Feature}
"""Features by the name of the class of nodes that they mean, where there is one."""

_ATOMS = (Var, GlobalVar, Constant, Op)


def detect_feature(a: Expr | IRModule | None, b: Expr | IRModule | None = None) -> set[Feature]:
    """Return the constructs in an expression, a module, or both.

    Inside functions with ``Primitive`` nothing is looked at.

    Args:
        a: An expression or a module.
        b: The other one, or None.
    """
    found: set[Feature] = set()
    for each in (a, b):
        if isinstance(each, IRModule):
            for function in each.functions.values():
                found |= _features(function)
        elif each is not None:
            found |= _features(each)
    return found


def _features(root: Expr) -> set[Feature]:
    found: set[Feature] = set()
    seen: set[Expr] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if node in seen:
            if not isinstance(node, _ATOMS) and type(node).__name__ != "Constructor":
                found.add(Feature.fGraph)
            continue
        seen.add(node)
        names = (kind.__name__ for kind in type(node).__mro__)
        found.add(next(_KINDS[name] for name in names if name in _KINDS))
        if isinstance(node, Function) and node.attrs.get("Primitive"):
            continue
        if isinstance(node, Let) and node.var in free_vars(node.value):
            found.add(Feature.fLetRec)
        pending.extend(parts(node))
    return found
