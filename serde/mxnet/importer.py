"""The walk over MXNet's graph into Relay."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import Report, dataclass, field, parse_json, pause_garbage_collection
from serde.errors import FormatError, OptionError, raise_if_refused
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import dtype_of_code
from serde.mxnet.import_context import ImportContext
from serde.mxnet.labels import label_shape, missing_text
from serde.mxnet.model import (
    DIMS_KEY,
    INPUT_KEY,
    METADATA_KEY,
    NUMBER,
    Entry,
    Graph as MxnetGraph,
    MxnetModel,
    Node,
    read_dims,
)
from serde.mxnet.ops import TABLE
from serde.mxnet.precision import precision_note
from serde.mxnet.shape_completion import ShapeCompletion, tells_lengths
from serde.mxnet.training import training_facts
from serde.relay.ir import DimLike, Expr, Foreign, ModelMeta, RelayModel, Span, Var, is_float
from serde.relay.ir.types import TensorType, Type
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.holes import Holes
from serde.walk.importer import Graph, ImportWalk, Node as WalkNode
from serde.walk.metadata import metadata_facts
from serde.walk.scope import Scope as BaseScope
from serde.walk.tracing import note_read

if TYPE_CHECKING:
    from serde.bridge.options import ImportOptions

__all__ = ["head_names", "to_relay"]

NUMBERED = frozenset(
    {
        "CTCLoss",
        "SliceChannel",
        "_contrib_quantize",
        "_contrib_quantize_v2",
        "_contrib_requantize",
        "_linalg_det",
        "_npi_norm",
        "_split_v2",
    }
)
"""Operators whose only output is still called ``<node>_output0``."""

_RANGED = ("output", "min_output", "max_output")
_QUANTIZED = (
    "act batch_norm concat conv elemwise_add elemwise_mul embedding flatten fully_connected pooling"
)
_MKLDNN = "fully_connected selfatt_qk selfatt_valatt"

OUTPUT_NAMES = {
    "BatchNorm": ("output", "mean", "var"),
    "BatchNorm_v1": ("output", "mean", "var"),
    "LayerNorm": ("output", "mean", "std"),
    "GroupNorm": ("output", "mean", "std"),
    "_contrib_BatchNormWithReLU": ("output", "mean", "var"),
    "_contrib_hawkesll": ("output", "out_state"),
    "RNN": ("output", "state_output", "statecell_output"),
    "_npi_std": ("std",),
    "_npi_var": ("var",),
    "make_loss": ("loss",),
    "_contrib_quantize_asym": ("output", "scale", "shift"),
    "_sg_mkldnn_conv": ("output", "output_min", "output_max"),
    **dict.fromkeys(map("_contrib_quantized_{}".format, _QUANTIZED.split()), _RANGED),
    **dict.fromkeys(map("_sg_mkldnn_{}".format, _MKLDNN.split()), _RANGED),
}
"""Operators whose outputs have names of their own."""

"""An integer as serde and MXNet note it on a variable."""

WEIGHTED = frozenset({"BatchNorm", "Convolution", "Deconvolution", "FullyConnected"})
"""Operators whose data has the dtype of their weight."""


@pause_garbage_collection()
def to_relay(
    model: MxnetModel, options: ImportOptions, report: Report, *, keep_labels: bool = False
) -> RelayModel:
    """Return the graph as Relay.

    Inputs that only training needs, such as labels, are left out: an operator
    whose further inputs do not bear on its result does not lead to them.

    Args:
        model: The graph and its parameters.
        options: Shapes and dtypes of inputs, and what is allowed.
        report: Filled with gaps.
        keep_labels: Whether those inputs become inputs that nothing uses.

    Raises:
        FormatError: There are parameters, but no graph.
        OptionError: An input's shape is missing, or an option names no input.
        UnsupportedModelError: Some nodes cannot be converted.
    """
    if model.lacks is not None:
        raise FormatError(model.lacks, path=model.source)
    _report_weights(model, report)
    walk = _Walk(model, report, ImportFallback.of("mxnet", options))
    report.nodes = sum(node.op != "null" for node in model.graph.nodes)
    scope = Scope(source=model.source)
    main = walk.read(model.graph, scope)
    inputs = walk.variables(scope, options)
    outputs = walk.run(main, scope)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    if keep_labels:
        inputs = walk.with_labels(inputs, scope, options)
    inputs = _in_noted_order(inputs, model.graph)
    names = tuple(_name_of(entry, scope) for entry in model.graph.heads)
    meta = ModelMeta(
        inputs=tuple(each.name_hint for each in inputs),
        outputs=names,
        source_format="mxnet",
        source_version=model.version,
        extra={**training_facts(model.graph, names), **_metadata(model.graph, report)},
    )
    return walk.assembly.model(inputs, outputs, meta, _named_values(scope))


def _metadata(graph: MxnetGraph, report: Report) -> dict[str, str]:
    """Return what the owner of a model added to it before it was written here."""
    try:
        found = parse_json(str(graph.attrs.get(METADATA_KEY, "{}")))
    except ValueError:
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return metadata_facts(((k, text) for k, text in pairs if isinstance(text, str)), report)


def _report_weights(model: MxnetModel, report: Report) -> None:
    """Say which parameter file was taken, that there was a choice, and how it is computed."""
    if model.precision is not None:
        report.notes.append(precision_note(model))
    if model.epoch is None:
        return
    report.facts["epoch"] = model.epoch
    others = [str(epoch) for epoch in model.epochs if epoch != model.epoch]
    if others:
        report.notes.append(
            f"weights of epoch {model.epoch}; --epoch (epoch=) chooses {', '.join(others)}"
        )


@dataclass(eq=False)
class Scope(BaseScope[int, Sequence[Expr]]):
    """What each node of a graph gives, by its place.

    Attributes:
        graph: The graph.
        needed: For each node, how many outputs the heads need.
        open_ended: Whether variables may be replaced by longer ones.
    """

    graph: MxnetGraph = field(default=MxnetGraph((), ()))
    needed: Sequence[int] = ()
    open_ended: bool = False

    def value(self, entry: Entry) -> Expr:
        """Return one output of a node."""
        value = self.values[entry.node][entry.index]
        note_read(self, entry.node, value, entry.index)
        return value


class _Walk(ImportWalk[MxnetGraph, int, Scope]):
    """State of one conversion."""

    def __init__(self, model: MxnetModel, report: Report, fallback: ImportFallback) -> None:
        super().__init__(report, Assembly(folding=False), fallback)
        self._model = model
        self._np_shape = "is_np_shape" in model.graph.attrs
        self._as_numpy = bool(model.graph.attrs.get("is_np_shape", 0))
        self._completed: dict[tuple[int, tuple[Type | None, ...]], list[Expr]] = {}
        self._places: dict[str, list[int]] = {}
        for index, node in enumerate(model.graph.nodes):
            if node.is_variable:
                self._places.setdefault(node.name, []).append(index)

    def variables(self, scope: Scope, options: ImportOptions) -> list[Var]:
        """Make a variable of every weight and input that is needed; return the inputs."""
        values = {**self._model.arg, **self._model.aux}
        weights: dict[str, Var] = {}
        free: dict[str, Node] = {}
        unused = set()
        for index, node in enumerate(scope.graph.nodes):
            if not node.is_variable:
                continue
            if not scope.needed[index]:
                unused.add(node.name)
            elif node.name not in values:
                free.setdefault(node.name, node)
            else:
                if node.name not in weights:
                    weights[node.name] = self.assembly.variable(values[node.name], node.name)
                scope.define(index, [weights[node.name]])
        given = options.input_shapes, options.input_dtypes
        return self.inputs(free.values(), scope, *given, weights=values, unused=unused)

    def declare(
        self, entry: Node, shape: Sequence[DimLike] | None, dtype: str | None, scope: Scope
    ) -> Var | None:
        """Return the variable for an input, of all nodes of its name."""
        if shape is None:
            shape = _declared_shape(entry, self._as_numpy)
        if shape is None:
            return None
        places = self._places[entry.name]
        dtype = dtype or _declared_dtype(entry) or self._implied_dtypes.get(places[0], "float32")
        variable = Var(entry.name, TensorType(shape, dtype), Span(entry.name))
        for place in places:
            scope.define(place, [variable])
        return variable

    def missing_text(self, names: Sequence[str]) -> str:
        """Return what to say of inputs without a shape, which may be parameters that lack."""
        return missing_text(self._model, names)

    @cached_property
    def _implied_dtypes(self) -> Mapping[int, str]:
        """The dtypes of the floating weights beside which values are used first, by place."""
        found: dict[int, str] = {}
        nodes = self._model.graph.nodes
        for node in nodes:
            if canonical_name(node.op) not in WEIGHTED or len(node.inputs) < 2:
                continue
            weight = self._model.arg.get(nodes[node.inputs[1].node].name)
            if weight is not None and is_float(weight.dtype):
                found.setdefault(node.inputs[0].node, weight.dtype)
        return found

    def read(self, graph: MxnetGraph, scope: Scope) -> Graph[int]:
        """Return a graph as the walk sees it."""
        scope.graph, scope.needed = graph, _needed_outputs(graph)
        variables = [index for index, node in enumerate(graph.nodes) if node.is_variable]
        return Graph(variables, self._nodes(scope), graph.heads)

    def _nodes(self, scope: Scope) -> Iterator[WalkNode[int]]:
        for index, node in enumerate(scope.graph.nodes):
            if scope.needed[index] and not node.is_variable:
                yield WalkNode(node.op, node.name, [index], index)

    def output(self, name: Entry, scope: Scope) -> Expr:
        """Return one output of a node."""
        return scope.value(name)

    def convert(self, node: WalkNode[int], scope: Scope, label: str) -> Sequence[Sequence[Expr]]:
        """Return all that a node gives, as one value."""
        return [self._convert(node.source, scope)]

    def _convert(self, index: int, scope: Scope) -> Sequence[Expr]:
        """Return what a node gives, once its inputs have the lengths that it implies."""
        node, count = scope.graph.nodes[index], scope.needed[index]
        op = canonical_name(node.op)
        if not self._as_numpy and tells_lengths(op):
            self._completion(scope).complete(node)
        label = f"{scope.prefix}{node.name}"
        ctx = ImportContext(label, node, count, self, scope, np_shape=self._np_shape)
        inputs = [scope.value(entry) for entry in _used_inputs(node)]
        names: tuple[str, ...] = (op,)
        attributes = node.attrs
        if self.fallback.any:
            from serde.mxnet.foreign import own_attributes, user_names

            names, attributes = user_names(node, op), own_attributes(node)
        found = self.call(
            TABLE, ctx, op, inputs, attributes, names=names,
            foreign=lambda: self._foreign_node(node, inputs, label),
        )  # fmt: skip
        if len(found) < count:
            self.report.add(node.op, label, f"output {count - 1} is used but not converted")
            return Holes(count, found)
        return found

    def _foreign_node(self, node: Node, inputs: Sequence[Expr], label: str) -> Foreign:
        """Return what a node is that is kept."""
        from serde.mxnet.foreign import foreign_node

        names = label, node.op, node.attrs.get("op_type", node.op)
        return foreign_node(node, inputs, told=self.fallback.tells(*names))

    def _completion(self, scope: Scope) -> ShapeCompletion:
        return ShapeCompletion(
            scope.graph,
            scope.values,
            lambda place: self._convert(place, scope),
            lambda node, variables: self._complete_body(node, variables, scope),
            scope.open_ended,
        )

    def _complete_body(self, node: Node, variables: Sequence[Expr], scope: Scope) -> Sequence[Expr]:
        """Return variables of the first graph inside a node with the lengths that it tells.

        What was found is kept: without it, each loop within a loop would double the work.
        """
        if not node.subgraphs:
            return variables
        graph = node.subgraphs[0]
        key = id(graph), tuple(each.type for each in variables)
        if key not in self._completed:
            inner = scope.inner(f"{scope.prefix}{node.name}", parent=None, open_ended=True)
            report, self.report = self.report, Report()  # Gaps show when the node is converted.
            try:
                self.evaluate(graph, inner, variables)
            finally:
                self.report = report
            places = (place for place, each in enumerate(graph.nodes) if each.is_variable)
            self._completed[key] = [inner.values[place][0] for place in places]
        return self._completed[key]

    def evaluate(self, graph: MxnetGraph, scope: Scope, args: Sequence[AnyValue]) -> list[Expr]:
        """Return what a graph inside a node yields of the values of its variables."""
        return super().evaluate(graph, scope, [[each] for each in args])

    def with_labels(self, inputs: Sequence[Var], scope: Scope, options: ImportOptions) -> list[Var]:
        """Return inputs with those variables without a value that no result depends on."""
        values = {**self._model.arg, **self._model.aux}
        dtypes = options.input_dtypes
        found = {each.name_hint: each for each in inputs}
        implied = _label_shapes(scope)
        missing = []
        for index, node in enumerate(scope.graph.nodes):
            name = node.name
            if not node.is_variable or name in values or name in found:
                continue
            shape = options.input_shapes.get(name, _declared_shape(node, self._as_numpy))
            shape = implied.get(index) if shape is None else shape
            variable = self.declare(node, shape, dtypes.get(name, dtypes.get("")), scope)
            if variable is None:
                missing.append(name)
            else:
                found[name] = variable
        if missing:
            raise OptionError(self.missing_text(missing))
        names = dict.fromkeys(node.name for node in scope.graph.nodes if node.name in found)
        return [found[name] for name in names]


def _label_shapes(scope: Scope) -> dict[int, Sequence[DimLike]]:
    """Return the shapes that loss heads imply, by the position of the variable."""
    found: dict[int, Sequence[DimLike]] = {}
    for index, node in enumerate(scope.graph.nodes):
        if node.is_variable or len(node.inputs) < 2 or not scope.needed[index]:
            continue
        type_ = scope.value(node.inputs[0]).type
        shape = label_shape(node, type_.shape) if isinstance(type_, TensorType) else None
        if shape is not None:
            found[node.inputs[1].node] = shape
    return found


def _in_noted_order(inputs: Sequence[Var], graph: MxnetGraph) -> list[Var]:
    """Return the inputs in the order that is noted on all of them, if there is one."""
    noted = {node.name: _noted_number(node, INPUT_KEY) for node in graph.variables}
    places = {name: number for name, number in noted.items() if number is not None}
    if not {each.name_hint for each in inputs} <= places.keys():
        return list(inputs)
    return sorted(inputs, key=lambda each: places[each.name_hint])


def _named_values(scope: Scope) -> dict[str, Expr]:
    """Return what each node gives: by the node's name (and ``:1``...) and the output's.

    A name that stands for several values is left out.
    """
    found: dict[str, Expr | None] = {}
    for place, results in sorted(scope.values.items()):
        node = scope.graph.nodes[place]
        for number, value in enumerate(results):
            own = node.name if len(results) == 1 else f"{node.name}:{number}"
            for name in dict.fromkeys((own, _name_of(Entry(place, number), scope))):
                found[name] = value if found.get(name, value) is value else None
    return {name: value for name, value in found.items() if value is not None}


def _name_of(entry: Entry, scope: Scope) -> str:
    """Return the name that ``Symbol.list_outputs`` gives a head."""
    several = len(scope.values[entry.node]) > 1
    return _output_name(scope.graph.nodes[entry.node], entry.index, several)


def head_names(graph: MxnetGraph) -> tuple[str, ...]:
    """Return the names of the outputs; a node has several outputs if a further one is used."""
    used = [*graph.heads, *(entry for node in graph.nodes for entry in node.inputs)]
    several = {entry.node for entry in used if entry.index}
    return tuple(
        _output_name(graph.nodes[entry.node], entry.index, entry.node in several)
        for entry in graph.heads
    )


def _output_name(node: Node, index: int, several: bool) -> str:
    if node.op == "null":
        return node.name
    op = canonical_name(node.op)
    if op in OUTPUT_NAMES:
        return f"{node.name}_{OUTPUT_NAMES[op][index]}"
    if several or op in NUMBERED:
        return f"{node.name}_output{index}"
    return f"{node.name}_output"


def _noted_number(node: Node, key: str) -> int | None:
    """Return a small integer that is noted on a variable; None where there is none."""
    text = node.hidden.get(key, "")
    return int(text) if NUMBER.fullmatch(text) else None


def _declared_dtype(node: Node) -> str | None:
    """Return the dtype noted on a variable when it was made, if it is known."""
    code = _noted_number(node, "__dtype__")
    return None if code is None else dtype_of_code(code)


def _declared_shape(node: Node, as_numpy: bool) -> Sequence[DimLike] | None:
    """Return the shape noted on a variable when it was made, if it is known whole.

    Where MXNet has shapes of NumPy, it writes ``[2,3]`` for ``(2, 3)``.

    Args:
        node: The variable.
        as_numpy: Whether -1 stands for what is unknown, and not 0 or no axis at all.
    """
    if DIMS_KEY in node.hidden:
        return read_dims(node.hidden[DIMS_KEY])
    text = node.hidden.get("__shape__")
    if text is None or len(text) > 1000:
        return None
    try:
        shape = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    least = 0 if as_numpy else 1
    if not isinstance(shape, (list, tuple)):
        return None
    if not all(type(length) is int and length >= least for length in shape):
        return None
    return tuple(shape) if shape or as_numpy else None


def _used_inputs(node: Node) -> Sequence[Entry]:
    """Return the inputs that bear on a node's result."""
    converter = TABLE.importer(canonical_name(node.op), 1)
    if converter is None or converter.uses is None:
        return node.inputs
    return node.inputs[: converter.uses]


def _needed_outputs(graph: MxnetGraph) -> list[int]:
    """Return, for each node, how many outputs the heads need: up to the last one used."""
    needed = [0] * len(graph.nodes)
    for entry in graph.heads:
        needed[entry.node] = max(needed[entry.node], entry.index + 1)
    for index in range(len(graph.nodes) - 1, -1, -1):
        if needed[index]:
            for entry in _used_inputs(graph.nodes[index]):
                needed[entry.node] = max(needed[entry.node], entry.index + 1)
    return needed
