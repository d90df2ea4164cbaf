"""Lengths that a file leaves to MXNet's inference: a 0 in the shape of zeros.

Gluon's cells begin with states of zeros for a batch that is not known when they are made. MXNet
finds it where such a tensor, or what is computed from it, meets one that must be of the same shape,
be it around or in the body of a ``_foreach``. Bodies of ``_while_loop`` and ``_cond`` are left
alone, since MXNet 1.9.1 finds no length there and runs no such graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence

import serde.relay as relay
from serde.core.records import dataclass
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import decode_attribute
from serde.mxnet.model import Entry, Graph, Node
from serde.relay.ir import Call, Dim, Expr, TensorType, Type, Var
from serde.relay.ir.leaves import known_shape
from serde.walk.holes import Holes

__all__ = ["ShapeCompletion", "tells_lengths"]

_SAME_SHAPE = frozenset([
    "_equal", "_grad_add", "_greater", "_greater_equal", "_hypot", "_lesser",
    "_lesser_equal", "_logical_and", "_logical_or", "_logical_xor", "_maximum",
    "_minimum", "_mod", "_not_equal", "_power", "_scatter_elemwise_div", "add_n", "elemwise_add",
    "elemwise_div", "elemwise_mul", "elemwise_sub", "where",
])  # fmt: skip
"""Operators whose inputs have one shape."""

_MADE = frozenset(["_full", "_ones", "_zeros"])

Results = MutableMapping[int, Sequence[Expr]]
"""What each node gives, by its place in the graph."""

Inside = Callable[[Node, Sequence[Expr]], Sequence[Expr]]
"""Gives the variables of a node's body with the lengths that the body tells."""

Shape = tuple[Dim, ...]
Shapes = Mapping[Entry, Shape]
Missing = tuple[Entry, Dim]
"""An input of a node, and the length that it lacks."""


def tells_lengths(op: str) -> bool:
    """Whether an operator implies lengths of what it takes."""
    return op in _SAME_SHAPE or op in ("Concat", "RNN", "_foreach")


@dataclass(frozen=True)
class ShapeCompletion:
    """Completes a graph while it is walked over.

    Attributes:
        graph: The graph, which does not have NumPy's shapes.
        results: What each node gives; what changes is replaced, variables of a body among it.
        convert: Converts the node at a place anew.
        inside: Completes the variables of a body.
        open_ended: Whether variables may be replaced by longer ones.
    """

    graph: Graph
    results: Results
    convert: Callable[[int], Sequence[Expr]]
    inside: Inside
    open_ended: bool = False

    def complete(self, node: Node) -> None:
        """Give the tensors of unknown length that a node takes the length that it implies.

        Args:
            node: A node that :func:`tells_lengths`.
        """
        rule = self._rule(canonical_name(node.op))
        shapes = {
            entry: known_shape(self.results[entry.node][entry.index]) for entry in node.inputs
        }
        if any(_unknown(shape) for shape in shapes.values()):
            for entry, length in list(rule(node, shapes)):
                self._fill(entry, length)

    def _rule(self, op: str) -> Callable[[Node, Shapes], Iterator[Missing]]:
        return {"RNN": self._of_rnn, "_foreach": self._of_loop}.get(op, _as_others)

    def _of_rnn(self, node: Node, shapes: Shapes) -> Iterator[Missing]:
        """Yield the batch for states that a body takes; the importer leaves zeros out."""
        data = shapes[node.inputs[0]]
        for entry in node.inputs[2:]:
            shape = shapes[entry]
            inner = self.graph.nodes[entry.node].is_variable
            if inner and _unknown(shape) and len(shape) == len(data) == 3:
                yield entry, data[1]

    def _of_loop(self, node: Node, shapes: Shapes) -> Iterator[Missing]:
        """Yield the lengths that the body tells of its variables."""
        types = [self.results[entry.node][entry.index].type for entry in node.inputs]
        variables = _variables(node, types)
        if not variables:
            return
        completed = self.inside(node, [variables[place] for place in range(len(variables))])
        for place, entry in zip(variables, node.inputs, strict=False):
            shape, found = shapes[entry], known_shape(completed[place])
            if _unknown(shape) and len(shape) == len(found) and not _unknown(found):
                yield entry, found[shape.index(0)]

    def _fill(self, entry: Entry, length: Dim) -> None:
        """Make a tensor, and all that hangs on it, of the length that it lacks."""
        pending, changed = [entry.node], set()
        while pending:
            place = pending.pop()
            if place in changed or not self._lacks(place):
                continue
            changed.add(place)
            pending += [each.node for each in self.graph.nodes[place].inputs]
        for place in range(min(changed, default=0), max(self.results, default=-1) + 1):
            node = self.graph.nodes[place]
            if place not in changed and not self._hangs_on(place, changed):
                continue
            changed.add(place)
            if canonical_name(node.op) in _MADE or (node.is_variable and self.open_ended):
                self.results[place] = [_longer(each, length) for each in self.results[place]]
            elif not node.is_variable:
                self.results[place] = self.convert(place)

    def _lacks(self, index: int) -> bool:
        found = self.results.get(index, ())
        return not isinstance(found, Holes) and any(_unknown(known_shape(each)) for each in found)

    def _hangs_on(self, index: int, changed: set[int]) -> bool:
        """Whether a node was converted from what has changed, and lacks a length by it."""
        read = {entry.node for entry in self.graph.nodes[index].inputs}
        return bool(read & changed) and self._lacks(index)


def _as_others(node: Node, shapes: Shapes) -> Iterator[Missing]:
    """Yield what some lack of shapes that are the same, those of a Concat in all axes but one."""
    known = [shape for shape in shapes.values() if shape and not _unknown(shape)]
    joined = _integers(node, "dim", "1") if canonical_name(node.op) == "Concat" else ()
    for entry, shape in shapes.items():
        fitting = [other for other in known if len(other) == len(shape)]
        if not fitting or not _unknown(shape):
            continue
        axis = shape.index(0)
        if all(axis != each % len(shape) for each in joined):
            yield entry, fitting[0][axis]


def _variables(node: Node, types: Sequence[Type | None]) -> dict[int, Var]:
    """Return, by its place, a variable of a loop's body for each input; none if one is unsound."""
    walked = len(_integers(node, "in_data_locs"))
    names = ("in_data_locs", "in_state_locs", "remain_locs")
    places = [place for name in names for place in _integers(node, name)]
    found = {}
    for at, (place, type_) in enumerate(zip(places, types, strict=False)):
        if not isinstance(type_, TensorType):
            return {}
        slice_ = TensorType(type_.shape[1:] or (1,), type_.dtype)
        found[place] = Var("unknown", slice_ if at < walked else type_)
    return found if sorted(found) == list(range(len(types))) else {}


def _integers(node: Node, name: str, default: str = "()") -> tuple[int, ...]:
    """Return the numbers of an attribute; none where the importer will refuse it."""
    try:
        value = decode_attribute(node.attrs.get(name, default), tuple[int, ...])
    except ValueError:
        return ()
    values = value if isinstance(value, tuple) else (value,)
    return values if all(isinstance(each, int) for each in values) else ()


def _unknown(shape: Iterable[Dim]) -> bool:
    return any(type(length) is int and length == 0 for length in shape)


def _longer(made: Expr, length: Dim) -> Expr:
    """Return a variable or a filled tensor whose lengths of 0 are `length`."""
    if not isinstance(made.type, TensorType):
        return made
    shape = [length if _unknown([each]) else each for each in made.type.shape]
    if isinstance(made, Var):
        return Var(made.name_hint, TensorType(shape, made.type.dtype), made.span)
    if not isinstance(made, Call):
        return made
    filled = relay.full(made.args[0], shape, made.type.dtype)
    filled.span = made.span
    return filled
