"""Evaluation called as TVM's users call it: an executor of a module, and what it hands out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import RelayError
from serde.relay.expr import Expr, Function, GlobalVar, Var
from serde.relay.interpreter import evaluate, run
from serde.relay.module import IRModule

__all__ = ["Executor", "NDArray", "create_executor"]


class NDArray(np.ndarray[AnyValue, np.dtype[AnyValue]]):
    """A result: a NumPy array that also has TVM's way of asking for one."""

    def numpy(self) -> np.ndarray[AnyValue, np.dtype[AnyValue]]:
        """Return the values as a plain array."""
        return np.array(self, subok=False)

    asnumpy = numpy


class Executor:
    """Evaluates expressions in a module; made by :func:`create_executor`."""

    def __init__(self, mod: IRModule, params: Mapping[str, AnyValue]) -> None:
        self.mod = mod
        self._params = dict(params)

    def evaluate(
        self, expr: Expr | None = None, binds: Mapping[Var, AnyValue] | None = None
    ) -> AnyValue:
        """Return a callable for a function, or the value of any other expression.

        Args:
            expr: What to evaluate; None for ``main``.
            binds: Values of free variables.

        Returns:
            For None, a function or a global variable: a callable that takes arrays by position
            or by name and returns an :class:`NDArray` or a nested tuple of them. Otherwise the
            value.
        """
        if expr is None:
            expr = self.mod["main"]
        if isinstance(expr, GlobalVar):
            expr = self.mod[expr.name_hint]
        if not isinstance(expr, Function):
            return _hand_out(evaluate(expr, binds, mod=self.mod))
        return self._callable(expr, binds or {})

    def _callable(
        self, function: Function, binds: Mapping[Var, AnyValue]
    ) -> Callable[..., AnyValue]:
        names = {param.name_hint for param in function.params}
        bound = {variable.name_hint: value for variable, value in binds.items()}
        preset = {k: v for k, v in {**self._params, **bound}.items() if k in names}

        def call(*args: AnyValue, **named: AnyValue) -> AnyValue:
            arguments = _bind_arguments(function, args, named, preset)
            return _hand_out(run(function, arguments, mod=self.mod))

        return call


def _bind_arguments(
    function: Function,
    args: Sequence[AnyValue],
    named: Mapping[str, AnyValue],
    preset: Mapping[str, AnyValue],
) -> list[AnyValue]:
    """Put arguments in the order of the parameters: named, then by position, then preset."""
    names = [param.name_hint for param in function.params]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise RelayError(f"no parameter is called {', '.join(unknown)}")
    given = iter(args)
    open_names = [name for name in names if name not in named and name not in preset]
    if len(args) > len(open_names):
        open_names = [name for name in names if name not in named]
    by_position = dict(zip(open_names, given, strict=False))
    values = {**preset, **by_position, **named}
    missing = [name for name in names if name not in values]
    if missing or len(args) > len(open_names):
        raise RelayError(
            f"expected arguments {', '.join(names)}; "
            + (f"missing {', '.join(missing)}" if missing else f"found {len(args)} by position")
        )
    return [values[name] for name in names]


def _hand_out(value: AnyValue) -> AnyValue:
    if isinstance(value, tuple):
        return tuple(_hand_out(item) for item in value)
    if isinstance(value, list):
        return [_hand_out(item) for item in value]
    return np.array(value).view(NDArray)


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: AnyValue = None,
    target: AnyValue = "llvm",
    params: Mapping[str, AnyValue] | None = None,
) -> Executor:
    """Return what evaluates a module, as TVM's function of this name.

    Args:
        kind: ``"debug"``, ``"graph"``, ``"vm"`` or ``"aot"``; all run the same interpreter.
        mod: The module; an empty one by default.
        device: Taken for compatibility; the processor runs everything.
        target: Taken for compatibility.
        params: Values of parameters of ``main`` by name.

    Raises:
        RelayError: There is no such kind.
    """
    del device, target
    if kind not in ("debug", "graph", "vm", "aot"):
        raise RelayError(f"expected an executor of kind debug, graph, vm or aot, found {kind!r}")
    return Executor(mod if mod is not None else IRModule(), params or {})
