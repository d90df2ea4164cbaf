"""Evaluation called as TVM's users call it: an executor of a module, and what it hands out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import RelayError
from serde.relay.ir import Constant, Expr, Function, GlobalVar, IRModule, TensorType, Var, astuple
from serde.relay.ir.ndarray import NDArray
from serde.relay.op.qnn.rescale import current_requantize_config
from serde.relay.run.interpreter import evaluate, run
from serde.relay.run.values import ConstructorValue, RefValue

__all__ = ["Executor", "NDArray", "create_executor"]


class Executor:
    """Evaluates expressions in a module; made by :func:`create_executor`."""

    def __init__(
        self, mod: IRModule, params: Mapping[str, AnyValue], *, casts: bool = False
    ) -> None:
        self.mod = mod
        self._params = dict(params)
        self._casts = casts

    def evaluate(
        self, expr: Expr | None = None, binds: Mapping[Var, AnyValue] | None = None
    ) -> AnyValue:
        """Return a callable for a function, or the value of any other expression.

        As in TVM, which builds the program here, the ``requantize_config`` in force now holds
        whenever the callable is called.

        Args:
            expr: What to evaluate; None for ``main``.
            binds: Values of free variables, or of parameters.

        Returns:
            For None, a function or a global variable: a callable that takes arrays by position
            or by name and returns an :class:`NDArray` or a nested tuple of them. Otherwise the
            value; of a function that is computed, a callable that takes arrays by position.
        """
        expr = self.mod["main"] if expr is None else astuple(expr)
        if isinstance(expr, GlobalVar):
            expr = self.mod[expr.name_hint]
        values = {each: _value_of(given) for each, given in (binds or {}).items()}
        if not isinstance(expr, Function):
            return _hand_out(evaluate(expr, values, mod=self.mod, functions=True))
        return self._callable(expr, values)

    def _callable(
        self, function: Function, binds: Mapping[Var, AnyValue]
    ) -> Callable[..., AnyValue]:
        preset = _places(function, self._params, strict=False)
        own = {param: index for index, param in enumerate(function.params)}
        preset |= {own[variable]: value for variable, value in binds.items() if variable in own}
        env = {variable: value for variable, value in binds.items() if variable not in own}
        config = current_requantize_config()

        def call(*args: AnyValue, **named: AnyValue) -> AnyValue:
            given = {name: _value_of(value) for name, value in named.items()}
            arguments = _bind_arguments(function, [*map(_value_of, args)], given, preset)
            if self._casts:
                arguments = [*map(_fit, function.params, arguments)]
            with config:
                return _hand_out(run(function, arguments, env=env, mod=self.mod))

        return call


def _places(
    function: Function, values: Mapping[str, AnyValue], *, strict: bool = True
) -> dict[int, AnyValue]:
    """Return values given by name by the places of their parameters.

    Two parameters may have one name; then it tells neither of them.
    """
    places: dict[str, list[int]] = {}
    for index, param in enumerate(function.params):
        places.setdefault(param.name_hint, []).append(index)
    unknown = sorted(set(values) - set(places))
    if unknown and strict:
        raise RelayError(f"no parameter is called {', '.join(unknown)}")
    found: dict[int, AnyValue] = {}
    for name, value in values.items():
        count = len(places.get(name, ()))
        if count > 1:
            raise RelayError(f"{count} parameters are called {name}; give them by place")
        found.update(dict.fromkeys(places.get(name, ()), value))
    return found


def _bind_arguments(
    function: Function,
    args: Sequence[AnyValue],
    named: Mapping[str, AnyValue],
    preset: Mapping[int, AnyValue],
) -> list[AnyValue]:
    """Put arguments in the order of the parameters: named, then by position, then preset."""
    count = len(function.params)
    given = _places(function, named)
    free = [index for index in range(count) if index not in given and index not in preset]
    if len(args) > len(free):
        free = [index for index in range(count) if index not in given]
    values = {**preset, **dict(zip(free, args, strict=False)), **given}
    missing = [p.name_hint for index, p in enumerate(function.params) if index not in values]
    if missing or len(args) > len(free):
        names = ", ".join(param.name_hint for param in function.params)
        raise RelayError(
            f"expected arguments {names}; "
            + (f"missing {', '.join(missing)}" if missing else f"found {len(args)} by position")
        )
    return [values[index] for index in range(count)]


def _fit(param: Var, value: AnyValue) -> AnyValue:
    """Return an argument in the type of its parameter, where that can hold its numbers.

    Floating-point numbers are rounded; others stay as they are, unless the cast is exact.
    """
    if not isinstance(param.type, TensorType) or isinstance(value, (list, tuple)):
        return value
    data, wanted = np.asarray(value), numpy_dtype(param.type.dtype)
    if data.dtype == wanted or data.dtype.kind not in "biuf" or wanted.kind not in "biuf":
        return value
    with np.errstate(all="ignore"):
        cast = data.astype(wanted)
        same = data.dtype.kind == wanted.kind == "f" or np.array_equal(cast, data)
    return cast if same else value


def _value_of(given: AnyValue) -> AnyValue:
    """Return the value of what is given, which may be a constant."""
    return given.data if isinstance(given, Constant) else given


def _hand_out(value: AnyValue) -> AnyValue:
    """Return a value with arrays that users can ask in TVM's way, however deep it is."""
    if callable(value):
        return lambda *args: _hand_out(value(*args))
    done: dict[int, AnyValue] = {}
    references: list[tuple[RefValue, AnyValue]] = []
    pending = [value]
    while pending:
        here = pending[-1]
        if id(here) in done:
            pending.pop()
            continue
        if isinstance(here, RefValue):
            # A reference may hold itself, so it is there before what it holds.
            done[id(here)] = RefValue(None)
            references.append((done[id(here)], here.value))
            pending[-1:] = [here.value]
            continue
        parts = _parts(here)
        waiting = [part for part in parts if id(part) not in done]
        if waiting:
            pending.extend(reversed(waiting))
            continue
        done[id(here)] = _with_parts(here, [done[id(part)] for part in parts])
        pending.pop()
    for reference, held in references:
        reference.value = done[id(held)]
    return done[id(value)]


def _parts(value: AnyValue) -> Sequence[AnyValue]:
    if isinstance(value, (tuple, list)):
        return value
    return value.fields if isinstance(value, ConstructorValue) else ()


def _with_parts(value: AnyValue, parts: list[AnyValue]) -> AnyValue:
    if isinstance(value, tuple):
        return tuple(parts)
    if isinstance(value, list):
        return parts
    if isinstance(value, ConstructorValue):
        return ConstructorValue(value.tag, parts, value.constructor)
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
            As in TVM, ``"graph"`` and ``"aot"`` cast arguments to the types of parameters; here
            only where that keeps integers as they are.
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
    casts = kind in ("graph", "aot")
    return Executor(mod if mod is not None else IRModule(), params or {}, casts=casts)
