"""What the symbols of Relay's shapes are in a module of Relax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any as AnyValue

from serde.relax.framework import Framework
from serde.relax.values import Value, plain_name
from serde.relay.ir import Any, Dim, FloorDiv, SymDim, TensorType, symbol
from serde.walk import export_context as walk
from serde.walk.placement import Scope

__all__ = ["Symbols"]


class Symbols(walk.SymbolTable[Value]):
    """What the symbols of a function's shapes are: variables of TIR, or lengths made of them.

    A length that a conditional's branch shows is seen in that branch only.

    Args:
        framework: TVM.
        parent: Those of what is around, which are seen from here; None in a function of its own.
        of_model: Whether the symbols are those of the model's inputs.
    """

    def __init__(
        self, framework: Framework, parent: Symbols | None = None, *, of_model: bool = False
    ) -> None:
        super().__init__(parent, of_model=of_model)
        self._framework = framework
        self._around = parent
        self._lengths: dict[SymDim, list[tuple[Scope, AnyValue]]] = {}
        self._numbers: Iterator[int] = count(1) if parent is None else parent._numbers

    def add(self, scope: Scope, values: Iterable[Value]) -> None:
        """Note the symbols in the shapes of values, and what lengths they are."""
        known = list(values)
        super().add(scope, known)
        for value in known:
            if isinstance(value.type, TensorType) and value.expr is not None:
                self.read(scope, value.type, self._framework.type_of(value.expr))

    def read(self, scope: Scope, type_: TensorType, found: AnyValue) -> None:
        """Note the lengths that the symbols of a type are in a type of Relax."""
        if found.shape is None:
            return
        dims = zip(type_.shape, found.shape.values, strict=True)
        new = [(dim, own) for dim, own in dims if isinstance(dim, SymDim)]
        for dim, own in sorted(new, key=lambda each: each[0].name is None):
            if self.length(dim, scope) is None:
                self._show(dim, scope, own)

    def declare(self, shape: Sequence[Dim], scope: Scope) -> list[AnyValue]:
        """Return the lengths of what shows symbols that nothing has shown before.

        Args:
            shape: Its lengths in Relay: of a parameter, or of the result of a cast.
            scope: Where it lies.
        """
        self.expect(shape, scope)
        return [self._declared(dim, scope) for dim in shape]

    def expect(self, shape: Sequence[Dim], scope: Scope) -> None:
        """Make variables of the symbols that are lengths of axes by themselves."""
        for dim in shape:
            if isinstance(dim, SymDim) and dim.name and self._seen(dim, scope) is None:
                self._show(dim, scope, self._variable(dim.name))

    def length(self, dim: Dim, scope: Scope) -> AnyValue:
        """Return the length that a dimension is: an integer or an expression of TIR.

        None where it is anonymous, or no value has shown its symbols yet.
        """
        if isinstance(dim, int):
            return dim
        if isinstance(dim, Any):
            return None
        known = self._seen(dim, scope)
        if known is not None or dim.name is not None:
            return known
        return self._sum(dim.terms, scope)

    def name_length(self, length: AnyValue, scope: Scope) -> Dim:
        """Return a dimension that is a length of TIR: a new symbol where it is not fixed."""
        if isinstance(length, int):
            return length
        name = symbol(f"?{next(self._numbers)}")
        self._show(name, scope, length)
        return name

    def _declared(self, dim: Dim, scope: Scope) -> AnyValue:
        found = self.length(dim, scope)
        if found is None:
            found = self.new_length()  # The text may not declare what Python has, as `any`.
            if isinstance(dim, SymDim):
                self._show(dim, scope, found)
        return found

    def new_length(self) -> AnyValue:
        """Return a variable of its own name: two of one name TVM tells apart in any order."""
        return self._variable(f"length{next(self._numbers)}")

    def _variable(self, name: str) -> AnyValue:
        return self._framework.tir.Var(plain_name(name), "int64")

    def _seen(self, dim: SymDim, scope: Scope) -> AnyValue:
        """Return the length that a value of this very length has shown, None if none has."""
        table: Symbols | None = self
        while table is not None:
            for place, length in table._lengths.get(dim, ()):
                if place.common(scope) is place:
                    return length
            table = table._around
        return None

    def _show(self, dim: SymDim, scope: Scope, length: AnyValue) -> None:
        """Note what length a dimension is, and the only symbol of it that is not known yet."""
        self._lengths.setdefault(dim, []).append((scope, length))
        if dim.name is not None:
            return
        unknown = [
            (monomial, factor)
            for monomial, factor in dim.terms
            if self._product(monomial, scope) is None
        ]
        if len(unknown) != 1:
            return
        ((monomial, factor),) = unknown
        open_ = [atom for atom, _ in monomial if self._atom(atom, scope) is None]
        powers = dict(monomial)
        if len(open_) != 1 or powers[open_[0]] != 1 or factor < 1:
            return
        atom = open_[0]
        if not isinstance(atom, str):
            return
        rest = self._sum([each for each in dim.terms if each[0] != monomial], scope)
        left = length if isinstance(rest, int) and rest == 0 else length - rest
        known = self._product([each for each in monomial if each[0] != atom], scope) * factor
        if not isinstance(known, int):  # Of no elements, any length will do.
            known = self._framework.tir.max(known, self._wide(1))
        if not isinstance(known, int) or known != 1:
            left = self._framework.tir.floordiv(left, self._wide(known))
        self._lengths.setdefault(symbol(atom), []).append((scope, left))

    def _sum(self, terms: Iterable[tuple[AnyValue, int]], scope: Scope) -> AnyValue:
        total: AnyValue = 0
        for monomial, coefficient in terms:
            product = self._product(monomial, scope)
            if product is None:
                return None
            term = product if coefficient == 1 else product * coefficient
            total = term if isinstance(total, int) and total == 0 else total + term
        return total

    def _product(self, monomial: AnyValue, scope: Scope) -> AnyValue:
        """Return the product of atoms with their powers, None where one is not known."""
        product: AnyValue = 1
        for atom, power in monomial:
            factor = self._atom(atom, scope)
            if factor is None:
                return None
            for _ in range(power):
                product = factor if isinstance(product, int) and product == 1 else product * factor
        return product

    def _atom(self, atom: str | FloorDiv, scope: Scope) -> AnyValue:
        if isinstance(atom, str):
            return self._seen(symbol(atom), scope)
        parts = [self.length(each, scope) for each in (atom.numerator, atom.denominator)]
        if any(each is None for each in parts):
            return None
        return self._framework.tir.floordiv(*map(self._wide, parts))

    def _wide(self, length: AnyValue) -> AnyValue:
        """Return a length as a number of 64 bits, which shapes of Relax have."""
        return self._framework.tir.IntImm("int64", length) if isinstance(length, int) else length
