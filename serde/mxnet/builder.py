"""MXNet's graph while it is written: nodes, parameters, auxiliary states and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, ArrayWeight, Weight, dataclass, field, replace
from serde.errors import ConverterBug, Unsupported
from serde.mxnet.attributes import encode_attribute
from serde.mxnet.model import DTYPES, Entry, Graph, Node
from serde.mxnet.operators import DYNAMIC
from serde.mxnet.symbol_json import plain_name
from serde.mxnet.upgrades import AUXILIARY
from serde.relay.ir import TensorType, UniqueNames
from serde.walk.table import ConverterTable

__all__ = ["GraphBuilder", "Subgraph", "Value"]


_FUSED_ACTIVATIONS = frozenset({
    "Activation", "LeakyReLU", "abs", "clip", "exp", "sqrt", "square",
})  # fmt: skip
"""What MXNet lets oneDNN compute together with the layer in front of it, beside BatchNorm."""

_NEEDS_ELEMENTS = frozenset({
    "CTCLoss", "Convolution", "Deconvolution", "FullyConnected", "Pooling", "RNN", "dot",
    "gather_nd",
})  # fmt: skip
"""What fails in MXNet, or ends the process, where an operand has no elements."""

_MUST_BE_ASKED = frozenset({
    "BilinearSampler", "GridGenerator", "_contrib_ModulatedDeformableConvolution",
    "_contrib_MultiProposal", "_contrib_Proposal", "hard_sigmoid",
})  # fmt: skip
"""What fails in MXNet if nobody asks for its result."""

_ASKS_FOR_NO_VALUES = {
    "zeros_like": 0, "ones_like": 0, "_identity_with_attr_like_rhs": 1, "reshape_like": 1,
}  # fmt: skip
"""The operand that an operator does not ask for, as it takes the shape alone."""

_WITHOUT_GRADIENT = frozenset({"_contrib_RROIAlign", "_slice_assign"})
"""What stops Gluon, which asks for gradients of all it runs, unless none comes back to it."""

_PASSES_ON = frozenset({"BlockGrad", "Flatten", "Reshape", "_copy", "_npx_reshape", "expand_dims"})
"""What asks for nothing if nobody asks for its result, as both are one in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of MXNet's graph.

    Two are equal if they are the same output of a node, or constants with the same data.

    Attributes:
        node: Number of the node, or -1 for a constant that no node uses yet.
        index: Which of its outputs.
        type: Its Relay type, where it stands for a Relay expression.
        data: Its value, where it is a constant of the graph.
    """

    node: int
    index: int = 0
    type: TensorType | None = None
    data: Array | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            return NotImplemented
        return self._place == other._place and self.data is other.data

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[int, int, TensorType | None]:
        return self.node, self.index, self.type


@dataclass(slots=True)
class _Draft:
    op: str
    name: str
    attrs: dict[str, str] = field(default_factory=dict)
    inputs: list[Entry] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)
    subgraphs: tuple[Graph, ...] = ()
    outputs: int = 1
    source: str = ""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph inside a node.

    Attributes:
        graph: The graph.
        captured: What it takes from around it, by the name of its variable.
    """

    graph: Graph
    captured: Mapping[str, Value]

    @property
    def variables(self) -> list[str]:
        """Names of its variables in MXNet's order."""
        return [node.name for node in self.graph.variables]


class GraphBuilder:
    """Collects the nodes of one graph, under names that occur once.

    Args:
        table: The converters; a node is written in a form that its importer reads.
        names: What the outputs are called.
        np_shape: Whether MXNet runs the graph with NumPy's shapes. If not, a constant without
            axes gets one.
        outer: What collects the graph around this one, where this is a subgraph: it has no
            parameters of its own.

    Attributes:
        captured: What a subgraph takes from around it, by the name of the variable inside.
        arg: Parameters by name; those that :meth:`finish` finds used, once it has run.
        aux: Those that an operator updates itself, likewise.
        constants: Names of parameters that are constants of the graph.
    """

    def __init__(
        self,
        table: ConverterTable,
        names: Sequence[str],
        *,
        np_shape: bool,
        outer: GraphBuilder | None = None,
    ) -> None:
        self.np_shape = np_shape
        self.outer = outer
        self.captured: dict[str, Value] = {}
        self.arg: dict[str, Weight] = {}
        self.aux: dict[str, Weight] = {}
        self.constants: set[str] = set()
        self._table = table
        self._drafts: list[_Draft] = []
        self._names = UniqueNames()
        self._constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self._inner: dict[tuple[int, int], Value] = {}
        self._outputs = [plain_name(name) for name in names]

    def reserve(self, name: str) -> str:
        """Take and return `name`, or the first of ``name_1``, ``name_2``... that is free."""
        return self._names.reserve(plain_name(name))

    def variable(
        self, name: str, type_: TensorType, weight: Weight | None, hidden: Mapping[str, str]
    ) -> Value:
        """Add an input or, with its `weight`, a parameter."""
        name = self.reserve(name)
        if weight is not None:
            self.arg[name] = weight
        self._drafts.append(_Draft("null", name, hidden=dict(hidden)))
        return Value(len(self._drafts) - 1, 0, type_)

    def variables(self, names: Sequence[str], types: Sequence[TensorType]) -> list[Value]:
        """Add the variables of a subgraph."""
        return [self.variable(*each, None, {}) for each in zip(names, types, strict=True)]

    def name_of(self, variable: Value) -> str:
        """Return what a variable is called, which it stays."""
        return self._drafts[variable.node].name

    def capture(self, value: Value) -> Value:
        """Return the variable that stands for a value of the graph around this one."""
        if value.data is not None:
            return value
        key = (value.node, value.index)
        if key not in self._inner:
            name = self.reserve("captured")
            self.captured[name] = value
            self._drafts.append(_Draft("null", name))
            self._inner[key] = Value(len(self._drafts) - 1, 0, value.type)
        return replace(self._inner[key], type=value.type)

    def is_weight(self, value: Value) -> bool:
        """Whether a value is a parameter as it is."""
        if self.outer is not None and value.node >= 0:
            taken = self.captured.get(self._drafts[value.node].name)
            return taken is not None and (taken.data is not None or self.outer.is_weight(taken))
        return value.node >= 0 and self._drafts[value.node].name in self.arg

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int,
        attrs: Mapping[str, AnyValue],
        source: str,
        subgraphs: tuple[Graph, ...] = (),
    ) -> tuple[Value, ...]:
        """Append a node and return its outputs.

        Raises:
            ConverterBug: The importer of the operator would not take such a node.
            Unsupported: An operand has no elements, and MXNet fails on that.
        """
        types = [value.type for value in inputs if value is not None and value.type is not None]
        if op in _NEEDS_ELEMENTS and any(0 in type_.shape for type_ in types):
            raise Unsupported(f"MXNet has no {op} of a tensor without elements")
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        text = {key: encode_attribute(value) for key, value in attrs.items() if value is not None}
        self._check(op, len(inputs), text)
        entries = [self._entry(op, value) for value in inputs]
        name = self.reserve(source or op.lower())
        draft = _Draft(op, name, text, entries, subgraphs=subgraphs, outputs=outputs, source=source)
        self._drafts.append(draft)
        return tuple(Value(len(self._drafts) - 1, index) for index in range(outputs))

    def absorb(self, value: Value, op: str, source: str) -> Value:
        """Return what a node of `op` takes, if `value` is its result and it has this source.

        The node that does both then has the name of the source; `value` itself otherwise.
        """
        draft = self._drafts[value.node] if value.node >= 0 else None
        if draft is None or not source or (draft.op, draft.source) != (op, source):
            return value
        if draft.name == source:
            draft.name = self.reserve(f"{source}_{op.lower()}")
            self._names.release(source)
        entry = draft.inputs[0]
        return Value(entry.node, entry.index)

    def _check(self, op: str, inputs: int, attrs: Mapping[str, str]) -> None:
        """Compare a node with what the importer of its operator takes, where there is one."""
        converter = self._table.importer(op, 1)
        if converter is None:
            return
        unknown = sorted(attrs.keys() - converter.attributes.keys() - converter.ignored)
        if unknown:
            raise ConverterBug(f"{op} has no attribute {unknown[0]}")
        if converter.uses is None and inputs > (converter.accepted or inputs):
            raise ConverterBug(f"{op} does not take {inputs} inputs")
        if inputs < converter.required:
            raise ConverterBug(f"{op} does not take {inputs} inputs")

    def _entry(self, op: str, value: Value | None) -> Entry:
        """Return where `value` stands; a constant becomes a parameter, equal ones are one."""
        if value is None:
            raise ConverterBug(f"{op}: an operand in the middle is absent")
        if value.node >= 0 or value.data is None:
            return Entry(value.node, value.index)
        data = value.data if self.np_shape else np.atleast_1d(value.data)
        key = (data.dtype.str + data.dtype.name, data.shape, data.tobytes())
        if key not in self._constants:
            name = self.reserve("const")
            if self.outer is None:
                self.arg[name] = ArrayWeight(np.ascontiguousarray(data).reshape(data.shape))
                self.constants.add(name)
            else:
                self.captured[name] = value
            code = str(DTYPES.index(data.dtype.name))
            hidden = {"__shape__": str(data.shape), "__dtype__": code}
            self._drafts.append(_Draft("null", name, hidden=hidden))
            self._constants[key] = len(self._drafts) - 1
        return Entry(self._constants[key], 0)

    def finish(self, outputs: Sequence[Value]) -> Graph:
        """Return the graph with `outputs`, in the order and with the names MXNet gives it."""
        heads = self._heads(outputs)
        order = self._needed([head.node for head in heads])
        self._split_states(order)
        self._separate_layers(order, heads)
        self._ask_for_results(order)
        self._block_gradients(order)
        order = self._needed([head.node for head in heads])
        place = {old: new for new, old in enumerate(order)}
        nodes = tuple(self._node(self._drafts[old], place) for old in order)
        used = {node.name for node in nodes if node.is_variable}
        self.arg = {name: weight for name, weight in self.arg.items() if name in used}
        self.aux = {name: weight for name, weight in self.aux.items() if name in used}
        marked = self.np_shape
        attrs: dict[str, object] = {"is_np_shape": 1} if marked else {}
        return Graph(nodes, tuple(Entry(place[h.node], h.index) for h in heads), attrs=attrs)

    def subgraph(self, outputs: Sequence[Value]) -> Subgraph:
        """Return the graph with `outputs`, and what it takes from around it.

        They may be fewer than names were given for.
        """
        del self._outputs[len(outputs) :]
        return Subgraph(self.finish(outputs), dict(self.captured))

    def _heads(self, outputs: Sequence[Value]) -> list[Entry]:
        """Return the heads: a node takes the name of its output, anything else is copied.

        MXNet calls the only output of a node ``<node>_output``, and a variable as it is.
        """
        own = Counter(value.node for value in outputs)
        heads = []
        for value, name in zip(outputs, self._outputs, strict=True):
            entry = self._entry("output", value)
            draft = self._drafts[entry.node]
            if draft.op == "null" and draft.name == name:
                heads.append(entry)
                continue
            wanted = name.removesuffix("_output")
            if draft.op == "null" or draft.outputs > 1 or own[value.node] > 1:
                self._drafts.append(_Draft("_copy", "", inputs=[entry]))
                entry = Entry(len(self._drafts) - 1, 0)
                draft = self._drafts[entry.node]
            self._names.release(draft.name)
            draft.name = self._claim(wanted, draft)
            heads.append(entry)
        return heads

    def _claim(self, name: str, owner: _Draft) -> str:
        """Take `name` for a node, from another node if need be, never from a variable."""
        if name not in self._names:
            self._names.take(name)
            return name
        other = next(draft for draft in self._drafts if draft.name == name and draft is not owner)
        if other.op == "null":
            return self.reserve(name)
        other.name = self.reserve(name)
        return name

    def depend(self, outputs: Sequence[Value], variables: Sequence[Value]) -> bool:
        """Whether some of `outputs` need some of `variables`."""
        roots = [value.node for value in outputs if value.node >= 0]
        return not {value.node for value in variables}.isdisjoint(self._needed(roots))

    def _needed(self, roots: Sequence[int]) -> list[int]:
        """Return the nodes that `roots` lead to, inputs first, as MXNet orders them."""
        order: list[int] = []
        seen: set[int] = set()
        for root in roots:
            if root in seen:
                continue
            seen.add(root)
            stack = [(root, iter(self._drafts[root].inputs))]
            while stack:
                node, pending = stack[-1]
                child = next((e.node for e in pending if e.node not in seen), None)
                if child is None:
                    order.append(node)
                    stack.pop()
                    continue
                seen.add(child)
                stack.append((child, iter(self._drafts[child].inputs)))
        return order

    def _split_states(self, order: Sequence[int]) -> None:
        """Make an auxiliary state of every parameter that an operator updates.

        One that serves elsewhere as well is there twice: MXNet tells the two kinds apart.
        """
        states: dict[int, list[tuple[_Draft, int]]] = {}
        others: set[int] = set()
        for number in order:
            draft = self._drafts[number]
            places = AUXILIARY.get(draft.op, ())
            for place, entry in enumerate(draft.inputs):
                if place in places:
                    states.setdefault(entry.node, []).append((draft, place))
                else:
                    others.add(entry.node)
        for number, uses in states.items():
            variable = self._drafts[number]
            if variable.name not in self.arg:
                raise Unsupported(f"{variable.name} is updated by MXNet but is no parameter")
            if number not in others:
                self.aux[variable.name] = self.arg.pop(variable.name)
                continue
            name = self.reserve(f"{variable.name}_state")
            self.aux[name] = self.arg[variable.name]
            self._drafts.append(_Draft("null", name))
            for draft, place in uses:
                draft.inputs[place] = Entry(len(self._drafts) - 1, 0)

    def _separate_layers(self, order: Sequence[int], heads: Sequence[Entry]) -> None:
        """Put a sum of one behind a layer whose result serves besides what is fused with it.

        Executors of MXNet 1.9.1 fuse the two nevertheless, and a copy too, and give one result for
        both. What else takes the result of a convolution, or of its normalisation, makes no
        difference, unless it is an output.
        """
        drafts = [self._drafts[number] for number in order]
        uses = Counter([*heads, *(entry for draft in drafts for entry in draft.inputs)])
        given = {*heads, *(draft.inputs[0] for draft in drafts if draft.op == "_copy")}
        sums: dict[Entry, Entry] = {}
        for draft in drafts:
            if draft.op not in _FUSED_ACTIVATIONS and draft.op != "BatchNorm":
                continue
            entry = draft.inputs[0]
            layer = self._layer(entry)
            if uses[entry] < 2 or not (
                (layer == "FullyConnected" and draft.op != "BatchNorm")
                or (layer == "Convolution" and entry in given)
            ):
                continue
            if entry not in sums:
                sums[entry] = self._apart(entry)
            draft.inputs[0] = sums[entry]

    def _layer(self, entry: Entry) -> str:
        """Return the operator of the layer that gives a result, normalised or not."""
        draft = self._drafts[entry.node]
        return self._drafts[draft.inputs[0].node].op if draft.op == "BatchNorm" else draft.op

    def _ask_for_results(self, order: Sequence[int]) -> None:
        """Put a sum of one where a shape alone is taken of an operator that must be asked."""
        for number in order:
            draft = self._drafts[number]
            place = _ASKS_FOR_NO_VALUES.get(draft.op, -1)
            if not 0 <= place < len(draft.inputs):
                continue
            source = self._drafts[draft.inputs[place].node]
            while source.op in _PASSES_ON:
                source = self._drafts[source.inputs[0].node]
            if source.op in _MUST_BE_ASKED:
                draft.inputs[place] = self._apart(draft.inputs[place])

    def _block_gradients(self, order: Sequence[int]) -> None:
        """Let no gradient back to operators without one, in a graph that only Gluon runs."""
        if self.outer is None and not any(self._drafts[number].op in DYNAMIC for number in order):
            return
        for number in order:
            draft = self._drafts[number]
            if draft.op not in _WITHOUT_GRADIENT:
                continue
            self._drafts.append(replace(draft, name=self.reserve(f"{draft.name}_apart")))
            inner = Entry(len(self._drafts) - 1, 0)
            self._drafts[number] = _Draft("BlockGrad", draft.name, inputs=[inner])

    def _apart(self, entry: Entry) -> Entry:
        """Return the same as `entry` from a node that MXNet fuses with no other."""
        name = self.reserve(f"{self._drafts[entry.node].name}_apart")
        self._drafts.append(_Draft("add_n", name, {"num_args": "1"}, [entry]))
        return Entry(len(self._drafts) - 1, 0)

    def _node(self, draft: _Draft, place: Mapping[int, int]) -> Node:
        return Node(
            draft.op,
            draft.name,
            draft.attrs,
            tuple(Entry(place[entry.node], entry.index) for entry in draft.inputs),
            draft.hidden,
            draft.subgraphs,
        )
