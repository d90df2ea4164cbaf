"""Stubs of ``serde.relay``: its builders, with the operands and attributes of the declarations."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any as AnyValue

import numpy as np
from annotations import Names, default_text, flattened, type_hints

from serde.relay.ir.builders import Namespace, lookup_builder
from serde.relay.ir.dims import SymDim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import OpDef, all_ops

__all__ = ["relay_stubs"]

relay: AnyValue = importlib.import_module("serde.relay")  # Not as its own stub describes it.

FOLDER = "serde/relay/_builders"
PACKAGE = "serde.relay._builders"
_DTYPE = (PACKAGE + "._types", "DType")

_TYPES_STUB = '''\
"""Types that the builders of all namespaces share."""

from typing import Any as AnyValue
from typing import TypeAlias

import numpy as np

DType: TypeAlias = str | np.dtype[AnyValue] | type[AnyValue]
"""A name of a dtype such as ``"float16"``, or NumPy's own objects."""
'''


def relay_stubs() -> dict[str, str]:
    """Return the text of each stub by its path below the repository."""
    tree: dict[str, dict[str, Callable[..., AnyValue]]] = {}
    for path in builder_paths():
        space, _, name = path.rpartition(".")
        tree.setdefault(space, {})[name] = lookup_builder(path)
    for space in list(tree):
        while "." in space:
            space = space.rpartition(".")[0]
            tree.setdefault(space, {})
    stubs = {f"{FOLDER}/_types.pyi": _TYPES_STUB, f"{FOLDER}/__init__.pyi": _INIT_STUB}
    for name in (*_LISTED, *_PACKAGES):
        stubs[f"{name.replace('.', '/')}/__init__.pyi"] = _exports(importlib.import_module(name))
    for space, builders in tree.items():
        inner = sorted(other for other in tree if other and other.rpartition(".")[0] == space)
        if not space:
            stubs["serde/relay/__init__.pyi"] = _package(builders, inner)
            continue
        parts = space.split(".")
        file = f"{FOLDER}/{'/'.join(parts)}"
        file += "/__init__.pyi" if inner else ".pyi"
        stubs[file] = _namespace(space, builders, inner)
    return stubs


_LISTED = ("serde.core", "serde.relay.ir", "serde.walk")
"""Packages whose names are loaded when they are used, each from the module that a list says."""

_PACKAGES = ("serde.relay.dataflow_pattern", "serde.relay.transform")
"""Further ones, whose names say themselves where they were made."""

_INIT_STUB = '"""Namespaces of builders; they are objects of ``serde.relay``, and no modules."""\n'


def builder_paths() -> Iterator[str]:
    """Yield where every builder is found below ``relay``."""

    def walk(prefix: str, names: list[str]) -> Iterator[str]:
        for name in names:
            path = prefix + name
            found = lookup_builder(path)
            if isinstance(found, Namespace):
                yield from walk(f"{path}.", dir(found))
            elif found is not None:
                yield path

    yield from walk("", sorted(set(dir(relay)) - set(relay.__all__)))


def _namespace(space: str, builders: dict[str, Callable[..., AnyValue]], inner: list[str]) -> str:
    names = Names()
    body = [_stub(f"{space}.{name}", builder, names) for name, builder in sorted(builders.items())]
    for other in inner:
        parent, _, name = f"{PACKAGE}.{other}".rpartition(".")
        names.use(parent, f"{name} as {name}")
    title = f'"""Builders below ``relay.{space}``; generated from the declarations."""'
    return "\n\n".join([title, *names.lines(), *body])


def _exports(package: types.ModuleType) -> str:
    """Return the stub of a package that has nothing but names of its modules."""
    names = Names()
    listed = package.HOMES.items() if package.__name__ in _LISTED else ()
    homes = {
        name: f"{package.__name__}.{module}" for module, each in listed for name in each.split()
    }
    for name in package.__all__:
        home = homes.get(name) or _home(name, getattr(package, name))
        names.use(home, f"{name} as {name}")
    return "\n\n".join([f'"""{inspect.getdoc(package)}\n"""', *names.lines()])


def _home(name: str, found: AnyValue) -> str:
    """Return the module that has an object under a name, or the package of a module."""
    if inspect.ismodule(found):
        return found.__name__.rpartition(".")[0]
    if found.__module__ != "types":
        return str(found.__module__)
    # A union of types does not tell where it was made.
    inner = ((k, module) for k, module in sys.modules.items() if k.startswith("serde.relay.ir."))
    return next(k for k, module in inner if name in getattr(module, "__all__", ()))


def _package(builders: dict[str, Callable[..., AnyValue]], inner: list[str]) -> str:
    names = Names()
    for name in (*relay.__all__, *relay.LATER):
        found = getattr(relay, name)
        names.use(_home(name, found), f"{name} as {name}")
    for other in inner:
        names.use(PACKAGE, f"{other} as {other}")
    body = [_stub(name, builder, names) for name, builder in sorted(builders.items())]
    return "\n\n".join([f'"""{inspect.getdoc(relay)}\n"""', *names.lines(), *body])


def _stub(path: str, builder: Callable[..., AnyValue], names: Names) -> str:
    """Return the stub of one builder."""
    name = path.rpartition(".")[2]
    doc = (inspect.getdoc(builder) or "").partition("\n\n")[0]
    quote = 'r"""' if "\\" in doc else '"""'
    body = f'\n    {quote}{doc}{chr(10) if chr(10) in doc else ""}"""' if doc else " ..."
    variants = _overloads(builder)
    if not variants:
        return f"def {name}{_signature(path, builder, names)}:{body}"
    mark = f"@{names.use('typing', 'overload')}\n"
    return "\n".join(f"{mark}def {name}{_signature(path, each, names)}:{body}" for each in variants)


def _overloads(builder: Callable[..., AnyValue]) -> list[Callable[..., AnyValue]]:
    """Return the overloads that stand above a builder, which Python forgets before 3.11."""
    found: list[Callable[..., AnyValue]] = []
    for node in ast.parse(_source(builder.__globals__["__file__"])).body:
        if not isinstance(node, ast.FunctionDef) or node.name != builder.__name__:
            continue
        if [ast.unparse(each) for each in node.decorator_list] == ["overload"]:
            node.decorator_list.clear()
            scope = dict(builder.__globals__)
            exec(f"from __future__ import annotations\n{ast.unparse(node)}", scope)
            found.append(scope[node.name])
    return found


@cache
def _source(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _signature(path: str, builder: Callable[..., AnyValue], names: Names) -> str:
    """Return the parameters and the result of a builder, or of one of its overloads."""
    definition = all_ops().get(path.replace("qnn.op.", "qnn.", 1))
    hints = type_hints(builder)
    parameters = []
    signature = inspect.signature(builder)
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, AnyValue)
        if hint is not AnyValue:
            text = names.text(hint)
        else:
            by_hand = parameter.name in hints
            text = _declared(definition, path, parameter.name, names, by_hand=by_hand)
        if parameter.default is None and "None" not in text and text != "AnyValue":
            text += " | None"
        shown = parameter.replace(annotation=_Text(text))
        if parameter.default is not inspect.Parameter.empty:
            shown = shown.replace(default=_Text(default_text(parameter.default)))
        parameters.append(shown)
    result = hints.get("return", AnyValue)
    if result is not AnyValue or definition is None:
        text = names.text(result)
    else:
        kind = "Expr" if definition.fields is None else "TupleWrapper"
        text = names.use(Expr.__module__, kind)
    return str(signature.replace(parameters=parameters, return_annotation=_Text(text)))


class _Text:
    """What a signature shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _declared(
    definition: OpDef | None, path: str, name: str, names: Names, *, by_hand: bool
) -> str:
    """Return the type of a parameter that its builder does not say, by the declaration.

    A builder written by hand, or one that converts what is given, makes a constant of a number
    where the operator has an operand; and what is no attribute of the operator's dynamic form can
    be an expression.
    """
    if definition is not None:  # A parameter may be called otherwise than in the schema.
        renamed = {shown: schema for schema, shown in definition.forms.names.items()}
        name = renamed.get(name, name)
    converted = definition is not None and name in definition.forms.convert
    if by_hand and name.endswith("dtype"):
        return names.use(*_DTYPE)
    for operand in () if definition is None else definition.operands:
        if operand.name == name:
            text = _operand(operand, names)
            if not (by_hand or converted) or operand.variadic:
                return text
            return f"{text} | float | {names.use('collections.abc', 'Sequence')}[float]"
    if definition is None or name not in definition.attributes:
        return names.text(AnyValue)
    accepted = _accepted(definition.attributes[name].hint, names)
    dynamic = all_ops().get(f"dyn.{path}")
    if by_hand and dynamic is not None and name not in dynamic.attributes:
        accepted.insert(0, names.use(Expr.__module__, "Expr"))
    return " | ".join(dict.fromkeys(accepted))


def _operand(operand: AnyValue, names: Names) -> str:
    expr = names.use(Expr.__module__, "Expr")
    if operand.variadic:
        sequence = names.use("collections.abc", "Sequence")
        wrapper = names.use(Expr.__module__, "TupleWrapper")
        return f"{expr} | {wrapper} | {sequence}[{expr}]"
    return f"{expr} | None" if operand.optional else expr


def _accepted(hint: AnyValue, names: Names) -> list[str]:
    """Return the types of what an attribute is made of, which are more than what it is."""
    members = flattened(hint)
    if SymDim in members:
        rest = [each for each in members if each is types.NoneType]
        return [names.use("serde.relay.ir.dims", "DimLike"), *(names.text(each) for each in rest)]
    if len(members) > 1:
        return list(dict.fromkeys(text for each in members for text in _accepted(each, names)))
    if hint is np.dtype or typing.get_origin(hint) is np.dtype:
        return [names.use(*_DTYPE)]
    if typing.get_origin(hint) is tuple:
        args = typing.get_args(hint)
        inner = [text for each in args if each is not Ellipsis for text in _accepted(each, names)]
        inner = list(dict.fromkeys(inner))
        sequence = f"{names.use('collections.abc', 'Sequence')}[{' | '.join(inner)}]"
        alone = [text for text in inner if "Sequence" not in text]
        return [*alone, sequence] if Ellipsis in args else [sequence]
    return [names.text(hint)]
