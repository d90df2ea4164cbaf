"""Programs typed, or changed by a pass."""

from __future__ import annotations

from serde.relay.ir.expr import Expr, Function, TupleWrapper, astuple
from serde.relay.ir.module import IRModule
from serde.relay.prelude import Prelude
from serde.relay.transform.base import Pass
from serde.relay.transform.infer_type import InferType

__all__ = ["run_infer_type", "run_opt_pass"]


def run_infer_type(expr: Expr | TupleWrapper) -> Expr:
    """Return a function, or another expression, with its types.

    Raises:
        TypeInferenceError: They do not fit.
    """
    return _in_module(expr, InferType(), IRModule())


def run_opt_pass(expr: Expr | TupleWrapper, opt_pass: Pass, import_prelude: bool = False) -> Expr:
    """Return what a pass makes of a function or of another expression.

    Args:
        expr: The expression, whose free variables become parameters.
        opt_pass: The pass.
        import_prelude: Whether the expression may name what the Prelude defines.

    Raises:
        TypeInferenceError: Its types do not fit.
    """
    mod = IRModule()
    if import_prelude:
        Prelude(mod)
    return _in_module(expr, opt_pass, mod)


def _in_module(expr: Expr | TupleWrapper, opt_pass: Pass, mod: IRModule) -> Expr:
    whole = astuple(expr)
    mod["main"] = whole
    main = opt_pass(mod)["main"]
    return main if isinstance(whole, Function) else main.body
