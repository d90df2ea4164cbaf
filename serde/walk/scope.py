"""The values of a graph by name, while a model is walked into Relay."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any as AnyValue, Generic, TypeVar

from serde.core import budget, dataclass, field, replace
from serde.errors import FormatError
from serde.relay.ir.expr import Constant, Expr, Var
from serde.walk.holes import Placeholder
from serde.walk.tracing import note_read

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Scope"]

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


@dataclass(eq=False)
class Scope(Generic[KeyT, ValueT]):
    """The values of one graph by name; a graph inside it sees them.

    Attributes:
        values: What is known in the graph itself.
        prefix: What names of nodes begin with in messages, such as ``loop_1/body/``.
        parent: The scope around a subgraph; None where nothing around it is seen.
        depth: How many graphs are around this one.
        captures: Of a graph that becomes a function, the values that it takes from around it,
            with the parameters that stand for them.
        source: The file, for messages.
    """

    values: dict[KeyT, ValueT] = field(default_factory=dict)
    prefix: str = ""
    parent: Scope[KeyT, ValueT] | None = None
    depth: int = 0
    captures: dict[Expr, Var] | None = None
    source: str | None = None

    def define(self, name: KeyT, value: ValueT) -> None:
        """Give a value its name.

        Raises:
            FormatError: The name is empty, or taken.
        """
        if name == "":
            raise self.fault("a value needs a name")
        if name in self.values:
            raise self.fault("the name is given twice", str(name))
        self.values[name] = value

    def knows(self, name: KeyT) -> bool:
        """Whether there is a value of that name here or around."""
        scope: Scope[KeyT, ValueT] | None = self
        while scope is not None:
            if name in scope.values:
                return True
            scope = scope.parent
        return False

    def find(self, name: KeyT) -> ValueT | None:
        """Return the value of a name, of a captured one the parameter; None where there is none."""
        crossed: list[Scope[KeyT, ValueT]] = []
        scope: Scope[KeyT, ValueT] = self
        while name not in scope.values:
            if scope.parent is None:
                return None
            crossed.append(scope)
            scope = scope.parent
        value = self.resolve(scope.values[name])
        for inner in reversed(crossed):
            if inner.captures is not None:
                value = inner.capture(value, str(name))
        note_read(scope, name, value)
        return value

    def expressions(self) -> dict[KeyT, Expr]:
        """Return the values of the graph itself that are expressions, by name."""
        found = {name: self.find(name) for name in self.values}
        return {
            name: value
            for name, value in found.items()
            if isinstance(value, Expr) and not isinstance(value, Placeholder)
        }

    def resolve(self, value: ValueT) -> ValueT:
        """Return what a value is as far as is known here."""
        return value

    def capture(self, value: AnyValue, name: str) -> AnyValue:
        """Return the parameter that stands in a function for a value from around it."""
        if not isinstance(value, Expr) or isinstance(value, (Constant, Placeholder)):
            return value
        if self.captures is None or value.type is None:
            return value
        if value not in self.captures:
            self.captures[value] = Var(self.parameter_name(name), value.type)
        return self.captures[value]

    def parameter_name(self, name: str) -> str:
        """Return what the parameter for a captured value is called."""
        return name

    def inner(self, label: str, **changes: AnyValue) -> Self:
        """Return a new scope for a graph inside this one.

        Args:
            label: The node that it is in, and what the node calls it.
            changes: Attributes that are not as in this scope.

        Raises:
            LimitError: There are too many around it.
        """
        budget().check("depth", self.depth + 1, f"{label}: a graph inside of graphs")
        own = {"values": {}, "prefix": f"{label}/", "parent": self, "captures": None}
        return replace(self, **{**own, "depth": self.depth + 1, **changes})

    def fault(self, message: str, name: str = "") -> FormatError:
        """Return an error about this graph, or about what is called `name` in it."""
        where = f"{self.prefix}{name}".rstrip("/")
        return FormatError(f"{where}: {message}" if where else message, path=self.source)
