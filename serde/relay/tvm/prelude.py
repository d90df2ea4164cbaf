"""TVM's Prelude: standard functions and data types, and tensor arrays by element type and shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir import Any, Constructor, Dim, Expr, Function, GlobalVar, IRModule, infer_module
from serde.relay.ir.types import GlobalTypeVar, TypeCall
from serde.relay.ir.visit import free_vars
from serde.relay.tvm.standard.static_arrays import StaticTensorArrayOps
from serde.relay.tvm.standard.tensor_arrays import dynamic_definitions, static_name
from serde.relay.tvm.standard.texts import define

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]

_DTYPES: Final = (
    "float32", "float16", "float64", "int32", "uint8", "int8", "int16", "uint16", "int64",
)  # fmt: skip
_GLOBALS: Final = (
    "id", "compose", "flip", "hd", "tl", "nth", "update", "map", "foldl", "foldr", "foldr1",
    "concat", "filter", "zip", "rev", "map_accuml", "map_accumr", "unfoldl", "unfoldr", "sum",
    "length", "tmap", "size", "iterate",
)  # fmt: skip
_STATIC: Final = "static_tensor_"


@cache
def _standard() -> IRModule:
    """Return the module of all that a Prelude adds to an empty one."""
    mod = IRModule()
    mod.import_from_std("prelude.rly")
    _define_arrays(mod)
    return infer_module(mod)[0]


def _define_arrays(mod: IRModule) -> None:
    texts = [
        dynamic_definitions(dtype, lambda canonical, dtype=dtype: _name(canonical, dtype))  # type: ignore[misc]
        for dtype in _DTYPES
    ]
    define(mod, "\n".join(texts))


def _name(canonical: str, dtype: str) -> str:
    return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"


class Prelude:
    """The standard definitions in a module; each function is an attribute, as ``prelude.map``.

    Args:
        mod: The module that gets them; a new one by default.

    Raises:
        RelayError: A name is taken in the module.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod if mod is not None else IRModule()
        self._load()

    def __getattr__(self, name: str) -> GlobalVar:
        if name in _GLOBALS:
            return self.mod.get_global_var(name)
        raise AttributeError(f"a Prelude has no function {name}")

    def _load(self) -> None:
        known = {header.name_hint for header in self.mod.type_definitions}
        if _name("tensor_t", _DTYPES[0]) in known:
            return
        if "List" in known:
            self.mod.import_from_std("prelude.rly")
            _define_arrays(self.mod)
            return
        self.mod.update_standard(_standard(), "prelude.rly")

    def get_name(self, canonical: str, dtype: str) -> str:
        """Return the name of a function, type or constructor of dynamic tensor arrays."""
        return _name(canonical, dtype)

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """Return the variable of a function of dynamic tensor arrays."""
        return self.mod.get_global_var(_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """Return the variable of the type of dynamic tensors."""
        return self.mod.get_global_type_var(_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """Return a constructor of the type called `ty_name`."""
        return self.mod.get_constructor(ty_name, _name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """Return a constructor of dynamic tensors."""
        return self.get_ctor(_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(
        self, canonical: str, dtype: str, shape: Sequence[AnyValue], batch_dim: int | None = None
    ) -> str:
        """Return the name of a function, type or constructor of static tensor arrays."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Sequence[AnyValue], batch_dim: int | None = None
    ) -> GlobalVar:
        """Return the variable of a function of static tensor arrays."""
        return self.mod.get_global_var(static_name(canonical, dtype, shape, batch_dim))

    def get_type_static(
        self, canonical: str, dtype: str, shape: Sequence[AnyValue]
    ) -> GlobalTypeVar:
        """Return the variable of the type of static tensors."""
        return self.mod.get_global_type_var(static_name(canonical, dtype, shape))

    def get_ctor_static(
        self, ty_name: str, name: str, dtype: str, shape: Sequence[AnyValue]
    ) -> Constructor:
        """Return a constructor of static tensors."""
        header = static_name(ty_name, dtype, shape)
        return self.mod.get_constructor(header, static_name(name, dtype, shape))

    def get_tensor_ctor_static(
        self, name: str, dtype: str, shape: Sequence[AnyValue]
    ) -> Constructor:
        """Return a constructor of static tensors."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)


class TensorArrayOps:
    """The functions of dynamic tensor arrays of one element type.

    Args:
        prelude: The Prelude, which defines them.
        dtype: Element type.
    """

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.list, self.cons, self.nil = prelude.mod.get_type("List")

    def get_name(self, canonical: str) -> str:
        """Return the name of a function, type or constructor."""
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """Return the variable of a function."""
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """Return the variable of the type of tensors."""
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> Constructor:
        """Return a constructor of tensors."""
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    def register(self) -> None:
        """Define the functions for an element type that a Prelude does not have by itself."""
        known = {header.name_hint for header in self.prelude.mod.type_definitions}
        if self.get_name("tensor_t") not in known:
            define(self.prelude.mod, dynamic_definitions(self.dtype, self.get_name))


def get_tensor_array_shape(expr: Expr, dtype: str, prelude: Prelude) -> tuple[Dim, ...] | None:
    """Return the shape of the tensors of a tensor array; None where they have any.

    Args:
        expr: A list of tensors, dynamic or static ones.
        dtype: Their element type.
        prelude: The Prelude that defines them.

    Raises:
        RelayError: It is no tensor array.
    """
    mod = prelude.mod.shallow_copy()
    mod["main"] = Function(free_vars(expr), expr)
    type_ = infer_module(mod)[0]["main"].body.type
    element = type_.args[0] if isinstance(type_, TypeCall) and type_.args else None
    if not isinstance(element, TypeCall) or not isinstance(element.func, GlobalTypeVar):
        raise RelayError(f"expected a tensor array, found {type_!r}")
    name, start = element.func.name_hint, f"{_STATIC}{dtype}_"
    if not name.startswith(start):
        return None
    words = name.removeprefix(start).removesuffix("_t").split("_")
    if words == ["scalar"]:
        return ()
    return tuple(Any() if word == "any" else int(word) for word in words)
