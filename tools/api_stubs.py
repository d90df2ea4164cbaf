"""The stub of ``serde``: its functions with every option, an overload for each format."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any as AnyValue, Final, Literal

from annotations import Names, default_text, flattened, type_hints

from serde.bridge.formats import FORMATS, get_bridge
from serde.bridge.options import ExportOptions, ImportOptions
from serde.conversion.signature import (
    FormatName,
    OptionGroup,
    PublicFunction,
    attribute_texts,
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
    """

    types: Mapping[str, AnyValue]
    groups: Sequence[OptionGroup] | None
    result: str | None = None


def api_stubs() -> dict[str, str]:
    """Return the text of the stub by its path below the repository."""
    names = Names()
    functions: list[PublicFunction] = []
    for name in serde.__all__:
        found = getattr(serde, name)
        if isinstance(found, PublicFunction):
            functions.append(found)
        elif inspect.ismodule(found):
            names.use(found.__name__.rpartition(".")[0], f"{name} as {name}")
        elif name == "__version__":
            names.use("serde._version", f"{name} as {name}")
        else:
            names.use(found.__module__, f"{name} as {name}")
    aliases = Aliases(names)
    overloads = [
        _overload(function, variant, aliases)
        for function in functions
        for variant in _variants(function, names)
    ]
    parts = _parts(overloads)
    joined = Joined(overloads, parts, names)
    several = Counter(each.function for each in overloads)
    mark = f"@{names.use('typing', 'overload')}\n"
    definitions = [
        (mark if several[each.function] > 1 else "") + _definition(each, joined, names)
        for each in overloads
    ]
    body = [
        aliases.lines(),
        *(each.text(names) for each in dict.fromkeys(parts.values())),
        joined.lines(),
        *definitions,
        f"__all__: {names.text(list[str])}",
    ]
    title = f'"""{inspect.getdoc(serde)}"""'
    return {"serde/__init__.pyi": "\n\n".join([title, *names.lines(), *body])}


class Aliases:
    """Names of the types that are too long to be written at each parameter.

    Args:
        names: The names that the stub imports.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self._aliases: dict[str, str] = {names.text(PathLike): "_Path"}

    def text(self, parameter: str, hint: AnyValue) -> str:
        """Return the text of a parameter's type, or what that is called here."""
        whole = self.names.text(hint)
        if len(whole) < _LONG or whole in self._aliases:
            return self._aliases.get(whole, whole)
        alias = "_" + _capitalized(parameter)
        number = sum(each.rstrip("0123456789") == alias for each in self._aliases.values())
        return self._aliases.setdefault(whole, f"{alias}{number + 1}" if number else alias)

    def lines(self) -> str:
        """Return the definitions."""
        mark = self.names.use("typing", "TypeAlias")
        return "\n".join(f"{alias}: {mark} = {whole}" for whole, alias in self._aliases.items())


_LONG: Final = 40


def _capitalized(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _stem(function: str) -> str:
    """Return what the classes of a function's options begin with."""
    return _capitalized(function.removesuffix("_model").removeprefix("import_to_"))


@dataclass(frozen=True)
class Option:
    """A keyword argument that may be left out.

    Attributes:
        name: What it is called.
        kind: Text of its type.
        home: Whose it is, of which options are described together.
        doc: What it does, empty where the function says it.
    """

    name: str
    kind: str
    home: str
    doc: str = field(default="", compare=False)


@dataclass(frozen=True)
class Overload:
    """One overload, whose optional keyword arguments stand apart from the others.

    Editors find the documentation where the function itself is.

    Attributes:
        function: The function's name.
        plain: Texts of the parameters that are written out.
        key: The parameter that must be a text, and which: what tells overloads apart.
        options: The others; None where it takes any.
        result: Text of the result.
    """

    function: str
    plain: tuple[str, ...]
    key: tuple[str, str] | None
    options: tuple[Option, ...] | None
    result: str


@dataclass(frozen=True)
class Part:
    """Options that all stand in the same overloads: a ``TypedDict``.

    Attributes:
        name: What the class is called.
        options: The options.
    """

    name: str
    options: tuple[Option, ...]

    def text(self, names: Names) -> str:
        """Return the class."""
        base = names.use("typing", "TypedDict")
        names.use("typing_extensions", "Unpack")
        lines = [
            f"{each.name}: {each.kind}" + (f'\n    """{each.doc}"""' if each.doc else "")
            for each in self.options
        ]
        return f"class {self.name}({base}, total=False):\n    " + "\n    ".join(lines)


def _parts(overloads: Sequence[Overload]) -> dict[Option, Part]:
    """Return the part of every option: those that are always taken together are one."""
    taken: dict[Option, list[int]] = {}
    for index, overload in enumerate(overloads):
        for option in overload.options or ():
            taken.setdefault(option, []).append(index)
    groups: dict[tuple[str, tuple[int, ...]], list[Option]] = {}
    for option, where in taken.items():
        groups.setdefault((option.home, tuple(where)), []).append(option)
    count: Counter[str] = Counter()
    made: dict[tuple[tuple[str, str, str], ...], Part] = {}
    found: dict[Option, Part] = {}
    for (home, _), options in groups.items():
        same = tuple((each.name, each.kind, each.doc) for each in options)
        if same not in made:
            count[home] += 1
            number = str(count[home]) if count[home] > 1 else ""
            made[same] = Part(f"_{home}{number}", tuple(options))
        found.update(dict.fromkeys(options, made[same]))
    return found


class Joined:
    """The classes of options that come from several parts; what functions share stands once.

    Args:
        overloads: All there are.
        parts: The part of every option.
        names: The names that the stub imports.
    """

    def __init__(
        self, overloads: Sequence[Overload], parts: Mapping[Option, Part], names: Names
    ) -> None:
        self._parts = parts
        self._names = names
        self._generics: dict[str, str] = {}
        self._known: dict[tuple[str, ...], str] = {}
        self._shared: dict[str, tuple[str, ...]] = {}
        for each in overloads:
            if each.key is not None:
                taken = self._taken(each)
                shared = self._shared.get(each.function, taken)
                self._shared[each.function] = tuple(x for x in shared if x in taken)

    def name(self, overload: Overload) -> str:
        """Return what the class of an overload's options is called."""
        taken, shared = self._taken(overload), self._shared.get(overload.function, ())
        own = "_" + _stem(overload.function)
        bases = [self._join(shared, own)] if shared and {*shared} <= {*taken} else []
        bases += [each for each in taken if not bases or each not in shared]
        if overload.key is None:
            return self._join(bases, f"{own}Any")
        parameter, value = overload.key
        format_ = value.capitalize()
        key = [self._generic(parameter, value), *bases[1:]]
        bases[1:] = [self._join(key, f"_{_capitalized(parameter)}{format_}")]
        return self._join(bases, own + format_)

    def _taken(self, overload: Overload) -> tuple[str, ...]:
        """Return the classes of an overload's options, one for those of all formats."""
        families: dict[str, list[str]] = {}
        for each in dict.fromkeys(self._parts[x].name for x in overload.options or ()):
            family = next((f"{x}Any" for x in _FAMILIES if re.match(rf"{x}[A-Z]", each)), each)
            families.setdefault(family, []).append(each)
        found: list[str] = []
        for name, members in families.items():
            found += [self._join(members, name)] if len(members) > _FEW else members
        return tuple(found)

    def _generic(self, parameter: str, value: str) -> str:
        name = "_" + _capitalized(parameter)
        self._generics[parameter] = name
        return f"{name}[{self._names.use('typing', 'Literal')}[{value!r}]]"

    def _join(self, bases: Sequence[str], name: str) -> str:
        if len(bases) < 2:
            return "".join(bases)
        taken = sum(each.rstrip("0123456789") == name for each in self._known.values())
        return self._known.setdefault(tuple(bases), f"{name}{taken + 1}" if taken else name)

    def lines(self) -> str:
        """Return the classes."""
        base = f"{self._names.use('typing', 'TypedDict')}, {self._names.use('typing', 'Generic')}"
        keys = [f"{self._names.use('typing', 'TypeVar')}", *self._generics.items()]
        made = [f"class {n}({', '.join(b)}): ..." for b, n in self._known.items()]
        texts = [f"class {name}({base}[_T]):\n    {key}: _T" for key, name in keys[1:]]
        return "\n".join([f'_T = {keys[0]}("_T")', *texts, *made])


_FAMILIES: Final = ("_Reading", "_Writing")
_FEW: Final = 3


def _definition(overload: Overload, joined: Joined, names: Names) -> str:
    rest = [f"**options: {names.use('typing', 'Any')}"] if overload.options is None else []
    if overload.options:
        kind = joined.name(overload)
        rest = [f"**options: {names.use('typing_extensions', 'Unpack')}[{kind}]"]
    head = ", ".join([*overload.plain, *rest])
    return f"def {overload.function}({head}) -> {overload.result}: ..."


def _variants(function: PublicFunction, names: Names) -> Iterator[Variant]:
    """Yield the overloads: one for each format, two where a path changes the result.

    Then what holds without a format, for another package's, and for a text that may be any: that
    takes no format's options, or it would take a known format's with those of another.
    """
    groups = [group for group in function.groups() if group.format in ("", *FORMATS)]
    own = inspect.signature(function.__wrapped__).parameters
    to_file = "path" in own and function.writes in own
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
        yield Variant(kinds, groups, names.text(Path))
    else:
        yield Variant({str(chosen): None} if chosen in own else {}, groups, fixed)
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


def _overload(function: PublicFunction, variant: Variant, aliases: Aliases) -> Overload:
    names = aliases.names
    wrapped = function.__wrapped__
    hints = _hints(wrapped)
    signature = inspect.signature(wrapped)
    plain: list[str] = []
    key = None
    options: dict[str, Option] = {}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        name = parameter.name
        hint = variant.types.get(name, hints[name])
        if typing.get_origin(hint) is Literal and name in variant.types:
            key = (name, str(typing.get_args(hint)[0]))
            continue
        kind = "object" if hint is AnyValue else aliases.text(name, hint)
        # What tells overloads apart must be given, unless it is that it is not.
        required = parameter.default is parameter.empty or variant.types.get(name)
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        if keyword and not required and name not in variant.types:
            options[name] = Option(name, kind, _stem(function.__name__) + "Own")
            continue
        if keyword and "*" not in plain:
            plain.append("*")
        default = "" if required else f" = {default_text(parameter.default)}"
        plain.append(f"{name}: {kind}{default}")
    for group in variant.groups or ():
        for item in dataclasses.fields(group.cls):
            if item.name not in signature.parameters and item.name not in options:
                options[item.name] = _option(group, item, aliases)
    shown, result = variant.result, hints["return"]
    if shown is None and isinstance(result, str):
        shown = _written(result, wrapped.__module__, names)
    elif shown is None:
        shown = names.text(result)
    taken = None if variant.groups is None else tuple(options.values())
    return Overload(function.__name__, tuple(plain), key, taken, shown)


def _option(group: OptionGroup, item: dataclasses.Field[AnyValue], aliases: Aliases) -> Option:
    hint = typing.get_type_hints(group.cls)[item.name]
    kind = aliases.text(item.name, item.metadata.get("accepts", _accepted(hint)))
    doc = _described(attribute_texts(group.cls).get(item.name, ""), item)
    return Option(item.name, kind, _home(group, item.name), doc)


def _described(text: str, item: dataclasses.Field[AnyValue]) -> str:
    """Return the documentation of an option, with what it is where it is left out."""
    whole = f"{text.rstrip('.')} (default {option_default(item)!r})."
    return textwrap.fill(whole, 94, subsequent_indent="    ").replace("\\", "\\\\")


def _home(group: OptionGroup, name: str) -> str:
    """Return whose an option is: a format's, or every format's that is read or written."""
    if group.direction == "":
        return "Passes"
    of_all = [{x.name for x in dataclasses.fields(y)} for y in (ImportOptions, ExportOptions)]
    if all(name in names for names in of_all):
        return "Every"
    read = group.direction == "read"
    shared = name in of_all[0 if read else 1]
    return ("Reading" if read else "Writing") + ("" if shared else group.format.capitalize())


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
