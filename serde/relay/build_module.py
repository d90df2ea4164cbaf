"""Parameters bound and programs run, where ``tvm.relay.build_module`` has that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any as AnyValue

import numpy as np

import serde.relay.transform as passes
from serde.errors import OptionError, RelayError
from serde.relay.ir.copies import bind
from serde.relay.ir.expr import Constant, Expr, Function, Var, const
from serde.relay.ir.module import IRModule
from serde.relay.run.executor import create_executor
from serde.relay.tvm.passes import qnn

__all__ = ["bind_params_by_name", "create_executor", "optimize"]


def bind_params_by_name(func: Function, params: Mapping[str, AnyValue]) -> Function:
    """Return a function with constants in the place of parameters.

    Args:
        func: The function.
        params: Values by the names of parameters; those of other names do not matter.

    Raises:
        OptionError: Several parameters have a name that `params` has.
    """
    named: dict[str, Var] = {}
    for param in func.params:
        if param.name_hint in named and param.name_hint in params:
            raise OptionError(f"several parameters are called {param.name_hint}")
        named[param.name_hint] = param
    values: dict[Var, Expr] = {
        named[name]: Constant(value) if isinstance(value, np.ndarray) else _as_constant(value)
        for name, value in params.items()
        if name in named
    }
    bound = bind(func, values)
    if not isinstance(bound, Function):
        raise RelayError(f"expected a function, found {bound!r}")
    return bound


def optimize(
    mod: IRModule | Function, target: AnyValue = None, params: Mapping[str, AnyValue] | None = None
) -> tuple[IRModule, dict[str, AnyValue]]:
    """Return a module as passes of TVM leave it that hold for every target; nothing is fused.

    Which of them run is asked of the ``PassContext``, as of any ``Sequential``. Beside it come the
    parameters that are left, which are none.

    Args:
        mod: A module, or a function, which becomes ``main``.
        target: What it is for; nothing depends on it.
        params: Values of parameters of ``main``, which become constants.
    """
    whole = IRModule.from_expr(mod) if isinstance(mod, Function) else mod
    whole = whole.with_main(bind_params_by_name(whole["main"], params or {}))
    run = [
        *(passes.RemoveUnusedFunctions(), qnn.Legalize(), qnn.CanonicalizeOps()),
        *(passes.SimplifyInference(), passes.EliminateCommonSubexpr(), passes.SimplifyExpr()),
        *(passes.FoldConstant(), passes.CanonicalizeOps(), passes.FoldConstant()),
    ]
    return passes.Sequential(run)(whole), {}


def _as_constant(value: AnyValue) -> Constant:
    return value if isinstance(value, Constant) else const(value, None)
