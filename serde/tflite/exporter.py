"""From a Relay model to a TFLite model: lowering, operators, activations that are fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any as AnyValue, Final

from serde.core import Report, Weight, pause_garbage_collection
from serde.errors import Unsupported, raise_if_refused
from serde.relay import transform
from serde.relay.ir import Call, If, Quantized, RelayModel, all_nodes, leaf_types, output_names
from serde.relay.ir.registry import called_name, has_trait
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.transform.fold_empty import FoldEmpty
from serde.tflite.apps import planned_facts, with_channels_last
from serde.tflite.codes import compute_on_codes
from serde.tflite.export_context import ExportContext
from serde.tflite.graph import MAX_LEVEL, Value, taken
from serde.tflite.halves import computed_wide, stored_as_halves
from serde.tflite.linear import as_pairs
from serde.tflite.model import Operator, Signature, Subgraph, Tensor, TfliteModel
from serde.tflite.ops import TABLE
from serde.tflite.options import TfliteExportOptions
from serde.walk.export_fallback import ExportFallback
from serde.walk.exporter import ExportWalk
from serde.walk.lowering import lower_to_static
from serde.walk.placement import Scope

__all__ = ["from_relay"]

CHANNELS_LAST: Final = {
    "nn.avg_pool1d": ["NWC"],
    "nn.conv1d": ["NWC", "OWI"],
    "nn.conv2d": ["NHWC", "OHWI"],
    "nn.conv2d_transpose": ["NHWC", "OHWI"],
    "nn.conv3d": ["NDHWC", "DHWIO"],
    "nn.avg_pool2d": ["NHWC"],
    "nn.max_pool1d": ["NWC"],
    "nn.max_pool2d": ["NHWC"],
    "nn.global_avg_pool2d": ["NHWC"],
    "nn.global_max_pool2d": ["NHWC"],
    "nn.adaptive_avg_pool2d": ["NHWC"],
    "nn.adaptive_max_pool2d": ["NHWC"],
    "nn.upsampling": ["NHWC"],
    "nn.depth_to_space": ["NHWC"],
    "nn.space_to_depth": ["NHWC"],
    "image.resize2d": ["NHWC"],
}
"""Layouts that TFLite has."""

_FUSING: Final = frozenset(
    (
        "ADD", "AVERAGE_POOL_2D", "CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "DIV",
        "FULLY_CONNECTED", "L2_POOL_2D", "MAX_POOL_2D", "MUL", "SUB", "TRANSPOSE_CONV",
    )
)  # fmt: skip
"""Operators into which an activation is fused."""

_ACTIVATIONS: Final = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}

_WHOLE: Final = ("nn.dense", "serde.gelu", "serde.hard_swish")
"""Layers of one operator that models spell out."""


@pause_garbage_collection()
def from_relay(model: RelayModel, options: TfliteExportOptions, report: Report) -> TfliteModel:
    """Return a model as TFLite.

    Raises:
        UnsupportedModelError: TFLite cannot say some of the model.
    """
    on_codes = options.write_quantized == "int8"
    model = with_channels_last(model, options)
    facts = planned_facts(model, options, report)
    wide = computed_wide(model)
    if wide is not None:
        model = wide
        report.notes.append("float16 is computed on in float32; weights are stored as float16")
    model = _lower(as_pairs(model) if on_codes else model, report)
    context = ExportContext(TABLE)
    walk = _Walk(model, TABLE, context, report, ExportFallback.of("tflite", options))
    inputs = walk.declare()
    results = walk.write()
    exact = on_codes and model.meta.source_format == "tflite" and bool(report.issues)
    if exact and any(has_trait(each, Quantized) for each in all_nodes(model.main)):
        why = "operators on codes are made of operators on numbers between these"
        report.add("main", "", why, "use read_quantized='qdq'")
    raise_if_refused(report)
    names = output_names(model.meta.outputs, model.main.body.type)
    outputs = context.outputs(results, names)
    written = context.scope.close(inputs, (), outputs)
    graphs = [_finished(each, report if on_codes else None) for each in (written, *context.inner)]
    if wide is not None:
        graphs = list(map(stored_as_halves, graphs))
    main = graphs[0]
    named = {main.tensors[i].name: i for i in main.inputs}
    signature = Signature("serving_default", 0, named, dict(zip(names, main.outputs, strict=True)))
    description = model.meta.description or model.meta.extra.get("description", "")
    return TfliteModel(graphs, [signature], description, facts=facts)


def _finished(graph: Subgraph, report: Report | None) -> Subgraph:
    """Return a graph with operators fused and, if there is a report, on codes where they can be."""
    operators, tensors = without_unread(graph), list(graph.tensors)
    operators = fuse_activations(drop_reshapes(operators, tensors, graph.outputs), graph.outputs)
    if report is not None:
        operators = compute_on_codes(operators, tensors, graph.outputs, report)
    return replace(graph, tensors=tensors, operators=operators).compact()


def _lower(model: RelayModel, report: Report) -> RelayModel:
    """Return the model in operators that TFLite has, channels last."""
    supported = partial(TABLE.can_export, version=1)

    def whole(node: Call) -> bool:
        return called_name(node) in _WHOLE and supported(node)

    layers = transform.RaiseLayers(whole, frozenset(model.params))
    spelled = transform.Decompose(supported, TABLE.expansion, usual_layouts=False)
    again = [transform.EvaluateConstants(), spelled]
    return lower_to_static(
        model,
        TABLE,
        supported,
        report,
        before=[FoldEmpty(), layers],
        after=[FoldEmpty(), transform.RemoveIdentities(), *again],
        layout=transform.TransposeToLayout(CHANNELS_LAST),
    )


def without_unread(graph: Subgraph) -> list[Operator]:
    """Return the operators of a graph but for those whose results nothing reads."""
    kept, wanted = list[Operator](), set(graph.outputs)
    for each in reversed(graph.operators):
        changed = {i for i in each.inputs if i >= 0 and graph.tensors[i].is_variable}
        if not each.outputs or not wanted.isdisjoint({*each.outputs, *changed}):
            kept.append(each)
            wanted.update(each.inputs)
    return kept[::-1]


def drop_reshapes(
    operators: Sequence[Operator], tensors: Sequence[Tensor], outputs: Sequence[int]
) -> list[Operator]:
    """Return operators without reshapes behind reductions, and before layers that flatten."""
    uses = Counter([*outputs, *(i for each in operators for i in each.inputs)])
    kept: dict[int, Operator] = {}
    for each in operators:
        made, number = each, each.inputs[0] if each.inputs else -1
        found = kept.get(number) if uses[number] == 1 else None
        if found is not None and _flattens(each, found, tensors):
            del kept[number]
            made = replace(each, inputs=(found.inputs[0], *each.inputs[1:]))
        elif found is not None and _leaves(found, each, tensors):
            del kept[number]
            options = {**found.options, "keep_dims": False}
            made = replace(found, outputs=each.outputs, options=options)
        kept[each.outputs[0] if each.outputs else -1 - len(kept)] = made
    return list(kept.values())


def _flattens(each: Operator, before: Operator, tensors: Sequence[Tensor]) -> bool:
    """Whether a dense layer reads a matrix whose rows a reshape makes, as it does itself."""
    if (each.name, before.name) != ("FULLY_CONNECTED", "RESHAPE"):
        return False
    flat = tensors[each.inputs[0]].shape
    return len(flat) == 2 and flat[1] == tensors[each.inputs[1]].shape[-1]


def _leaves(each: Operator, after: Operator, tensors: Sequence[Tensor]) -> bool:
    """Whether a reshape takes away the axes that a reduction keeps, of which one may be open."""
    known = tensors[each.inputs[1]].values if each.options.get("keep_dims") else None
    if known is None or after.name != "RESHAPE":
        return False
    axes = set(known.array().reshape(-1).tolist())
    shape = tensors[each.inputs[0]].shape
    left = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    return left.count(-1) < 2 and left == tensors[after.outputs[0]].shape


def fuse_activations(operators: Sequence[Operator], outputs: Sequence[int]) -> list[Operator]:
    """Return operators with the activations that follow them as options of theirs."""
    uses = Counter(i for each in operators for i in each.inputs)
    uses.update(outputs)
    at = {each.outputs[0]: index for index, each in enumerate(operators) if len(each.outputs) == 1}
    kept: list[Operator | None] = list(operators)
    for index, each in enumerate(operators):
        function = _ACTIVATIONS.get(each.name)
        producer = at.get(each.inputs[0]) if function else None
        found = None if producer is None else kept[producer]
        if producer is None or found is None or found.name not in _FUSING:
            continue
        if uses[each.inputs[0]] != 1 or found.options.get("fused_activation_function"):
            continue
        options = {**found.options, "fused_activation_function": function}
        kept[producer] = replace(found, options=options, outputs=each.outputs)
        at[each.outputs[0]] = producer
        kept[index] = None
    return [each for each in kept if each is not None]


class _Walk(ExportWalk[Value]):
    """The walk into operators of one graph."""

    most_levels = MAX_LEVEL
    _context: ExportContext

    def parameter(
        self, name: str, type_: TensorType | SequenceType, weight: Weight | None
    ) -> Value:
        """Declare an input; a weight gets a tensor where an operator takes it."""
        self._context.require(type_)
        if not isinstance(type_, TensorType):
            raise Unsupported("TFLite has no sequences of tensors")
        if weight is None:
            (found,) = self._context.graph_inputs([type_], name)
            return found
        self._context.weights[name] = weight
        return Value(-1, type_, weight=name)

    def end_branch(self, node: If, scope: Scope, results: list[Value]) -> AnyValue:
        """Return the branch with its outputs."""
        return scope, self._context.outputs(results)

    def conditional(
        self, node: If, name: str, condition: Value, branches: Sequence[AnyValue]
    ) -> Sequence[Value]:
        """Append an ``IF``; both branches get what either takes."""
        types = leaf_types(node.type)
        if not types:
            return ()
        captures = taken(scope for scope, _outputs in branches)
        yes, no = (
            self._context.close(scope.close((), captures, outputs)) for scope, outputs in branches
        )
        options = {"then_subgraph_index": yes, "else_subgraph_index": no}
        return self._context.append("IF", [condition, *captures], types, options)
