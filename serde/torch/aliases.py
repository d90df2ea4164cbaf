"""Names that share memory: views of tensors, and operators that write through them.

Relay has no memory, so a program that writes is made functional while it is walked. Every tensor
is then held as a :class:`Handle` on a :class:`View` of a :class:`Storage`. Reading a name gives
what its storage holds by then, by way of the view; writing puts the new elements into the storage
by way of the inverse of the view. Programs in which no operator writes have no handles at all.

A graph inside a node writes to states of its own. What it wrote of the tensors around it is asked
for behind it (:meth:`Values.written`) and becomes results of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core.records import dataclass, field
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.model import Node, TorchModel
from serde.walk import Placeholder, Scope

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Handle", "Storage", "Values", "View", "functional_name", "has_writes", "is_in_place",
    "out_names", "writes_statistics",
]  # fmt: skip

_MAYBE = "{} was written, and whether this tensor shares its memory is not known"


@dataclass(eq=False, slots=True)
class Storage:
    """Memory that several names may share.

    Attributes:
        name: What the first of them is called.
        maybe: Other storages that may be the same memory.
        weight: The name of the weight that it is at first.
        given: Whether the program, or the graph inside a node, was given it.
    """

    name: str
    maybe: set[Storage] = field(default_factory=set)
    weight: str | None = None
    given: bool = False


@dataclass(eq=False, slots=True)
class State:
    """What a storage holds.

    Attributes:
        view: The view through which the value is known: the whole of the storage, or one that
            holds all of its elements in another order.
        value: The value; the reason why it is not known as a text.
        version: How often it was written.
    """

    view: View
    value: Expr | str
    version: int = 0


@dataclass(eq=False, slots=True)
class View:
    """A tensor as a look at a storage.

    Attributes:
        storage: The storage.
        scope: The graph whose node made the view.
        first: Its value when it was made, which tells its shape.
        parent: The view that it was made of; None for the whole storage.
        look: Gives the value, in a scope, of the parent's.
        put: Gives the parent's value, in a scope, of its value before and of this view's; where the
            view is bijective the former only tells the shape.
        bijective: Whether it holds all elements of the storage.
        contiguous: Whether its elements lie in memory one after the other; None if not known.
    """

    storage: Storage
    scope: Values
    first: Expr
    parent: View | None = None
    look: Callable[[Values, Expr], Expr] | None = None
    put: Callable[[Values, Expr, Expr], Expr] | None = None
    bijective: bool = True
    contiguous: bool | None = None
    _seen: tuple[State, int, Values, Expr] | None = None

    def child(
        self,
        scope: Values,
        first: Expr,
        look: Callable[[Values, Expr], Expr],
        put: Callable[[Values, Expr, Expr], Expr],
        *,
        bijective: bool,
        contiguous: bool | None,
    ) -> View:
        """Return a view of this one."""
        whole = self.bijective and bijective
        return View(self.storage, scope, first, self, look, put, whole, contiguous)

    def seen(self, state: State) -> tuple[Values, Expr] | None:
        """Return the value that was computed of a state, with the graph in which it was."""
        if self is state.view or self._seen is None:
            return None
        known, version, scope, value = self._seen
        return (scope, value) if known is state and version == state.version else None

    def keep(self, state: State, scope: Values, value: Expr) -> None:
        """Keep what was computed of a state."""
        self._seen = (state, state.version, scope, value)


@dataclass(eq=False, slots=True)
class Handle:
    """A tensor object of the program, which operators may write to or look at differently."""

    view: View


@dataclass(eq=False)
class Values(Scope[str, AnyValue]):
    """Values by name: expressions, handles, numbers and texts, lists, tuples and dicts of these.

    Attributes:
        states: What storages hold that are of this graph, or that it wrote.
        named: Expressions by name, as they were when the name was given.
    """

    states: dict[Storage, State] = field(default_factory=dict)
    named: dict[str, Expr] = field(default_factory=dict)

    def inner(self, label: str, **changes: AnyValue) -> Self:
        """Return a new scope for a graph inside this one, whose writes are its own."""
        return super().inner(label, **{"states": {}, "named": {}, **changes})

    # Names.

    def define(self, name: str, value: AnyValue) -> None:
        """Give a value its name."""
        super().define(name, value)
        state = self.states.get(value.view.storage) if isinstance(value, Handle) else None
        found = value if state is None else state.value
        if isinstance(found, Expr) and not isinstance(found, Placeholder):
            self.named[name] = found

    def expressions(self) -> dict[str, Expr]:
        """Return the expressions of the graph by name, as they were when they got it."""
        return self.named

    def held(self, name: str) -> AnyValue:
        """Return what a name holds: handles as they are, and lists by identity."""
        scope: Scope[str, AnyValue] = self
        while name not in scope.values:
            if scope.parent is None:
                raise self.fault("no node or input gives this value", name)
            scope = scope.parent
        value = scope.values[name]
        return self.find(name) if isinstance(value, Expr) else value

    def find(self, name: str) -> AnyValue:
        """Return the value of a name as it is now."""
        scope: Scope[str, AnyValue] = self
        while name not in scope.values:
            if scope.parent is None:
                return None
            scope = scope.parent
        value = scope.values[name]
        return super().find(name) if isinstance(value, Expr) else self.resolve(value)

    def resolve(self, value: AnyValue) -> AnyValue:
        """Return a value with what the handles in it hold by now."""
        if isinstance(value, Handle):
            return self.look(value.view)
        if isinstance(value, (list, tuple)) and has_handle(value):
            return type(value)(map(self.resolve, value))
        if isinstance(value, dict) and has_handle(value.values()):
            return {key: self.resolve(each) for key, each in value.items()}
        return value

    # Memory.

    def new(self, value: Expr, name: str, *, contiguous: bool | None = None) -> Handle:
        """Return a handle on a new storage."""
        storage = Storage(name)
        view = View(storage, self, value, contiguous=contiguous)
        self.states[storage] = State(view, value)
        return Handle(view)

    def put(self, storage: Storage, value: Expr) -> None:
        """Write the whole of a storage, in this graph."""
        self.write(_whole(self.state(storage)[0].view), value)

    def begin(self, storage: Storage, value: Expr) -> None:
        """Say what a storage from around this graph holds when the graph begins."""
        self.states[storage] = State(_whole(self.state(storage)[0].view), value)

    def write(self, view: View, value: Expr) -> None:
        """Set the elements of a view, those of its storage with them.

        Raises:
            Unsupported: What the storage held, and of which some is left, is not known.
        """
        leaf, new = view, value
        while not view.bijective and view.parent is not None:
            if view.put is None:
                raise Unsupported("a write through a view that has no inverse")
            new = view.put(self, self.look(view.parent), new)
            view = view.parent
        self._set(view, new)
        if leaf is not view:
            leaf.keep(self.states[view.storage], self, value)
        for other in view.storage.maybe:
            self.spoil(other, _MAYBE.format(view.storage.name))

    def _set(self, view: View, value: Expr) -> None:
        found, home = self.state(view.storage)
        if home is not self:
            found = self.states[view.storage] = State(view, value, found.version)
        found.view, found.value = view, value
        found.version += 1

    def spoil(self, storage: Storage, reason: str) -> None:
        """Say that what a storage holds is not known, and why."""
        try:
            found, home = self.state(storage)
        except KeyError:  # of a graph inside another node, where nothing reads it any more
            return
        if home is not self:
            found = self.states[storage] = State(found.view, reason, found.version)
        found.value = reason
        found.version += 1

    def state(self, storage: Storage) -> tuple[State, Values]:
        """Return what a storage holds here, and the graph in which it got it.

        Raises:
            KeyError: It is of a graph that is over.
        """
        scope: Values | None = self
        while scope is not None:
            if storage in scope.states:
                return scope.states[storage], scope
            scope = scope.around
        raise KeyError(storage.name)

    @property
    def around(self) -> Values | None:
        """The scope around this one."""
        return self.parent if isinstance(self.parent, Values) else None

    def whole(self, storage: Storage) -> Expr:
        """Return what a storage holds, here.

        Raises:
            Unsupported: It is not known.
        """
        return self.look(_whole(self.state(storage)[0].view))

    def look(self, view: View) -> Expr:
        """Return the value of a view as it is now, here.

        Raises:
            Unsupported: It is not known.
        """
        state, home = self.state(view.storage)
        if isinstance(state.value, str):
            raise Unsupported(state.value)
        path, here, found = self._path(view, state, home)
        for each in path:
            level = here if here.depth >= each.scope.depth else each.scope
            if each.look is None:
                raise Unsupported("a view that cannot be computed")
            found = each.look(level, level.lift(found, here, view.storage.name))
            here = level
            each.keep(state, here, found)
        return self.lift(found, here, view.storage.name)

    def _path(self, view: View, state: State, home: Values) -> tuple[list[View], Values, Expr]:
        """Return steps towards a view, and the value that they begin with, with its graph."""
        path: list[View] = []
        each = view
        while True:
            seen = each.seen(state)
            if seen is not None:
                return path[::-1], *seen
            if each is state.view:
                assert isinstance(state.value, Expr)
                return path[::-1], home, state.value
            if each.parent is None:
                break
            path.append(each)
            each = each.parent
        _unfold(state, home)
        assert isinstance(state.value, Expr)
        return path[::-1], home, state.value

    def lift(self, value: AnyValue, home: Scope[str, AnyValue], name: str) -> AnyValue:
        """Return a value of a graph around this one, of a captured one the parameter."""
        crossed: list[Values] = []
        scope: Values | None = self
        while scope is not None and scope is not home:
            crossed.append(scope)
            scope = scope.around
        for inner in reversed(crossed):
            if inner.captures is not None:
                value = inner.capture(value, name)
        return value

    def written(self) -> dict[Storage, Expr]:
        """Return what this graph made of tensors from around it that it wrote.

        Of those that it may have written it is not known any more around it either.
        """
        around = self.around
        found: dict[Storage, Expr] = {}
        for storage, state in list(self.states.items()):
            if around is None or not around.has(storage):
                continue
            if isinstance(state.value, str):
                around.spoil(storage, state.value)
            else:
                found[storage] = self.whole(storage)
        return found

    def has(self, storage: Storage) -> bool:
        """Whether a storage is of this graph or of one around it."""
        scope: Values | None = self
        while scope is not None:
            if storage in scope.states:
                return True
            scope = scope.around
        return False

    def link(self, one: Storage, others: Iterable[Storage]) -> None:
        """Note that a storage may share its memory with others."""
        group = {one, *one.maybe}
        for each in others:
            group |= {each, *each.maybe}
        for each in group:
            each.maybe |= group - {each}


def _whole(view: View) -> View:
    while view.parent is not None:
        view = view.parent
    return view


def _unfold(state: State, home: Values) -> None:
    """Make the whole storage that through which its value is known."""
    while state.view.parent is not None:
        view = state.view
        if view.put is None or view.parent is None or not isinstance(state.value, Expr):
            raise Unsupported("a write through a view that has no inverse")
        before = home.lift(view.parent.first, view.parent.scope, view.storage.name)
        state.value = view.put(home, before, state.value)
        state.view = view.parent


def has_handle(values: Collection[AnyValue]) -> bool:
    """Whether there is a handle in a list or in one inside it."""
    return any(
        isinstance(each, Handle)
        or (isinstance(each, (list, tuple)) and has_handle(each))
        or (isinstance(each, dict) and has_handle(each.values()))
        for each in values
    )


# Which operators write.

_PLAIN: Final = frozenset({"aten::requires_grad_", "aten::detach_"})
"""Operators with such a name that write nothing."""

_RESULTS: Final = frozenset(
    """
    L LD LU M P Q R S U V Vh X a bin_edges buffer eigenvalues eigenvectors eigvals eigvecs exponent
    grad_bias grad_input grad_weight hist indices info inverse is_target logabsdet mantissa max
    max_values min min_indices out output pivots rank reserve residuals result save_invstd
    save_mean sign singular_values solution tau total_weight values
    """.split()  # noqa: SIM905
)
"""Names of arguments that results are written to."""

_OVERLOADS: Final = frozenset(
    """
    L Q U X a dim_max dim_min dim_values eigenvalues eigvals grad_input inverse output result sign
    values values_stable
    """.split()  # noqa: SIM905
)
"""Overloads that write their results, of those that are not called ``out``."""


def is_in_place(op: str) -> bool:
    """Whether an operator writes to its first argument."""
    base = op.partition(".")[0]
    if base.endswith("__"):
        name = base.partition("::")[2]
        return name in ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")
    return base.endswith("_") and base not in _PLAIN and base.startswith(("aten::", "quantized::"))


def out_names(op: str, given: Sequence[str]) -> list[str]:
    """Return the arguments that an operator writes its results to: the last that it is given."""
    overload = op.partition(".")[2]
    if "out" not in overload.lower() and overload not in _OVERLOADS:
        return []
    count = len(given)
    while count and given[count - 1].rstrip("0123456789") in _RESULTS:
        count -= 1
        if given[count] in ("out", "out0"):
            break
    return list(given[count:])


_STATISTICS: Final = {
    "aten::batch_norm": "training",
    "aten::instance_norm": "use_input_stats",
    "aten::native_batch_norm": "training",
    "aten::_native_batch_norm_legit": "training",
}
"""Operators that write running statistics, with the argument that says so."""


def writes_statistics(op: str, arguments: Mapping[str, AnyValue]) -> bool:
    """Whether a normalisation writes its running statistics."""
    flag = _STATISTICS.get(op)
    if flag is None or not arguments.get(flag):
        return False
    return arguments.get("running_mean") is not None


def has_writes(model: TorchModel) -> bool:
    """Whether some operator of a program writes to a tensor."""
    return any(_writes(node) for node in model.nodes())


def _writes(node: Node) -> bool:
    if is_in_place(node.op) or writes_statistics(node.op, dict(node.arguments)):
        return True
    return bool("." in node.op and out_names(node.op, [name for name, _ in node.arguments]))


def functional_name(op: str) -> str:
    """Return the operator that computes what one in place, or with ``out``, writes."""
    base, _, overload = op.partition(".")
    if is_in_place(op):
        name = base.replace("::__i", "::__") if base.endswith("__") else base[:-1]
        return f"{name}.{overload}" if overload else name
    plain = overload.removesuffix("_out")
    return base if plain == "out" or plain in _OVERLOADS else f"{base}.{plain}"


def handles_in(values: Sequence[AnyValue]) -> list[Handle]:
    """Return the handles among values and in lists among them."""
    found: list[Handle] = []
    pending = list(reversed(values))
    while pending:
        each = pending.pop()
        if isinstance(each, Handle):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            pending.extend(reversed(each))
        elif isinstance(each, dict):
            pending.extend(each.values())
    return found
