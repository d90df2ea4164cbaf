"""Builders of calls: those written by hand, and those made from declarations."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any as AnyValue, Final

from serde.core.texts import near_names
from serde.errors import TypeInferenceError
from serde.relay.ir.expr import Call, Expr, TupleWrapper
from serde.relay.ir.registry import OpDef, builder_paths, call, find, find_builder
from serde.relay.ir.schema import REQUIRED
from serde.relay.ir.types import TupleType

__all__ = ["Namespace", "builder_names", "lookup_builder", "wrap_tuple"]

_DERIVED: dict[str, AnyValue] = {}

_QNN: Final = "serde.relay.tvm.passes.qnn"
_CONFIG: Final = "serde.relay.op.qnn.rescale"
_BESIDE_BUILDERS: Final = {
    "qnn.transform": (_QNN, None),
    "qnn.op.canonicalizations": (f"{_QNN}.canonicalizations", None),
    "qnn.op.legalizations": (f"{_QNN}.legalizations", None),
    "qnn.op.current_requantize_config": (_CONFIG, "current_requantize_config"),
    "qnn.op.register_qnn_canonicalize": (f"{_QNN}.canonicalizations", "register_qnn_canonicalize"),
    "qnn.op.register_qnn_legalize": (f"{_QNN}.legalizations", "register_qnn_legalize"),
    "qnn.op.requantize_config": (_CONFIG, "requantize_config"),
}
"""What TVM has beside builders of quantised operators: modules, and names in them."""


class Namespace:
    """Builders below one prefix, as ``relay.nn`` has them."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> AnyValue:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == self._prefix:
            return self  # As TVM's module ``relay.op.nn.nn`` has the builders of ``relay.op.nn``.
        found = lookup_builder(f"{self._prefix}.{name}")
        if found is None:
            near = near_names(name, dir(self))
            raise AttributeError(f"relay.{self._prefix} has no operator {name}.{near}")
        return found

    def __dir__(self) -> list[str]:
        return builder_names(f"{self._prefix}.")

    def __repr__(self) -> str:
        return f"<operators below relay.{self._prefix}>"


def lookup_builder(path: str) -> AnyValue:
    """Return the builder at `path` below ``relay``, a namespace, or None.

    Builders written by hand come first; the others are made from the
    declaration: operands, then attributes, positional or by keyword.
    """
    made = find_builder(path) or _DERIVED.get(path)
    if made is not None:
        return made
    if path in _BESIDE_BUILDERS:
        home, name = _BESIDE_BUILDERS[path]
        module = importlib.import_module(home)
        return module if name is None else getattr(module, name)
    if path == "qnn.op.qnn":
        return Namespace("qnn.op")
    if path.startswith("qnn.") and path.count(".") == 1 and path != "qnn.op":
        return lookup_builder(path.replace("qnn.", "qnn.op.", 1))
    definition = find(path.replace("qnn.op.", "qnn.", 1))
    if definition is not None:
        return _DERIVED.setdefault(path, _derived_builder(definition))
    if any(known.startswith(f"{path}.") for known in builder_paths()):
        return _DERIVED.setdefault(path, Namespace(path))
    return None


def builder_names(prefix: str = "") -> list[str]:
    """Return the names of builders and namespaces that follow `prefix`, such as ``"nn."``."""
    paths = (path for path in builder_paths() if path.startswith(prefix))
    return sorted({path[len(prefix) :].split(".")[0] for path in paths})


def _derived_builder(definition: OpDef) -> Callable[..., AnyValue]:
    arguments = definition.forms
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = [index for index, o in enumerate(definition.operands) if not o.optional]
    last = required[-1] if required else -1  # Nothing before it can be left out by position.
    parameters = {
        o.name: inspect.Parameter(o.name, keyword, default=REQUIRED if index <= last else None)
        for index, o in enumerate(definition.operands)
    }
    kind = keyword if len(parameters) == last + 1 else inspect.Parameter.KEYWORD_ONLY
    defaults = {name: each.default for name, each in definition.attributes.items()}
    defaults |= {**arguments.defaults, **dict.fromkeys(arguments.required, REQUIRED)}
    attributes = {
        name: inspect.Parameter(name, kind, default=defaults[name])
        for name in definition.attributes
        if name not in arguments.hidden
    }
    others = [name for name in attributes if name not in arguments.order]
    if kind is keyword:
        others.sort(key=lambda name: attributes[name].default is not REQUIRED)
    ordered = [attributes[name] for name in (*arguments.order, *others)]
    if kind is keyword:
        must = [index for index, each in enumerate(ordered) if each.default is REQUIRED]
        count = must[-1] + 1 if must else 0
        ordered[:count] = [each.replace(default=REQUIRED) for each in ordered[:count]]
    parameters |= {each.name: each for each in ordered}
    shown = {name: arguments.names.get(name, name) for name in parameters}
    signature = inspect.Signature([p.replace(name=shown[n]) for n, p in parameters.items()])
    listed = signature.parameters.values()
    positional = [p.name for p in listed if p.kind is keyword]
    must_have = {p.name for p in listed if p.default is REQUIRED}
    known = signature.parameters.keys()

    def build(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        bound = {**dict(zip(positional, args, strict=False)), **kwargs}
        fits = len(bound) == len(args) + len(kwargs)
        if not fits or not must_have <= bound.keys() <= known:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeInferenceError(f"{definition.name}: {error}") from None
        if arguments.names:
            bound = {name: bound[shown[name]] for name in parameters if shown[name] in bound}
        given = {**arguments.defaults, **bound}
        for name, convert in arguments.convert.items():
            given[name] = convert(given.get(name, parameters[name].default))
        operands = [given.pop(operand.name, None) for operand in definition.operands]
        return wrap_tuple(call(definition.name, *operands, **given))

    build.__name__ = build.__qualname__ = definition.name.rsplit(".", 1)[-1]
    build.__doc__ = definition.doc
    build.__signature__ = signature  # type: ignore[attr-defined]
    return build


def wrap_tuple(node: Call) -> Expr | TupleWrapper:
    """Return `node`, inside a :class:`TupleWrapper` where it yields several tensors."""
    if isinstance(node.type, TupleType):
        return TupleWrapper(node, len(node.type.fields))
    if isinstance(node.op, OpDef) and node.op.fields:
        return TupleWrapper(node, node.op.fields)
    return node
