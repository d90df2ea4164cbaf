"""What a runtime or a vendor's toolchain takes: its profile.

A profile is a set of operator names, the name of one in ``serde/onnx/profiles``, or a TOML or JSON
document::

    name = "a chip"            # for people
    source = "its handbook, 3.1"             # where the facts come from, and of when they are
    date = "2026-01-31"
    max_opset = 13             # newest operator set that it reads
    dynamic_shapes = false     # whether dimensions may be other than numbers; true if left out
    int64 = false              # whether to keep integers of 64 bits that 32 hold; true if left out
    largest_constant = 1048576 # bytes of the largest weight
    domains = ["com.microsoft"]              # further domains that it has all operators of
    sets.floats = ["float16", "float32"]     # dtypes by a name that may stand for them below
    dtypes = ["float32"]       # of every operand whose dtype its operator leaves open
    max_rank = 4               # of every tensor
    operators = ["Relu", "Add"]

    [operators.Conv]           # or a table for each operator, in which each key may be left out
    versions = [11]            # versions at which the operator changed
    dtypes = "floats"                        # or {T = [...]} for each variable of its types
    ranks = [4]                # of the first input; or {X = [4], W = [4]} for inputs and outputs
    max_rank = 4
    constant = ["W", "B"]      # inputs that must be weights or constants, where they are given
    max_inputs = 3

    [operators.Conv.attributes]
    group = [1]                             # the values that it may have
    dilations = {min = 1, max = 2}          # bounds of a number, or of all of a list
    auto_pad = ["NOTSET"]

    [operators."com.acme::Scale"]            # an operator of another domain, which models keep;
    constant = ["1"]                         # its inputs and outputs are called by their numbers

    [composites."com.acme::ConvRelu"]        # what becomes an operator of the toolchain's own
    pattern = "fn (%x, %w) { nn.relu(nn.conv2d(%x, %w)) }"
    attributes = ["strides", "padding"]      # those that may be other than the pattern says
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any as AnyValue, Final

from serde.core import dataclass, field, parse_json, require
from serde.core.limits import MAX_MANIFEST_BYTES, MAX_RANK
from serde.errors import OptionError
from serde.onnx.custom_operators import PLAIN, Composite, custom_form, is_custom
from serde.onnx.elements import CODES
from serde.onnx.versions import CHANGES, Change

__all__ = ["Bounds", "OperatorRule", "SupportedOperators", "profile_names", "read_supported"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a number; None where there is no bound."""

    least: float | None = None
    greatest: float | None = None

    def holds(self, value: AnyValue) -> bool:
        """Whether a number, or every number of a list, is within."""
        numbers = value if isinstance(value, tuple) else (value,)
        return all(
            isinstance(each, (int, float))
            and (self.least is None or each >= self.least)
            and (self.greatest is None or each <= self.greatest)
            for each in numbers
        )


@dataclass(frozen=True, slots=True)
class OperatorRule:
    """What a toolchain takes of one operator; None is no constraint.

    Attributes:
        versions: Versions at which the operator changed.
        dtypes: dtypes by variable of the operator's types; under "" those of all of them.
        ranks: Ranks by name of an input or output; under "" those of the first input.
        max_rank: Of every input and output.
        constant: Names of inputs that must be constants.
        max_inputs: Most inputs.
        attributes: Allowed values by attribute.
    """

    versions: frozenset[int] | None = None
    dtypes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ranks: Mapping[str, frozenset[int]] = field(default_factory=dict)
    max_rank: int | None = None
    constant: frozenset[str] = frozenset()
    max_inputs: int | None = None
    attributes: Mapping[str, tuple[AnyValue, ...] | Bounds] = field(default_factory=dict)

    @property
    def reads_types(self) -> bool:
        """Whether dtypes or ranks matter."""
        return bool(self.dtypes or self.ranks or self.max_rank is not None)


@dataclass(frozen=True, slots=True)
class SupportedOperators:
    """What a toolchain takes.

    Attributes:
        operators: A rule for each operator; None where every operator may be written.
        name: What the toolchain is called.
        max_opset: Newest operator set that it reads.
        dynamic_shapes: Whether dimensions may be other than numbers.
        int64: Whether integers of 64 bits stay that 32 hold, too.
        largest_constant: Most bytes of a weight.
        domains: Domains besides ONNX's own of which it has all operators.
        composites: What becomes operators of its own.
        source: Where the facts come from.
        date: Of when they are.
    """

    operators: Mapping[str, OperatorRule] | None = None
    name: str = ""
    max_opset: int | None = None
    dynamic_shapes: bool = True
    int64: bool = True
    largest_constant: int | None = None
    domains: frozenset[str] = frozenset()
    composites: tuple[Composite, ...] = ()
    source: str = ""
    date: str = ""

    def custom_rule(self, name: str) -> OperatorRule | None:
        """Return what is taken of an operator of another domain; None where it is not."""
        if self.operators is not None and name in self.operators:
            return self.operators[name]
        whole = name.partition("::")[0] in self.domains
        return OperatorRule() if whole or any(name == c.name for c in self.composites) else None

    def require_opset(self, opset: int) -> None:
        """Refuse an operator set that the toolchain does not read.

        Raises:
            OptionError: It is newer than `max_opset`.
        """
        if self.max_opset is not None and opset > self.max_opset:
            who = self.name or "the toolchain"
            raise OptionError(f"opset {opset}: {who} reads at most {self.max_opset}")


EVERYTHING: Final = SupportedOperators()


def read_supported(source: AnyValue) -> SupportedOperators:
    """Return what a toolchain takes, checked.

    Args:
        source: None for all that can be written; names of operators; a mapping in the form of
            the document above; the path of a TOML or JSON file with one; or one of
            :func:`profile_names`.

    Raises:
        OptionError: It has a mistake; the message says where and what was expected.
        FormatError: The file cannot be read.
    """
    if source is None or isinstance(source, SupportedOperators):
        return source or EVERYTHING
    if isinstance(source, str) and source in profile_names():
        source = _PROFILES / f"{source}.toml"
    if isinstance(source, (str, os.PathLike)):
        return _parse(_read_file(Path(source)), f"{os.fspath(source)}: ")
    if isinstance(source, Mapping):
        return _parse(source, "supported: ")
    if isinstance(source, Collection):
        return _parse({"operators": list(source)}, "supported: ")
    raise OptionError(f"supported: expected names, a mapping or a path, found {_kind(source)}")


_PROFILES: Final = Path(__file__).parent / "profiles"


def profile_names() -> tuple[str, ...]:
    """Return the runtimes of which serde knows what they take."""
    return tuple(sorted(path.stem for path in _PROFILES.glob("*.toml")))


def _read_file(path: Path) -> AnyValue:
    if path.suffix not in (".toml", ".json"):
        known = ", ".join(profile_names())
        raise OptionError(f"{path}: expected a name ending in .toml or .json, or one of {known}")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    if len(data) > MAX_MANIFEST_BYTES:
        raise OptionError(f"{path}: expected at most {MAX_MANIFEST_BYTES} bytes")
    try:
        text = data.decode()
        if path.suffix == ".json":
            return parse_json(text)
        return _toml().loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{path}: {error}") from None


def _toml() -> AnyValue:
    """Return what reads TOML: part of Python from 3.11 on."""
    try:
        import tomllib
    except ImportError:
        return require("tomli")
    return tomllib


def _kind(value: object) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def _parse(document: AnyValue, where: str) -> SupportedOperators:
    if not isinstance(document, Mapping):
        raise OptionError(f"{where}expected a table, found {_kind(document)}")
    _check_keys(document, _TOP_KEYS, where)
    composites = _parse_composites(document, where)
    if "operators" not in document and not composites:
        raise OptionError(f"{where}expected a key operators")
    given = _typed(document, "sets", Mapping, "a table", where) or {}
    sets = {name: _parse_list(given, name, f"{where}sets: ", _check_dtype) for name in given}
    common = OperatorRule(
        dtypes=_parse_dtypes(document, where, sets),
        max_rank=_parse_count(document, "max_rank", where),
    )
    known = "operators" in document
    rules = _parse_operators(document["operators"], common, sets, where) if known else {}

    def text(key: str) -> str:
        return _typed(document, key, str, "a text", where) or ""

    def unless_false(key: str) -> bool:
        return _typed(document, key, bool, "true or false", where) is not False

    return SupportedOperators(
        operators=MappingProxyType(rules) if known else None,
        max_opset=_parse_count(document, "max_opset", where),
        largest_constant=_parse_count(document, "largest_constant", where),
        domains=_parse_list(document, "domains", where, _check_text) or frozenset(),
        composites=composites,
        name=text("name"),
        source=text("source"),
        date=text("date"),
        dynamic_shapes=unless_false("dynamic_shapes"),
        int64=unless_false("int64"),
    )


Sets = Mapping[str, AnyValue]
"""dtypes by the names that stand for them."""

_TOP_KEYS: Final = (
    "composites", "date", "domains", "dtypes", "dynamic_shapes", "int64", "largest_constant",
    "max_opset", "max_rank", "name", "operators", "sets", "source",
)  # fmt: skip
_RULE_KEYS: Final = (
    "attributes", "constant", "dtypes", "max_inputs", "max_rank", "ranks", "versions",
)  # fmt: skip


def _check_keys(table: Mapping[str, AnyValue], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise OptionError(f"{where}unknown key {key!r}; known: {', '.join(sorted(known))}")


def _typed(
    table: Mapping[str, AnyValue], key: str, kind: type, expected: str, where: str
) -> AnyValue:
    value = table.get(key)
    if value is not None and not isinstance(value, kind):
        raise OptionError(f"{where}{key}: expected {expected}, found {_kind(value)}")
    return value


def _parse_count(table: Mapping[str, AnyValue], key: str, where: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise OptionError(f"{where}{key}: expected a number from 0 on, found {_kind(value)}")
    return value


def _parse_operators(
    source: AnyValue, common: OperatorRule, sets: Sets, where: str
) -> dict[str, OperatorRule]:
    if isinstance(source, Mapping):
        tables = source
    elif isinstance(source, (list, tuple, set, frozenset)):
        tables = {name: True for name in source if _schemas(name, where)}
    else:
        raise OptionError(f"{where}operators: expected names or tables, found {_kind(source)}")
    found = {}
    for name, table in tables.items():
        schemas = _schemas(name, where)
        at = f"{where}{name}: "
        if table is True:
            table = {}
        if not isinstance(table, Mapping):
            raise OptionError(f"{at}expected a table or true, found {_kind(table)}")
        found[name] = _parse_rule(name, table, schemas, common, sets, at)
    return found


def _parse_composites(document: Mapping[str, AnyValue], where: str) -> tuple[Composite, ...]:
    found = []
    for name, table in (_typed(document, "composites", Mapping, "a table", where) or {}).items():
        at = f"{where}composites: {name}: "
        if not is_custom(name):
            raise OptionError(f"{at}expected an operator of a domain such as com.acme::Scale")
        if not isinstance(table, Mapping):
            raise OptionError(f"{at}expected a table, found {_kind(table)}")
        _check_keys(table, ("attributes", "pattern"), at)
        pattern, told = table.get("pattern"), table.get("attributes")
        if isinstance(pattern, str):
            told = tuple(sorted(_parse_list(table, "attributes", at, _check_text) or ()))
        elif not hasattr(pattern, "has_attr") or not (told is None or callable(told)):
            raise OptionError(f"{at}expected Relay's text, or a pattern and a function of matches")
        found.append(Composite(name, pattern, told))
    return tuple(found)


def _schemas(name: AnyValue, where: str) -> list[AnyValue]:
    """Return the forms that an operator has had."""
    if is_custom(name):
        return [custom_form(name)]
    if not isinstance(name, str) or name not in CHANGES:
        folded = {each.casefold(): each for each in CHANGES}
        near = [folded[each] for each in difflib.get_close_matches(str(name).casefold(), folded, 1)]
        colons = "::".join(re.split(r"\b:\b", str(name)))
        near = [colons.removeprefix(f"{PLAIN}::")] if "::" in colons else near
        hint = f"; meant {near[0]}?" if near else ""
        raise OptionError(f"{where}{name!r} is no operator of ONNX{hint}")
    import onnx

    found = []
    for version, change in sorted(CHANGES[name].items()):
        if change is not Change.REMOVED and version <= onnx.defs.onnx_opset_version():
            found.append(onnx.defs.get_schema(name, version, ""))
    return found


def _parse_rule(
    name: str,
    table: Mapping[str, AnyValue],
    schemas: list[AnyValue],
    common: OperatorRule,
    sets: Sets,
    where: str,
) -> OperatorRule:
    _check_keys(table, _RULE_KEYS, where)
    variables = {each.type_param_str for schema in schemas for each in schema.type_constraints}
    inputs = {each.name for schema in schemas for each in schema.inputs}
    formals = inputs | {each.name for schema in schemas for each in schema.outputs}
    constant = _parse_list(table, "constant", where, _check_name(inputs, "input"))
    max_rank = _parse_count(table, "max_rank", where)
    return OperatorRule(
        versions=_parse_list(table, "versions", where, _check_version(name)),
        dtypes=_parse_dtypes(table, where, sets, variables) or common.dtypes,
        ranks=_parse_sets(table, "ranks", where, formals, _check_rank),
        max_rank=common.max_rank if max_rank is None else max_rank,
        constant=frozenset() if constant is None else constant,
        max_inputs=_parse_count(table, "max_inputs", where),
        attributes=_parse_attributes(table, schemas, where),
    )


Check = Callable[[AnyValue], str | None]
"""Says what is expected instead of a value, None where it may be."""


def _parse_list(
    table: Mapping[str, AnyValue], key: str, where: str, check: Check
) -> frozenset[AnyValue] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, (list, tuple, set, frozenset)) or not value:
        raise OptionError(f"{where}{key}: expected a list that is not empty, found {_kind(value)}")
    for item in value:
        expected = check(item)
        if expected is not None:
            raise OptionError(f"{where}{key}: expected {expected}, found {_kind(item)}")
    return frozenset(value)


def _parse_sets(
    table: Mapping[str, AnyValue], key: str, where: str, names: Collection[str], check: Check
) -> dict[str, frozenset[AnyValue]]:
    """Return a list under "", or lists under the names that they are for."""
    value = table.get(key)
    if not isinstance(value, Mapping):
        whole = _parse_list(table, key, where, check)
        return {} if whole is None else {"": whole}
    _check_keys(value, names, f"{where}{key}: ")
    lists = {name: _parse_list(value, name, f"{where}{key}: ", check) for name in value}
    return {name: each for name, each in lists.items() if each is not None}


def _parse_dtypes(
    table: Mapping[str, AnyValue], where: str, sets: Sets, variables: Collection[str] = ()
) -> dict[str, frozenset[str]]:
    given = table.get("dtypes")

    def named(value: AnyValue) -> AnyValue:
        return sets.get(value, value) if isinstance(value, str) else value

    if isinstance(given, Mapping):
        given = {key: named(each) for key, each in given.items()}
    return _parse_sets({"dtypes": named(given)}, "dtypes", where, variables, _check_dtype)


def _check_text(value: AnyValue) -> str | None:
    return None if isinstance(value, str) else "a text"


def _check_dtype(value: AnyValue) -> str | None:
    known = isinstance(value, str) and (value in CODES or value == "string")
    return None if known else "the name of a dtype such as float32"


def _check_rank(value: AnyValue) -> str | None:
    return None if type(value) is int and 0 <= value <= MAX_RANK else f"a rank of 0 to {MAX_RANK}"


def _check_version(name: str) -> Check:
    if is_custom(name):
        return lambda value: None if type(value) is int and value > 0 else "a version of its domain"
    known = [version for version, how in sorted(CHANGES[name].items()) if how is not Change.REMOVED]

    def check(value: AnyValue) -> str | None:
        text = ", ".join(map(str, known))
        return None if value in known else f"a version at which {name} changed ({text})"

    return check


def _check_name(known: Collection[str], what: str) -> Check:
    def check(value: AnyValue) -> str | None:
        return None if value in known else f"the name of an {what} ({', '.join(sorted(known))})"

    return check


def _parse_attributes(
    table: Mapping[str, AnyValue], schemas: list[AnyValue], where: str
) -> dict[str, tuple[AnyValue, ...] | Bounds]:
    attributes = _typed(table, "attributes", Mapping, "a table", where) or {}
    known = {name for schema in schemas for name in schema.attributes}
    if not is_custom(schemas[0].name):
        _check_keys(attributes, known, f"{where}attributes: ")
    return {
        name: _parse_values(value, f"{where}attributes: {name}: ")
        for name, value in attributes.items()
    }


def _parse_values(value: AnyValue, where: str) -> tuple[AnyValue, ...] | Bounds:
    if isinstance(value, Mapping):
        _check_keys(value, ("max", "min"), where)
        bounds = Bounds(*(_parse_number(value, key, where) for key in ("min", "max")))
        if bounds == Bounds():
            raise OptionError(f"{where}expected min or max")
        if None not in (bounds.least, bounds.greatest) and bounds.least > bounds.greatest:  # type: ignore[operator]
            raise OptionError(f"{where}min {bounds.least} is above max {bounds.greatest}")
        return bounds
    if not isinstance(value, (list, tuple)) or not value:
        expected = "a list of values, or min and max"
        raise OptionError(f"{where}expected {expected}, found {_kind(value)}")
    return tuple(_as_value(item, where) for item in value)


def _parse_number(table: Mapping[str, AnyValue], key: str, where: str) -> float | None:
    value = table.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise OptionError(f"{where}{key}: expected a number, found {_kind(value)}")
    return value


def _as_value(value: AnyValue, where: str) -> AnyValue:
    items = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(item, bool) or not isinstance(item, (int, float, str)) for item in items):
        raise OptionError(f"{where}expected a number, a text or a list of these: {_kind(value)}")
    return tuple(value) if isinstance(value, (list, tuple)) else value
