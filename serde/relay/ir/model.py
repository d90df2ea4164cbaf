"""What passes between bridges: a module, its weights, and what is known about the model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any as AnyValue, Final

from serde.core import Array, Weight, dataclass, field, replace
from serde.relay.ir import hooks
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TupleType
from serde.relay.ir.visit import post_order

__all__ = [
    "METADATA", "TRAINING_HEADS", "TRAINING_NODES", "ModelMeta", "OpenedLengths", "RelayModel",
]  # fmt: skip

TRAINING_NODES: Final = "training.nodes"
"""Fact of a model: JSON of what is unusual in training, by node and then by attribute.

``momentum`` is the share that a batch leaves of a batch normalisation's statistics, 0.9 where
nothing is said; with ``use_global_stats`` training normalises by these, too. ``axes`` are those
along which a dropout drops all or nothing, ``p`` what drops out between recurrent layers.
"""

TRAINING_HEADS: Final = "training.heads"
"""Fact of a model: JSON of the operators that outputs are losses of, by output."""


METADATA: Final = "metadata."
"""What names of facts begin with that the owner of a model added to it."""


@dataclass(frozen=True)
class OpenedLengths:
    """Lengths of a source that its reader was told to take for others.

    Attributes:
        lengths: The length in the source by the symbol that stands for it now.
        batch: The symbol that counts the entries of a batch, of which the source has one.
        inputs: The axis of each input that does.
        outputs: The axis of each output that does.
        rewritten: Whether the graph has been changed for it, which the source's engine knows
            nothing of.
    """

    lengths: Mapping[str, int]
    batch: str | None
    inputs: Mapping[str, int]
    outputs: tuple[int | None, ...]
    rewritten: bool


@dataclass(frozen=True)
class ModelMeta:
    """Facts about a model that its module does not hold.

    Attributes:
        inputs: Names of the inputs, in order; the other parameters of ``main`` are weights.
        outputs: Names of the outputs, in order.
        source_format: Format the model came from.
        source_version: Version of that format, or of what wrote it.
        description: Text for people.
        labels: Class labels of a classifier, in order of the scores.
        extra: Further facts by name, for formats that have a place for them.
        opened: Lengths that the source has otherwise, if the caller gave others.
        fixed: Values of inputs of the source that are none here.
        states: Inputs that the next call is given, by the outputs that become them: a cache.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    source_format: str = ""
    source_version: str = ""
    description: str = ""
    labels: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    opened: OpenedLengths | None = None
    fixed: Mapping[str, Array] = field(default_factory=dict, compare=False, repr=False)
    states: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def metadata(self) -> dict[str, str]:
        """What the owner of the model added to it, by name."""
        return {
            name.removeprefix(METADATA): text
            for name, text in self.extra.items()
            if name.startswith(METADATA)
        }


@dataclass(frozen=True)
class RelayModel:
    """A model as Relay.

    Attributes:
        mod: The module; weights are parameters of ``main``.
        params: Weights by the name of their parameter.
        meta: Names and facts.
        values: Values of the module by the names that the source gives them, where the model
            is as its format says it; a model with another module has none.
    """

    mod: IRModule
    params: Mapping[str, Weight]
    meta: ModelMeta = field(default_factory=ModelMeta)
    values: Mapping[str, Expr] = field(default_factory=dict, repr=False, compare=False)

    @property
    def main(self) -> Function:
        """The entry function."""
        return self.mod["main"]

    def inputs(self) -> list[Var]:
        """Return the parameters of ``main`` that are not weights, in order."""
        return [param for param in self.main.params if param.name_hint not in self.params]

    @property
    def is_whole(self) -> bool:
        """Whether it is as a bridge gives it: typed, with weights, and a name for each output."""
        names = [param.name_hint for param in self.main.params]
        result = self.main.body.type
        count = len(result.fields) if isinstance(result, TupleType) else 1
        return (
            self._is_typed()
            and len(set(names)) == len(names)
            and self.params.keys() <= set(names)
            and all(isinstance(weight, Weight) for weight in self.params.values())
            and len(self.meta.outputs) == count
        )

    def _is_typed(self) -> bool:
        if self.mod.checked:
            return True
        nodes = post_order(self.main)
        return len(self.mod.functions) == 1 and all(node.type is not None for node in nodes)

    def _repr_html_(self) -> str:
        """Return inputs, outputs, operators and weights for a notebook."""
        found: str = hooks.showing().model_html(self)
        return found

    def evolve(self, **changes: AnyValue) -> RelayModel:
        """Return a copy with some attributes replaced."""
        if "mod" in changes:
            changes.setdefault("values", {})
        return replace(self, **changes)
