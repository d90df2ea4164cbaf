"""What a converter of a layer may reach, and tensors of five axes of which one has length 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import serde.relay as relay
from serde.core import Array, budget, dataclass
from serde.coreml.neuralnetwork.message_view import MessageView, layers_of
from serde.coreml.neuralnetwork.parameters import Parameters
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Dim, Expr, TensorType, const, is_call
from serde.relay.transform.fold_shape import MAX_VALUES
from serde.walk.holes import Hole, Incomplete
from serde.walk.import_context import GraphImporter, ImportContext as BaseContext
from serde.walk.scope import Scope as BaseScope

__all__ = [
    "Facts", "ImportContext", "Scope", "add_leading_axis", "drop_leading_axis", "images",
    "is_lifted", "number",
]  # fmt: skip


_ELEMENTS = 32
"""What a tensor that a network sees costs, in elements computed."""


@dataclass
class Facts:
    """What a conversion knows of the whole model.

    Attributes:
        parameters: The weights of its layers.
        exact: Whether tensors have the axes that the model declares, and not always five.
    """

    parameters: Parameters
    exact: bool


@dataclass(eq=False)
class Scope(BaseScope[str, Expr]):
    """The tensors of a network by name; those of a network within have been copied from around.

    Attributes:
        flag: In the body of a loop, the name of what tells whether to go on with it.
        ended: Whether an iteration ends here, so that no layers follow.
    """

    flag: str = ""
    ended: bool = False


class ImportContext(BaseContext):
    """What a converter of one layer may reach.

    Attributes:
        exact: Whether tensors have the axes that the model declares, and not always five.
        forks: Whether the iteration of a loop may end in the layer, which is a branch. What
            follows the layer is then a part of both branches.
    """

    _scope: Scope

    def __init__(
        self,
        node: str,
        outputs: int,
        following: Sequence[MessageView] | None,
        walk: GraphImporter,
        scope: Scope,
        facts: Facts,
    ) -> None:
        super().__init__(1, node, outputs, walk, scope)
        self.exact = facts.exact
        self.forks = following is not None
        self._following = following
        self._facts = facts

    def weight(self, part: MessageView | None, shape: tuple[int, ...], *, axis: int = 0) -> Expr:
        """Return the values of a ``WeightParams`` as a tensor of float32.

        Args:
            part: The message; None where the layer has none.
            shape: Lengths of the axes.
            axis: The axis that scales of quantised values go along.

        Raises:
            FormatError: The values do not fill the shape.
            Unsupported: There is no such message.
        """
        if part is None:
            raise Unsupported("its weights are missing")
        return self._facts.parameters.read(part, shape, axis)

    def small(self, part: MessageView | None, shape: tuple[int, ...]) -> Expr:
        """Return the values of a ``WeightParams``, as a constant where they are few."""
        found = self.weight(part, shape)
        if math.prod(shape) > MAX_VALUES or self._assembly.weight(found) is None:
            return found
        return Constant(self.constant(found))

    def length(self, part: MessageView) -> int:
        """Return how many values a ``WeightParams`` that is not quantised has."""
        return self._facts.parameters.length(part)

    def values(self) -> Mapping[str, Expr]:
        """Return the tensors that there are, by name."""
        return self._scope.values

    def define(self, name: str, value: Expr) -> None:
        """Give a name to a tensor, whatever had it before."""
        self._scope.values[name] = self.fold(value)

    def network(
        self, part: MessageView, values: Mapping[str, Expr] | None = None, *, flag: str = ""
    ) -> dict[str, Expr]:
        """Convert a network of a loop; return the tensors that there are after it.

        Args:
            part: The network.
            values: Tensors that stand for those around it.
            flag: Of a body, the name of what tells whether to go on after the iteration.

        Raises:
            Incomplete: Some of its layers cannot be converted.
        """
        return self._network(layers_of(part), values or {}, flag)

    def branch(self, part: MessageView | None) -> dict[str, Expr]:
        """Convert a branch, which may have no layers; return the tensors that there are after it.

        Raises:
            Incomplete: Some of its layers cannot be converted.
            LimitError: The ways through the body of a loop branch too often.
        """
        layers = [] if part is None else layers_of(part)
        if self._following is not None:
            budget().check("depth", self._scope.depth + 2, "an iteration that ends in branches")
            layers = [*layers, *self._following]
        return self._network(layers, {}, self._scope.flag)

    def _network(
        self, layers: Sequence[MessageView], values: Mapping[str, Expr], flag: str
    ) -> dict[str, Expr]:
        """Convert layers within the layer; return the tensors that there are after them."""
        # Each network gets a table of all tensors around it: many in a large model are quadratic.
        tensors = len(self._scope.values)
        budget().draw("elements", _ELEMENTS * tensors, f"a network that sees {tensors:,} tensors")
        seen = {**self._scope.values, **values}
        inner = self._scope.inner(self.node, parent=None, values=seen, flag=flag, ended=False)
        self._importer.subgraph(layers, inner, ())
        if any(isinstance(x, Hole) and x is not seen.get(name) for name, x in inner.values.items()):
            raise Incomplete
        return inner.values

    def end(self, *, again: bool) -> None:
        """End the iteration of the loop that is around the layer.

        Args:
            again: Whether another may follow.

        Raises:
            Unsupported: The layer is not in the body of a loop.
        """
        flag = self._scope.flag
        if not flag:
            raise Unsupported("it is not in the body of a loop")
        if not again:
            self._scope.values[flag] = const(False, "bool")
        self._scope.ended = True

    def integers(self, x: Expr) -> Expr:
        """Return a tensor of whole numbers as int32: what was cast to float32, if it was."""
        if is_call(x, "cast"):
            inner = x.args[0]
            if isinstance(inner.type, TensorType) and inner.type.dtype in ("int32", "int64"):
                return self.fold(relay.cast(inner, "int32"))
        return self.fold(relay.cast(x, "int32"))

    def whole(self, x: Expr) -> tuple[int, ...]:
        """Return the elements of a constant tensor of whole numbers.

        Raises:
            Unsupported: It is computed when the model runs.
        """
        values: Array = self.constant(x)
        return tuple(int(each) for each in values.reshape(-1))

    def at_least(self, x: Expr, rank: int) -> tuple[Dim, ...]:
        """Return the shape of a tensor that must have some axes.

        Raises:
            Unsupported: It has fewer.
        """
        shape = self.type(x).shape
        if len(shape) < rank:
            raise Unsupported(f"expected at least {rank} axes, found {len(shape)}")
        return shape


def number(value: float) -> Expr:
    """Return a constant of float32."""
    return const(np.float32(value))


def is_lifted(x: Expr) -> bool:
    """Whether a tensor has been given its sequence axis by :func:`add_leading_axis`."""
    return (
        is_call(x, "expand_dims")
        and x.attrs["axis"] == 0
        and x.attrs["num_newaxis"] == 1
        and isinstance(x.type, TensorType)
        and x.type.rank == 5
    )


def add_leading_axis(x: Expr) -> Expr:
    """Return a tensor of four axes with one of length 1 before them."""
    return relay.expand_dims(x, axis=0)


def drop_leading_axis(x: Expr) -> Expr:
    """Return what :func:`add_leading_axis` made a tensor of."""
    return x.args[0] if isinstance(x, Call) else x


def images(ctx: ImportContext, x: Expr) -> tuple[Expr, Callable[[Expr], Expr]]:
    """Return a tensor as a batch of images, and what gives such a batch the axes of the tensor.

    Raises:
        Unsupported: It has fewer than three axes, or two lengths before them that are symbols.
    """
    shape = ctx.at_least(x, 3)
    if len(shape) == 4:
        return x, lambda y: y
    if len(shape) == 3:
        return relay.expand_dims(x, axis=0), lambda y: relay.squeeze(y, axis=[0])
    if is_lifted(x):
        return drop_leading_axis(x), add_leading_axis
    sequence, batch = shape[:2]
    if isinstance(sequence, int):
        parts = [sequence, batch if isinstance(batch, int) else -1]
    elif isinstance(batch, int):
        parts = [-1, batch]
    else:
        raise Unsupported("needs a fixed length of sequence or batch")
    return (relay.reshape(x, (-3, -2)), lambda y: relay.reshape(y, (-4, *parts, -2)))
