"""Passes made of functions and classes of users."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import Function, IRModule
from serde.relay.transform.base import ModulePass, Pass, TvmFunctionPass
from serde.relay.transform.context import PassContext, PassInfo
from serde.relay.transform.infer_type import InferType

__all__ = ["function_pass", "module_pass"]


class _MadePass(Pass):
    """A pass that asks a function or an object of a user.

    Args:
        transform: What it asks.
        info: Its facts.
        instance: The object that an unknown attribute is looked up in.
    """

    def __init__(
        self, transform: Callable[..., AnyValue], info: PassInfo, instance: AnyValue = None
    ) -> None:
        self._transform = transform
        self._info = info
        self._instance = instance

    @property
    def info(self) -> PassInfo:
        """Name, level and requirements."""
        return self._info

    def __getattr__(self, name: str) -> AnyValue:
        if name.startswith("_") or self._instance is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self._instance, name)


class _MadeModulePass(_MadePass, ModulePass):
    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Return what the user's function makes of the module."""
        result = self._transform(mod, PassContext.current())
        if not isinstance(result, IRModule):
            raise RelayError(f"{self.info.name}: expected a module, found {result!r}")
        return result, result is not mod


class _MadeFunctionPass(_MadePass, TvmFunctionPass):
    def transform(self, function: Function) -> Function:
        """Return what the user's function makes of a function."""
        raise NotImplementedError("the user's function needs the module; see run")

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Ask for every function that is for no other compiler, and infer the types of all."""
        functions = dict(mod.functions)
        for variable, function in mod.functions.items():
            if not self.leaves(function):
                result = self._transform(function, mod, PassContext.current())
                if not isinstance(result, Function):
                    raise RelayError(f"{self.info.name}: expected a function, found {result!r}")
                functions[variable] = result
        if all(functions[variable] is mod.functions[variable] for variable in functions):
            return mod, False
        return InferType()(mod.with_functions(functions, checked=False)), True


def _make(
    kind: type[_MadePass], method: str, given: AnyValue, info: PassInfo
) -> type[_MadePass] | _MadePass:
    """Return a pass for a function, or a class of passes for a class with `method`."""
    if not inspect.isclass(given):
        if not callable(given):
            raise TypeError(f"expected a function or a class with {method}, found {given!r}")
        return kind(given, info)

    def begin(self: _MadePass, *args: AnyValue, **kwargs: AnyValue) -> None:
        instance = given(*args, **kwargs)
        kind.__init__(self, getattr(instance, method), info, instance)

    return type(given.__name__, (kind,), {"__init__": begin, "__doc__": given.__doc__})


def _decorate(
    kind: type[_MadePass],
    method: str,
    given: AnyValue,
    facts: tuple[int | None, str | None, Sequence[str] | None],
) -> AnyValue:
    opt_level, name, required = facts
    if opt_level is None:
        raise ValueError("a pass needs opt_level=")
    if not isinstance(required, (list, tuple, type(None))):
        raise TypeError(f"required must be a list of names, found {required!r}")

    def decorate(each: AnyValue) -> AnyValue:
        known = name or str(getattr(each, "__name__", kind.__name__))
        return _make(kind, method, each, PassInfo(opt_level, known, tuple(required or ())))

    return decorate if given is None else decorate(given)


def module_pass(
    pass_func: AnyValue = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> AnyValue:
    """Return a pass over modules made of a function or of a class; also a decorator.

    Args:
        pass_func: A function of a module and a :class:`PassContext` that returns a module, or a
            class whose method ``transform_module`` is one.
        opt_level: The level of a context from which on a sequence runs the pass.
        name: Its name, if not that of the function or class.
        required: Names of passes that come before it.

    Raises:
        ValueError: `opt_level` is missing.
        TypeError: `pass_func` cannot be called, or `required` is no list.
    """
    return _decorate(_MadeModulePass, "transform_module", pass_func, (opt_level, name, required))


def function_pass(
    pass_func: AnyValue = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
) -> AnyValue:
    """Return a pass over functions made of a function or of a class; also a decorator.

    Types are inferred again behind it.

    Args:
        pass_func: A function of a Relay function, its module and a :class:`PassContext` that
            returns a Relay function, or a class whose method ``transform_function`` is one.
        opt_level: The level of a context from which on a sequence runs the pass.
        name: Its name, if not that of the function or class.
        required: Names of passes that come before it.

    Raises:
        ValueError: `opt_level` is missing.
        TypeError: `pass_func` cannot be called, or `required` is no list.
    """
    return _decorate(
        _MadeFunctionPass, "transform_function", pass_func, (opt_level, name, required)
    )
