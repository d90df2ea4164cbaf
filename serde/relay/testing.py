"""What tests of passes need, as TVM's module of this name has it."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.relay.ir.expr import Expr, Function
from serde.relay.ir.module import IRModule
from serde.relay.ir.ndarray import NDArray
from serde.relay.ir.op_attributes import TempOpAttr
from serde.relay.prelude import Prelude
from serde.relay.transform.base import Pass
from serde.relay.transform.infer_type import InferType

__all__ = ["TempOpAttr", "rand", "run_infer_type", "run_opt_pass"]


def run_opt_pass(expr: Expr, opt_pass: Pass, import_prelude: bool = False) -> Expr:
    """Return what a pass makes of a function, or of the body that `expr` is.

    Args:
        expr: A function, or an expression whose free variables are its parameters.
        opt_pass: The pass.
        import_prelude: Whether the module of `expr` has the data types of the Prelude.

    Raises:
        TypeError: `opt_pass` is no pass.
    """
    if not isinstance(opt_pass, Pass):
        raise TypeError(f"expected a pass, found {opt_pass!r}")
    mod = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(mod)
    main = opt_pass(mod)["main"]
    return main if isinstance(expr, Function) else main.body


def run_infer_type(expr: Expr) -> Expr:
    """Return `expr` with its types inferred.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    return run_opt_pass(expr, InferType())


def rand(dtype: str, *shape: int) -> AnyValue:
    """Return an array of random numbers from 0 to 1."""
    return np.random.default_rng().random(shape).astype(dtype).view(NDArray)
