"""The classes that a written module consists of, before they are text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from serde.core.records import dataclass, field, replace
from serde.torch import program as tree
from serde.torch.names import attribute, is_free
from serde.torch.program import Expression, Statement, TorchProgram
from serde.torch.written.scopes import shorten_names
from serde.torch.written.tidy import nest_activations

__all__ = [
    "BlockMember", "ClassDef", "FunctionMember", "HeldMember", "LayerMember", "ListMember",
    "Member", "NumberMember", "main_class",
]  # fmt: skip

_POSITIONAL: Final = (
    "in_channels", "out_channels", "kernel_size", "in_features", "in1_features", "in2_features",
    "out_features", "num_features", "normalized_shape", "num_groups", "num_channels",
    "num_embeddings", "embedding_dim", "input_size", "hidden_size", "num_parameters", "embed_dim",
    "num_heads", "p",
)  # fmt: skip
"""Arguments of layers that are written without their names."""


_DEFAULTS: Final = {
    "groups": 1, "bias": True, "output_padding": 0, "dilation": 1, "padding": 0, "stride": 1,
    "padding_mode": "zeros", "num_layers": 1, "dropout": 0.0, "bidirectional": False,
    "batch_first": False, "affine": True, "track_running_stats": True, "elementwise_affine": True,
}  # fmt: skip
"""Arguments of layers that are left out where they say the same."""


@dataclass(slots=True)
class LayerMember:
    """A layer of PyTorch.

    Attributes:
        kind: Its class.
        arguments: Arguments of its constructor by name.
        weights: Keys of weights by the names of its parameters and buffers.
        fixed: Parameters that do not train.
        titles: Its name in the source, alone.
    """

    kind: str
    arguments: tuple[tuple[str, Expression], ...]
    weights: Mapping[str, str]
    fixed: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    def constructor(self) -> tree.Apply:
        """Return the expression that makes it."""
        first = [each for name, each in self.arguments if name in _POSITIONAL]
        rest = [
            (name, each)
            for name, each in self.arguments
            if name not in _POSITIONAL and not self._is_default(name, each)
        ]
        return tree.Apply(self.kind, tuple(first), tuple(rest))

    def _is_default(self, name: str, value: Expression) -> bool:
        """Whether an argument says what holds without it; a few layers have other defaults."""
        if "Pool" in self.kind or (name == "affine" and "InstanceNorm" in self.kind):
            return False
        if name not in _DEFAULTS or not isinstance(value, tree.Literal):
            return False
        default = _DEFAULTS[name]
        return value.value == default and isinstance(value.value, type(default))

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of its weights, and where these are in it."""
        for name, key in self.weights.items():
            yield key, name


@dataclass(slots=True)
class HeldMember:
    """A parameter or a buffer of the class itself.

    Attributes:
        key: The key of the weight.
        shape: Its lengths.
        dtype: Its dtype.
        trained: Whether it is a parameter.
    """

    key: str
    shape: tuple[Expression, ...]
    dtype: str
    trained: bool

    def constructor(self) -> Expression:
        """Return the expression that makes a tensor like it."""
        kind = () if self.dtype == "float32" else (("dtype", tree.Dtype(self.dtype)),)
        made = tree.Apply("torch.zeros", self.shape or (tree.Items(()),), kind)
        return tree.Apply("nn.Parameter", (made,)) if self.trained else made

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the key of the weight, which is the member itself."""
        yield self.key, ""


@dataclass(slots=True)
class BlockMember:
    """An object of a class that is written, too.

    Attributes:
        made_of: The class.
        arguments: What its constructor is given, one for each of its parameters.
        weights: Keys of weights by their keys in that class.
        titles: Names in the source of the layers that are in it.
    """

    made_of: ClassDef
    arguments: tuple[Expression, ...]
    weights: Mapping[str, str]
    titles: tuple[str, ...] = ()

    def constructor(self) -> tree.Apply:
        """Return the expression that makes it."""
        pairs = zip(self.made_of.parameters, self.arguments, strict=True)
        if len(self.arguments) <= 3:
            return tree.Apply(self.made_of.name, self.arguments)
        return tree.Apply(self.made_of.name, (), tuple(pairs))

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of its weights, and where these are in it."""
        inner = self.made_of.places()
        for key, outer in self.weights.items():
            yield outer, inner[key]


@dataclass(slots=True)
class FunctionMember:
    """A function without weights, as a module in ``nn.Sequential``."""

    made: tree.Apply

    def constructor(self) -> tree.Apply:
        """Return the expression that makes it."""
        return self.made

    def paths(self) -> Iterator[tuple[str, str]]:
        """It has no weights."""
        yield from ()


@dataclass(slots=True)
class ListMember:
    """``nn.Sequential`` or ``nn.ModuleList``."""

    kind: str
    items: Sequence[LayerMember | BlockMember | FunctionMember]

    def constructor(self) -> tree.Apply:
        """Return the expression that makes it; blocks that are equal are counted."""
        made = tuple(each.constructor() for each in self.items)
        if self.kind == "nn.ModuleList":
            same = len(set(made)) == 1 and len(made) > 2
            return tree.Apply(
                self.kind, (tree.Repeated(made[0], len(made)) if same else tree.Items(made, True),)
            )
        items: list[Expression] = []
        blocks = [isinstance(each, BlockMember) for each in self.items]
        for (each, is_block), group in groupby(zip(made, blocks, strict=True)):
            many = [each for _ in group]
            counted = is_block and len(many) > 2
            items += [tree.Repeated(each, len(many), True)] if counted else many
        return tree.Apply(self.kind, tuple(items))

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the keys of its weights, and where these are in it."""
        for place, item in enumerate(self.items):
            yield from ((key, f"{place}.{path}") for key, path in item.paths())


@dataclass(slots=True)
class NumberMember:
    """A number that the constructor is given and ``forward`` reads."""

    value: Expression

    def constructor(self) -> Expression:
        """Return the expression that it is."""
        return self.value

    def paths(self) -> Iterator[tuple[str, str]]:
        """It has no weights."""
        yield from ()


Member: TypeAlias = (
    LayerMember | HeldMember | BlockMember | FunctionMember | ListMember | NumberMember
)


@dataclass(slots=True, eq=False)
class ClassDef:
    """A class of a module.

    Attributes:
        name: Its name.
        parameters: Parameters of its constructor.
        members: What the constructor sets, by name.
        inputs: Variables that ``forward`` is given.
        body: What it does.
        results: What it returns.
    """

    name: str
    parameters: list[str] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)
    inputs: Sequence[str] = ()
    body: list[Statement] = field(default_factory=list)
    results: Sequence[Expression] = ()

    def places(self) -> dict[str, str]:
        """Return where weights are in an object of the class, by their keys."""
        return {
            key: f"{name}.{path}" if path else name
            for name, member in self.members.items()
            for key, path in member.paths()
        }

    def join(self, names: Sequence[str], wanted: str, joined: ListMember) -> str:
        """Put a list where the first of its members was, and return what it is called."""
        gone = frozenset(names)
        name = attribute(wanted, (each for each in self.members if each not in gone))
        members: dict[str, Member] = {}
        for each, member in self.members.items():
            if each == names[0]:
                members[name] = joined
            elif each not in gone:
                members[each] = member
        self.members = members
        return name


def main_class(program: TorchProgram) -> ClassDef:
    """Return the class that a whole program is.

    Members have the names of the source without what all of these begin with.
    """
    names = shorten_names([*program.layers, *program.stored.values()])
    if not all(map(is_free, names.values())):
        names = {name: name for name in names}
    members: dict[str, Member] = {}
    for name, layer in program.layers.items():
        weights, title = dict(layer.weights), (names[name],)
        made = LayerMember(layer.kind, layer.arguments, weights, layer.fixed, title)
        members[names[name]] = made
    for key, name in program.stored.items():
        weight = program.weights[key]
        shape = tuple(map(tree.Literal, weight.shape))
        members[names[name]] = HeldMember(key, shape, weight.dtype, key in program.trained)

    def rename(each: Expression) -> Expression:
        if isinstance(each, tree.Submodule):
            return tree.Submodule(names[each.name], each.arguments)
        return each

    body = nest_activations([_copy(each, rename) for each in program.body], program.results)
    inputs = [each.value for each in program.inputs]
    return ClassDef("Model", [], members, inputs, body, list(program.results))


def _copy(each: Statement, change: Callable[[Expression], Expression]) -> Statement:
    """Return a statement with changed expressions."""
    if isinstance(each, tree.Assign):
        return replace(each, value=tree.rebuild(each.value, change))
    if isinstance(each, tree.If):
        then, other = ([_copy(x, change) for x in branch] for branch in (each.then, each.other))
        return replace(each, condition=tree.rebuild(each.condition, change), then=then, other=other)
    return replace(each, body=[_copy(x, change) for x in each.body])
