"""Correspondences that are mere data: operators of a format that are Relay's by other names.

``pair("Elu", "serde.elu", since=(1, 6, 22), alpha=1.0)`` is read and written; :func:`reads` and
:func:`writes` are for one direction. Tensors, and the types of attributes, are what Relay's
operator declares.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir.expr import Call
from serde.relay.ir.registry import call, get, op_signature
from serde.relay.ir.schema import REQUIRED
from serde.walk.converter import Converter, Deferred, Parameter, make_parameter
from serde.walk.takes import Takes

__all__ = ["Emit", "Pair", "Reader", "one_of", "pair", "reads", "writes"]

Names = str | tuple[str, ...]
Emit = Callable[[AnyValue, str, Mapping[str, AnyValue], Mapping[str, AnyValue]], AnyValue]
"""Writes a node: gets the context, the operator, operands by name, and attributes."""


class Pair:
    """An operator of a format that is one of Relay's.

    Args:
        names: Its name there; of several, the first is written.
        operators: Relay's name; of several, the first is what is read.
        required: Attributes that a node must have.
        since: Every version of the operator that is read.
        target: Version from which on it is written; the first that is read if left out.
        operands: Names of its inputs, where they are not those of the table or of Relay.
        renamed: What Relay calls attributes for which the format has other words.
        fixed: Attributes of Relay that the format does not have, with what it means by itself.
        constants: Attributes that are written as they stand here.
        ignored: Attributes that do not bear on the result.
        uses: How many leading inputs bear on the result, where not all do.
        takes: What operands and attributes may be, `fixed` if not said otherwise.
        when: Whether a call can be written, as far as `takes` cannot tell.
        directions: Whether it is read, and whether it is written.
        defaults: Attributes that a node may lack, by the format's names; None where Relay's is
            none, either.
    """

    def __init__(
        self,
        names: Names,
        operators: Names,
        *required: str,
        since: int | tuple[int, ...] = 1,
        target: int | None = None,
        operands: str = "",
        renamed: Mapping[str, str] | None = None,
        fixed: Mapping[str, AnyValue] | None = None,
        constants: Mapping[str, AnyValue] | None = None,
        ignored: str | tuple[str, ...] = (),
        uses: int | None = None,
        takes: Takes | None = None,
        when: Callable[[Call], bool] | None = None,
        directions: tuple[bool, bool] = (True, True),
        **defaults: AnyValue,
    ) -> None:
        self.names = (names,) if isinstance(names, str) else names
        self.operators = (operators,) if isinstance(operators, str) else operators
        self.defaults = {**dict.fromkeys(required, REQUIRED), **defaults}
        self.attributes = {name: (renamed or {}).get(name, name) for name in self.defaults}
        self.since = since
        self.target = target or (since if isinstance(since, int) else min(since))
        self.fixed = fixed or {}
        self.ignored = ignored.split() if isinstance(ignored, str) else ignored
        self.uses = uses
        self.takes = (takes or Takes()).over(self.fixed)
        self.when = when
        self.reads, self.writes = directions
        self._operands = tuple(operands.split())
        self._constants = constants or {}
        self._foreign = [name for name in renamed or () if name not in self.defaults]

    def check(self, format_name: str) -> None:
        """Refuse operators, operands and attributes that Relay does not have.

        Raises:
            RelayError: There are some, or what is renamed is no attribute of the pair.
        """
        where = f"{format_name}: {self.names[0]}"
        if self._foreign:
            raise RelayError(f"{where} has no attribute {self._foreign[0]}")
        for name in self.operators:
            signature = op_signature(name)
            if signature is None:
                raise RelayError(f"{where}: no Relay operator is called {name}")
            for each in (*self.attributes.values(), *self.fixed):
                if each not in signature.attributes:
                    raise RelayError(f"{where}: {name} has no attribute {each}")
            if len(self._operands) > len(signature.operands):
                raise RelayError(f"{where}: {name} has {len(signature.operands)} operands")

    def operands(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return what the format calls operands, where not otherwise by a table's `words`."""
        signature = op_signature(self.operators[0])
        declared = () if signature is None else signature.operands
        named = self._operands or tuple(words)[: len(declared)]
        return (*named, *declared[len(named) :])

    def writer(self, module: str, words: Sequence[str], emit: Emit) -> Callable[..., AnyValue]:
        """Return the exporter, a function with the signature of Relay's operator.

        Args:
            module: Where it is registered.
            words: What the format calls operands, by place.
            emit: Writes a node.
        """
        names, taken = self.operands(words), tuple(self.attributes.values())

        def write(ctx: AnyValue, *operands: AnyValue, **attributes: AnyValue) -> AnyValue:
            known = {name: attributes[relay] for name, relay in self.attributes.items()}
            inputs = dict(zip(names, operands, strict=True))
            return emit(ctx, self.names[0], inputs, {**known, **self._constants})

        kinds = inspect.Parameter
        parameters = [kinds(each, kinds.POSITIONAL_OR_KEYWORD) for each in ("ctx", *names)]
        parameters += [kinds(each, kinds.KEYWORD_ONLY) for each in taken]
        write.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        write.__annotations__ = dict.fromkeys(taken, AnyValue)
        write.__module__ = module
        return write


pair: Final = Pair
reads: Final = partial(Pair, directions=(True, False))
writes: Final = partial(Pair, directions=(False, True))


def one_of(*values: AnyValue) -> AnyValue:
    """Return the type of an attribute that has fewer values than Relay's, the default first."""
    return typing.Literal[values]


class Reader(Deferred):
    """The importer of a pair, whose types are read from Relay's declaration when it is needed."""

    def __init__(self, given: Pair, module: str, words: Sequence[str]) -> None:
        self.__module__ = module
        self._given = given
        self._words = words

    def converter(self, since: int, ignored: frozenset[str], uses: int | None) -> Converter:
        """Return the entry of the table.

        Raises:
            RelayError: A default is no value of its attribute.
        """
        operands = get(self._given.operators[0]).operands
        many = any(each.variadic for each in operands)
        attributes = {name: self._parameter(name) for name in self._given.attributes}
        return Converter(
            function=self._function(attributes, many),
            since=since,
            operands=self._given.operands(self._words),
            required=0 if many else sum(not each.optional for each in operands),
            accepted=None if many else len(operands),
            omissible=tuple(each.optional for each in operands),
            attributes=attributes,
            shared={},
            ignored=ignored,
            uses=uses,
        )

    def _parameter(self, name: str) -> Parameter:
        declared, default = get(self._given.operators[0]), self._given.defaults[name]
        relay = self._given.attributes[name]
        hint, text = declared.attributes[relay].hint, declared.attributes[relay].annotation
        if typing.get_origin(default) is typing.Literal:
            hint, default = default, typing.get_args(default)[0]
            text = str(hint).removeprefix("typing.")
        elif default is not None and type(None) in typing.get_args(hint):
            kinds = [each for each in typing.get_args(hint) if each is not type(None)]
            hint, text = typing.Union[tuple(kinds)], text.removesuffix(" | None")  # noqa: UP007
        found = make_parameter(name, hint, default, text)
        try:
            if default is not REQUIRED:
                found.convert(default)
        except (TypeError, ValueError, RelayError):
            where = f"{self._given.names[0]}: attribute {name}"
            raise RelayError(f"{where}: expected {text}, found {default!r}") from None
        return found

    def _function(self, known: Mapping[str, Parameter], many: bool) -> Callable[..., AnyValue]:
        given = self._given
        defaults = {n: each.default for n, each in known.items() if each.default is not REQUIRED}

        def read(_ctx: AnyValue, *operands: AnyValue, **found: AnyValue) -> AnyValue:
            attrs = {given.attributes[n]: each for n, each in {**defaults, **found}.items()}
            whole = (operands,) if many else operands
            return call(given.operators[0], *whole, **attrs, **given.fixed)

        read.__module__ = self.__module__
        return read
