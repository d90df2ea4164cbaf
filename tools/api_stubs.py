"""The stub of ``serde``: its functions with every option, an overload for each format."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any as AnyValue
from typing import Literal

from annotations import Names, default_text, flattened, type_hints

from serde.bridge import FORMATS, get_bridge
from serde.conversion.signature import (
    FormatName,
    OptionGroup,
    PublicFunction,
    describe_fields,
    option_default,
)
from serde.conversion.steps import PathLike

__all__ = ["api_stubs"]

serde: AnyValue = importlib.import_module("serde")


@dataclass(frozen=True)
class Variant:
    """One overload of a function.

    Attributes:
        types: Types of parameters that differ from the function's own.
        groups: Options that it takes; None for any.
        result: Text of the result, or None for the function's own.
        full: Whether its documentation is all there is.
    """

    types: Mapping[str, AnyValue]
    groups: Sequence[OptionGroup] | None
    result: str | None = None
    full: bool = False


def api_stubs() -> dict[str, str]:
    """Return the text of the stub by its path below the repository."""
    names = Names()
    body = []
    for name in serde.__all__:
        found = getattr(serde, name)
        if isinstance(found, PublicFunction):
            body.append(_function(found, names))
        elif inspect.ismodule(found):
            names.use("serde", f"{name} as {name}")
        elif name == "__version__":
            names.use("serde._version", f"{name} as {name}")
        else:
            names.use(found.__module__, f"{name} as {name}")
    body.append(f"__all__ = {serde.__all__!r}")
    title = f'"""{inspect.getdoc(serde)}"""'
    return {"serde/__init__.pyi": "\n\n".join([title, *names.lines(), *body])}


def _function(function: PublicFunction, names: Names) -> str:
    variants = list(_variants(function, names))
    mark = f"@{names.use('typing', 'overload')}\n" if len(variants) > 1 else ""
    return "\n".join(f"{mark}{_definition(function, each, names)}" for each in variants)


def _variants(function: PublicFunction, names: Names) -> Iterator[Variant]:
    """Yield the overloads: one for each format, two where a path changes the result.

    Then what holds without a format, for another package's, and for a text that may be any: that
    takes no format's options, or it would take a known format's with those of another.
    """
    groups = [group for group in function.groups() if group.format in ("", *FORMATS)]
    own = inspect.signature(function.__wrapped__).parameters
    to_file = "path" in own
    chosen = function.writes if function.writes in own else function.reads
    direction = "written" if chosen == function.writes else "read"
    only = (function.writes or "").partition("=")[2]
    fixed = _native(only, names) if only and _says_nothing(function) else None
    formats = [group.format for group in groups if group.format and group.direction == direction]
    for name in formats if chosen in own else ():
        kept = [g for g in groups if g.direction != direction or g.format in ("", name)]
        kinds: dict[str, AnyValue] = {str(chosen): Literal[name]}
        if not to_file:
            yield Variant(kinds, kept, fixed)
            continue
        yield Variant({**kinds, "path": None}, kept, _native(name, names))
        yield Variant({**kinds, "path": PathLike}, kept, names.text(Path))
    if to_file:
        kinds = {str(chosen): None, "path": PathLike}
        yield Variant(kinds, groups, names.text(Path), full=True)
    else:
        yield Variant({str(chosen): None} if chosen in own else {}, groups, fixed, full=True)
    for name in own:
        if name == "format" or name.endswith("_format"):
            yield Variant({name: FormatName}, None, fixed)
    if chosen in own:
        common = [g for g in groups if g.direction != direction or not g.format]
        yield Variant({str(chosen): str}, common, fixed)


def _says_nothing(function: PublicFunction) -> bool:
    return "AnyValue" in str(function.__annotations__["return"])


def _native(name: str, names: Names) -> str:
    """Return the text of what users get of a format: what its bridge says :meth:`complete` gives.

    Packages that it names need not be installed, so it is read from the source.
    """
    complete = type(get_bridge(name)).complete
    return _written(str(complete.__annotations__["return"]), complete.__module__, names)


def _written(text: str, module: str, names: Names) -> str:
    """Return the text of an annotation in a module, after importing what the module imports."""
    imported = {
        alias.asname or alias.name.partition(".")[0]: (node, alias.name)
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module])))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for word in re.findall(r"(?<![.\w])\w+", text):
        if word in imported:
            node, original = imported[word]
            if isinstance(node, ast.Import):
                names.import_module(original)
            elif node.module is not None:
                names.use(node.module, original)
    return text


def _definition(function: PublicFunction, variant: Variant, names: Names) -> str:
    wrapped = function.__wrapped__
    hints = _hints(wrapped)
    signature = inspect.signature(wrapped)
    parts = []
    known = set(signature.parameters)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        hint = variant.types.get(parameter.name, hints[parameter.name])
        # What tells overloads apart must be given, unless it is that it is not.
        required = parameter.default is parameter.empty or variant.types.get(parameter.name)
        shown = "" if required else f" = {default_text(parameter.default)}"
        parts.append(f"{parameter.name}: {names.text(hint)}{shown}")
    for group in variant.groups or ():
        options = typing.get_type_hints(group.cls)
        for item in dataclasses.fields(group.cls):
            if item.name not in known:
                known.add(item.name)
                kind = names.text(item.metadata.get("accepts", _accepted(options[item.name])))
                parts.append(f"{item.name}: {kind} = {default_text(option_default(item))}")
    if variant.groups is None:
        parts.append(f"**options: {names.text(AnyValue)}")
    text, result = variant.result, hints["return"]
    if text is None and isinstance(result, str):
        text = _written(result, wrapped.__module__, names)
    elif text is None:
        text = names.text(result)
    doc = _doc(function, variant)
    return f'def {function.__name__}({", ".join(parts)}) -> {text}:\n    """{doc}"""'


def _hints(wrapped: AnyValue) -> dict[str, AnyValue]:
    """Return the types of a function; a text where one names a package that may not be there."""
    try:
        return type_hints(wrapped)
    except NameError:
        result = wrapped.__annotations__.pop("return")
        try:
            return {**type_hints(wrapped), "return": result}
        finally:
            wrapped.__annotations__["return"] = result


def _doc(function: PublicFunction, variant: Variant) -> str:
    """Return the documentation of an overload: the whole, or what only this format has."""
    if variant.full:
        text = function.__doc__
    else:
        text = (inspect.getdoc(function.__wrapped__) or "").partition("\n\n")[0]
        kinds = [t for t in variant.types.values() if typing.get_origin(t) is Literal]
        only = {name for kind in kinds for name in typing.get_args(kind)}
        direction = "written" if function.writes in variant.types else "read"
        for group in variant.groups or ():
            if group.format in only and group.direction == direction:
                inherited = {f.name for base in group.cls.__mro__[1:-1] for f in _fields(base)}
                lines = list(describe_fields(group.cls, inherited))
                if lines:
                    text += "\n\n" + "\n".join([f"Options of {group.title}:", *lines]) + "\n"
    return text.replace("\\", "\\\\").replace("\n", "\n    ")


def _fields(cls: type[AnyValue]) -> tuple[dataclasses.Field[AnyValue], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def _accepted(hint: AnyValue) -> AnyValue:
    """Return the type of what an option is made of, which is more than what it becomes."""
    members = flattened(hint)
    if len(members) > 1:
        return reduce(or_, (_accepted(each) for each in members))
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is frozenset:
        return types.GenericAlias(Iterable, (args[0],))
    if origin is tuple and args[-1] is Ellipsis:
        return types.GenericAlias(Sequence, (_accepted(args[0]),))
    return hint
