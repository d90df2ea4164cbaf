"""Modules in memory, as users build them: parameters that share a name, that lack a type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from serde.core.weights import Weight
from serde.errors import FormatError
from serde.relay.ir import Expr, Function, IRModule, TensorType, UniqueNames, Var, rewrite
from serde.relay.transform.infer_type import InferType

__all__ = ["infer_types", "rename_apart"]


def rename_apart(mod: IRModule, named: Collection[str] = ()) -> IRModule:
    """Return `mod` with parameters of ``main`` of different names; a number tells them apart.

    Variables are told apart by what they are, but parameters of a model by their names.

    Args:
        mod: The module.
        named: Names by which values are given.

    Raises:
        FormatError: One of `named` is the name of several parameters.
    """
    counts = Counter(param.name_hint for param in mod["main"].params)
    if len(counts) == len(mod["main"].params):
        return mod
    for name in named:
        if counts[name] > 1:
            raise FormatError(f"{counts[name]} parameters of main are called {name}")
    names = UniqueNames(counts)
    seen: set[str] = set()
    fresh: dict[Expr, Expr] = {}
    for param in mod["main"].params:
        if param.name_hint in seen:
            variable = Var(names.reserve(param.name_hint, ""), param.type_annotation, param.span)
            variable.type = param.type
            fresh[param] = variable
        seen.add(param.name_hint)
    return _with_params(mod, fresh)


def infer_types(mod: IRModule, weights: Mapping[str, Weight]) -> IRModule:
    """Return `mod` with types; an untyped parameter of ``main`` has that of its weight.

    Raises:
        TypeInferenceError: Types do not fit, or one cannot be found.
    """
    fresh: dict[Expr, Expr] = {
        param: Var(param.name_hint, TensorType(weight.shape, weight.dtype), param.span)
        for param in mod["main"].params
        if param.type is None and (weight := weights.get(param.name_hint)) is not None
    }
    mod = _with_params(mod, fresh) if fresh else mod
    return mod if mod.checked else InferType()(mod)


def _with_params(mod: IRModule, fresh: dict[Expr, Expr]) -> IRModule:
    """Return `mod` with other variables for some of the parameters of ``main``."""
    main = mod["main"]
    new = rewrite(main, lambda _node, rebuilt: rebuilt, fresh)
    functions = {v: new if f is main else f for v, f in mod.functions.items()}
    return mod.with_functions({v: f for v, f in functions.items() if isinstance(f, Function)})
