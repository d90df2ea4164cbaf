"""The walk over MXNet's graph into Relay."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from serde.bridge import ImportOptions
from serde.errors import FormatError, OptionError
from serde.mxnet.aliases import canonical_name
from serde.mxnet.attributes import dtype_of_code
from serde.mxnet.import_context import Completions, ImportContext, needed_outputs, used_inputs
from serde.mxnet.labels import label_shape, missing_text
from serde.mxnet.model import DIMS_KEY, INPUT_KEY, Entry, Graph, MxnetModel, Node
from serde.mxnet.ops import TABLE
from serde.mxnet.precision import precision_note
from serde.mxnet.unknown import Completion
from serde.relay.ir.collection import without_collection
from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Expr, Function, Span, Tuple, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.report import Report
from serde.weights import Weight

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
    **dict.fromkeys(
        (
            "_contrib_quantized_act",
            "_contrib_quantized_batch_norm",
            "_contrib_quantized_concat",
            "_contrib_quantized_conv",
            "_contrib_quantized_elemwise_add",
            "_contrib_quantized_elemwise_mul",
            "_contrib_quantized_embedding",
            "_contrib_quantized_flatten",
            "_contrib_quantized_fully_connected",
            "_contrib_quantized_pooling",
            "_sg_mkldnn_fully_connected",
            "_sg_mkldnn_selfatt_qk",
            "_sg_mkldnn_selfatt_valatt",
        ),
        ("output", "min_output", "max_output"),
    ),
}
"""Operators whose outputs have names of their own."""

WEIGHTED = frozenset({"BatchNorm", "Convolution", "Deconvolution", "FullyConnected"})
"""Operators whose data has the dtype of their weight."""


@without_collection()
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
    walk = _Walk(model, options, report)
    report.nodes = sum(node.op != "null" for node in model.graph.nodes)
    walk.declare()
    for index, node in enumerate(model.graph.nodes):
        if node.op != "null" and walk.needed[index]:
            walk.results[index] = walk.convert(node, walk.needed[index])
    report.raise_if_refused()
    if keep_labels:
        walk.add_labels()
    return walk.finish()


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


@dataclass
class _Walk:
    """State of one conversion."""

    model: MxnetModel
    options: ImportOptions
    report: Report
    results: dict[int, Sequence[Expr]] = field(default_factory=dict)
    inputs: dict[str, Var] = field(default_factory=dict)
    weights: dict[str, Var] = field(default_factory=dict)
    params: dict[str, Weight] = field(default_factory=dict)
    needed: list[int] = field(default_factory=list)
    completions: Completions = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.needed = needed_outputs(self.model.graph, TABLE)

    @property
    def shapes_as_numpy(self) -> bool:
        """Whether the graph has NumPy's shapes: scalars, and axes of length 0."""
        return bool(self.model.graph.attrs.get("is_np_shape", 0))

    def declare(self) -> None:
        """Make a variable of every weight and input that is needed."""
        values = {**self.model.arg, **self.model.aux}
        free = []
        for index, node in enumerate(self.model.graph.nodes):
            if node.op != "null" or not self.needed[index]:
                continue
            if node.name in values:
                self.results[index] = [self._weight(node.name, values[node.name])]
            else:
                free.append((index, node))
        names = list(dict.fromkeys(node.name for _, node in free))
        shapes = self._shapes(names)
        missing = []
        for index, node in free:
            shape = shapes.get(node.name, _declared_shape(node, self.shapes_as_numpy))
            if shape is None:
                missing.append(node.name)
                continue
            self.results[index] = [self._input(index, node, shape)]
        if missing:
            raise OptionError(missing_text(self.model, list(dict.fromkeys(missing))))

    def _weight(self, name: str, weight: Weight) -> Var:
        if name not in self.weights:
            self.weights[name] = Var(name, TensorType(weight.shape, weight.dtype), Span(name))
            self.params[name] = weight
        return self.weights[name]

    def _input(self, index: int, node: Node, shape: Sequence[DimLike]) -> Var:
        if node.name not in self.inputs:
            dtypes = self.options.input_dtypes
            dtype = dtypes.get(node.name, dtypes.get(""))
            if dtype is None and "__dtype__" in node.hidden:
                code = node.hidden["__dtype__"]
                dtype = dtype_of_code(int(code)) if code.lstrip("-").isdigit() else None
            dtype = dtype or self._implied_dtype(index)
            self.inputs[node.name] = Var(node.name, TensorType(shape, dtype), Span(node.name))
        return self.inputs[node.name]

    def _implied_dtype(self, index: int) -> str:
        """Return the dtype of the weight beside which the input is used first, else float32."""
        nodes = self.model.graph.nodes
        for node in nodes:
            if canonical_name(node.op) not in WEIGHTED or len(node.inputs) < 2:
                continue
            weight = self.model.arg.get(nodes[node.inputs[1].node].name)
            if node.inputs[0].node == index and weight is not None and is_float(weight.dtype):
                return weight.dtype
        return "float32"

    def _shapes(self, names: Sequence[str]) -> dict[str, Sequence[DimLike]]:
        """Return the shapes given, the one without a name assigned to the only input."""
        given = dict(self.options.input_shapes)
        known = {node.name for node in self.model.graph.nodes if node.op == "null"}
        if "" in given:
            if len(names) != 1:
                raise OptionError(f"a shape without a name, but the inputs are {', '.join(names)}")
            given[names[0]] = given.pop("")
        if "" in self.options.input_dtypes and len(names) != 1:
            raise OptionError(f"a dtype without a name, but the inputs are {', '.join(names)}")
        unknown = sorted({*given, *self.options.input_dtypes} - {*known, ""})
        if unknown:
            raise OptionError(f"no input is called {unknown[0]}; inputs: {', '.join(names)}")
        fixed = sorted(set(given) & set(self.weights))
        if fixed:
            raise OptionError(f"{fixed[0]} is a weight of the model, not an input")
        return given

    def convert(self, node: Node, outputs: int) -> Sequence[Expr]:
        """Return the outputs of one node."""
        op = canonical_name(node.op)
        if not self.shapes_as_numpy:
            Completion(self.model.graph, self.results, self._again, self._inside).complete(node)
        ctx = self._context(node, outputs, self.report)
        arguments = [self._value(entry) for entry in used_inputs(node, TABLE)]
        results = TABLE.run_import(ctx, op, arguments, node.attrs, self.report)
        if len(results) < outputs:
            self.report.add(node.op, node.name, f"output {outputs - 1} is used but not converted")
        return results

    def _context(self, node: Node, outputs: int, report: Report) -> ImportContext:
        np_shape = "is_np_shape" in self.model.graph.attrs
        known = self.completions
        return ImportContext(TABLE, node, outputs, report, np_shape=np_shape, completions=known)

    def _inside(self, node: Node, variables: Sequence[Expr]) -> Sequence[Expr]:
        return self._context(node, 0, Report()).completed(variables)

    def _again(self, index: int) -> Sequence[Expr]:
        return self.convert(self.model.graph.nodes[index], self.needed[index])

    def add_labels(self) -> None:
        """Make inputs of the variables without a value that no result depends on."""
        nodes = self.model.graph.nodes
        values = {**self.model.arg, **self.model.aux}
        implied = self._label_shapes()
        missing = []
        for index, node in enumerate(nodes):
            if not node.is_variable or node.name in values or node.name in self.inputs:
                continue
            given = self.options.input_shapes.get(
                node.name, _declared_shape(node, self.shapes_as_numpy)
            )
            shape = implied.get(index) if given is None else given
            if shape is None:
                missing.append(node.name)
                continue
            self._input(index, node, shape)
        if missing:
            raise OptionError(missing_text(self.model, missing))
        order = {node.name: None for node in nodes if node.name in self.inputs}
        self.inputs = {name: self.inputs[name] for name in order}

    def _label_shapes(self) -> dict[int, Sequence[DimLike]]:
        """Return the shapes that loss heads imply, by the position of the variable."""
        found: dict[int, Sequence[DimLike]] = {}
        for index, node in enumerate(self.model.graph.nodes):
            if node.is_variable or len(node.inputs) < 2 or not self.needed[index]:
                continue
            type_ = self._value(node.inputs[0]).type
            shape = label_shape(node, type_.shape) if isinstance(type_, TensorType) else None
            if shape is not None:
                found[node.inputs[1].node] = shape
        return found

    def _value(self, entry: Entry) -> Expr:
        return self.results[entry.node][entry.index]

    def finish(self) -> RelayModel:
        """Return the module of everything converted."""
        graph = self.model.graph
        self._order_inputs()
        values = [self._value(entry) for entry in graph.heads]
        body = values[0] if len(values) == 1 else Tuple(values)
        main = Function([*self.inputs.values(), *self.weights.values()], body)
        meta = ModelMeta(
            inputs=tuple(self.inputs),
            outputs=tuple(self._output_name(entry) for entry in graph.heads),
            source_format="mxnet",
            source_version=self.model.version,
        )
        return RelayModel(IRModule({"main": main}), self.params, meta, self._values())

    def _order_inputs(self) -> None:
        """Put the inputs in the order that is noted on all of them, if there is one."""
        places = {
            node.name: int(node.hidden[INPUT_KEY])
            for node in self.model.graph.variables
            if node.hidden.get(INPUT_KEY, "").isdigit()
        }
        if self.inputs.keys() <= places.keys():
            self.inputs = {
                name: self.inputs[name] for name in sorted(self.inputs, key=places.__getitem__)
            }

    def _values(self) -> dict[str, Expr]:
        """Return what each node gives: by the node's name (and ``:1``...) and the output's.

        A name that stands for several values is left out.
        """
        found: dict[str, Expr | None] = {}
        for index, results in sorted(self.results.items()):
            node = self.model.graph.nodes[index]
            for number, value in enumerate(results):
                own = node.name if len(results) == 1 else f"{node.name}:{number}"
                for name in dict.fromkeys((own, self._output_name(Entry(index, number)))):
                    found[name] = value if found.get(name, value) is value else None
        return {name: value for name, value in found.items() if value is not None}

    def _output_name(self, entry: Entry) -> str:
        """Return the name that ``Symbol.list_outputs`` gives a head."""
        several = len(self.results[entry.node]) > 1
        return _output_name(self.model.graph.nodes[entry.node], entry.index, several)


def head_names(graph: Graph) -> tuple[str, ...]:
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


def _declared_shape(node: Node, as_numpy: bool) -> Sequence[DimLike] | None:
    """Return the shape noted on a variable when it was made, if it is known whole.

    Where MXNet has shapes of NumPy, it writes ``[2,3]`` for ``(2, 3)``.

    Args:
        node: The variable.
        as_numpy: Whether -1 stands for what is unknown, and not 0 or no axis at all.
    """
    if DIMS_KEY in node.hidden:
        dims = node.hidden[DIMS_KEY].split(",")
        return tuple(int(dim) if dim.isdigit() else dim for dim in dims)
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
