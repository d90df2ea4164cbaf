"""Programs typed, or changed by a pass."""

from __future__ import annotations

import numpy as np

from serde.relay.ir import Expr, Function, IRModule, TupleWrapper, astuple
from serde.relay.ir.ndarray import NDArray
from serde.relay.ir.types import Type
from serde.relay.transform.base import Pass
from serde.relay.transform.infer_type import InferType
from serde.relay.tvm.analysis.counting import op_frequencies
from serde.relay.tvm.analysis.variables import post_order
from serde.relay.tvm.prelude import Prelude

__all__ = ["InferTypeLocal", "count_ops", "rand", "run_infer_type", "run_opt_pass"]


def run_infer_type(expr: Expr | TupleWrapper) -> Expr:
    """Return a function, or another expression, with its types.

    Raises:
        TypeInferenceError: They do not fit.
    """
    return _in_module(expr, InferType(), IRModule())


def InferTypeLocal(expr: Expr | TupleWrapper) -> Type:  # noqa: N802 - TVM's name.
    """Return the type of one expression, whatever lacks its own below it.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.

    Example:
        ``transform.InferTypeLocal(relay.nn.relu(relay.var("x", shape=(2,))))``
    """
    return run_infer_type(expr).checked_type


def run_opt_pass(expr: Expr | TupleWrapper, opt_pass: Pass, import_prelude: bool = False) -> Expr:
    """Return what a pass makes of a function or of another expression.

    Args:
        expr: The expression, whose free variables become parameters.
        opt_pass: The pass.
        import_prelude: Whether the expression may name what the Prelude defines.

    Raises:
        TypeError: `opt_pass` is no pass.
        TypeInferenceError: The types of the expression do not fit.
    """
    if not isinstance(opt_pass, Pass):
        raise TypeError(f"expected a pass, found {opt_pass!r}")
    mod = IRModule()
    if import_prelude:
        Prelude(mod)
    return _in_module(expr, opt_pass, mod)


def _in_module(expr: Expr | TupleWrapper, opt_pass: Pass, mod: IRModule) -> Expr:
    whole = astuple(expr)
    mod["main"] = whole
    main = opt_pass(mod)["main"]
    return main if isinstance(whole, Function) else main.body


def count_ops(expr: Expr | TupleWrapper) -> dict[str, int]:
    """Return how often an expression calls each operator, by its name."""
    return op_frequencies(post_order(expr))


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """Return an array of random numbers between 0 and 1."""
    return np.random.default_rng().random(shape).astype(dtype).view(NDArray)
