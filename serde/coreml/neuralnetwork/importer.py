"""The walk over a NeuralNetwork into Relay."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any as AnyValue

from serde.core import Report, budget, dataclass, pause_garbage_collection
from serde.coreml.foreign import CUSTOM, layer_node, layer_parameters
from serde.coreml.interface.interface import ARRAY_DTYPES, class_labels, model_meta
from serde.coreml.interface.network_inputs import input_variable, preprocess, to_five_axes
from serde.coreml.model import CoremlModel
from serde.coreml.neuralnetwork.import_context import (
    Facts,
    ImportContext,
    Scope,
    add_leading_axis,
    drop_leading_axis,
    is_lifted,
)
from serde.coreml.neuralnetwork.message_view import (
    MessageView,
    ends_iteration,
    fields_of,
    layer_outputs,
    layers_of,
)
from serde.coreml.neuralnetwork.ops import LAYERS
from serde.coreml.neuralnetwork.parameters import Parameters
from serde.errors import FormatError, raise_if_refused
from serde.relay import cast, reshape, squeeze
from serde.relay.ir import DimLike, Expr, RelayModel, TensorType, Var
from serde.walk.assembly import Assembly
from serde.walk.fallback import ImportFallback
from serde.walk.holes import Hole
from serde.walk.importer import Graph, ImportWalk, Node

if TYPE_CHECKING:
    from serde.coreml.options import CoremlImportOptions

__all__ = ["to_relay"]

_NODES = 8
"""What a layer becomes, about."""


@pause_garbage_collection()
def to_relay(model: CoremlModel, options: CoremlImportOptions, report: Report) -> RelayModel:
    """Return a NeuralNetwork, a classifier or a regressor as Relay.

    Raises:
        FormatError: The network is not sound.
        OptionError: An option names no input.
        UnsupportedModelError: Some layers cannot be converted.
    """
    walk = _Walk(model, report, ImportFallback.of("coreml", options))
    scope = Scope(source=model.source)
    features = model.spec.description.input
    inputs = walk.inputs(
        features, scope, options.input_shapes, options.input_dtypes, fixed=options.fix_inputs
    )
    walk.run(walk.read(layers_of(MessageView(model.network, model.kind)), scope), scope)
    results = walk.results(scope, inputs)
    raise_if_refused(report)
    walk.fallback.note_unused(report)
    meta = model_meta(
        model,
        [each.name_hint for each in inputs],
        list(results),
        labels=class_labels(model),
        image_axes=("height", "width"),
    )
    return walk.assembly.model(inputs, list(results.values()), meta, scope.expressions())


@dataclass(slots=True)
class _Step:
    """A layer; a branch in which an iteration may end, with the layers that follow it."""

    layer: MessageView
    following: Sequence[MessageView] | None


class _Walk(ImportWalk[Sequence[MessageView], _Step, Scope]):
    """State of one conversion.

    Attributes:
        facts: What is known of the model.
    """

    def __init__(self, model: CoremlModel, report: Report, fallback: ImportFallback) -> None:
        super().__init__(report, Assembly(), fallback)
        exact = bool(model.network.arrayInputShapeMapping)
        self.facts = Facts(Parameters(model, self.assembly.tensor), exact)
        self._model = model
        self._steps = self._preparations(model.spec.description.input)
        report.nodes = 0

    def declare(
        self, entry: AnyValue, shape: Sequence[DimLike] | None, dtype: str | None, scope: Scope
    ) -> Var:
        """Return the variable for an input; its name is that of what the network makes of it."""
        variable = input_variable(entry, shape, dtype)
        image = entry.type.WhichOneof("Type") == "imageType"
        x: Expr = variable
        if isinstance(variable.type, TensorType) and variable.type.dtype != "float32":
            x = cast(x, "float32")
        x = preprocess(x, entry, self._steps.get(entry.name, ()))
        exact = self._model.network.imageInputShapeMapping if image else self.facts.exact
        scope.define(entry.name, self.assembly.fold(x if exact else to_five_axes(x)))
        return variable

    def read(self, graph: Sequence[MessageView], scope: Scope) -> Graph[_Step]:
        """Return layers as the walk sees them; what they give stays in the scope."""
        return Graph((), self._nodes(graph, scope), ())

    def _nodes(self, layers: Sequence[MessageView], scope: Scope) -> Iterator[Node[_Step]]:
        """Yield layers, up to where an iteration ends."""
        for index, layer in enumerate(layers):
            self.report.nodes += 1
            # What follows where an iteration may end is converted anew for each branch.
            budget().draw("nodes", _NODES, "layers, those of loops and branches included,")
            message = layer.message
            following = layers[index + 1 :] if ends_iteration(message) else None
            kind = message.WhichOneof("layer") or ""
            names = () if kind in WRITERS else message.output
            yield Node(kind, message.name or layer.path, names, _Step(layer, following))
            if scope.ended or following is not None:
                return

    def bind(self, node: Node[_Step], name: Hashable, value: Expr, scope: Scope) -> None:
        """Give a tensor its name; a copy may give one that there is anew."""
        if node.op == "copy":
            scope.values.pop(str(name), None)
        super().bind(node, name, value, scope)

    def convert(self, node: Node[_Step], scope: Scope, label: str) -> Sequence[Expr]:
        """Return what a layer gives; some define it themselves."""
        layer, following = node.source.layer, node.source.following
        kind, message = node.op, layer.message
        if not kind:
            self.report.add("layer", label, "a layer of an unknown kind")
            return [Hole() for _ in message.output]
        inputs = [self._value(name, label, scope) for name in message.input]
        ctx = ImportContext(label, len(message.output), following, self, scope, self.facts)
        if kind == CUSTOM and self.fallback.any:
            found = self._custom(layer, ctx, inputs)
            if found is not None:
                return found
        lift = kind in LIFTED and all(map(is_lifted, inputs)) and bool(inputs)
        given = [drop_leading_axis(x) for x in inputs] if lift else inputs
        before = len(self.report.issues)
        found = self.call(LAYERS, ctx, kind, given, self._attributes(layer, kind))
        if kind in WRITERS:
            if len(self.report.issues) > before or any(isinstance(x, Hole) for x in inputs):
                missing = (
                    name for each in (layer, *(following or ())) for name in layer_outputs(each)
                )
                scope.values |= {name: Hole() for name in missing}
            return []
        if len(found) < len(message.output):
            raise scope.fault(f"expected at most {len(found)} outputs", node.name)
        return [
            self.assembly.fold(add_leading_axis(x)) if lift and not isinstance(x, Hole) else x
            for x in found
        ]

    def _custom(
        self, layer: MessageView, ctx: ImportContext, inputs: Sequence[Expr]
    ) -> Sequence[Expr] | None:
        """Return what a user's function makes of a custom layer, or the layer kept as it is."""
        message = layer.message
        name = message.custom.className
        if self.fallback.has(name):
            attributes = layer_parameters(message.custom)
            weights = tuple(
                self.facts.parameters.flat(MessageView(each, f"{layer.path}.custom.weights[{i}]"))
                for i, each in enumerate(message.custom.weights)
            )
            operands = [*inputs, *weights]
            return self.call(LAYERS, ctx, CUSTOM, operands, attributes, names=(name,))
        if not self.fallback.keep:
            return None
        outputs = {
            each.name: TensorType([int(n) for n in each.type.multiArrayType.shape], "float32")
            for each in self._model.spec.description.output
            if each.type.WhichOneof("Type") == "multiArrayType"
            and each.type.multiArrayType.shape
            and self.facts.exact
        }
        return self.keep(
            ctx, lambda: layer_node(message, outputs, inputs), inputs, list(message.output)
        )

    def _preparations(self, features: Sequence[AnyValue]) -> dict[str, list[AnyValue]]:
        """Return the steps of each input; without a name they are those of the only image."""
        images = [each.name for each in features if each.type.WhichOneof("Type") == "imageType"]
        found: dict[str, list[AnyValue]] = {}
        for step in self._model.network.preprocessing:
            name = step.featureName or (images[0] if len(images) == 1 else "")
            if name not in {each.name for each in features}:
                raise FormatError(f"no input is called {name!r}", path=self._model.source)
            found.setdefault(name, []).append(step)
        return found

    def _attributes(self, layer: MessageView, kind: str) -> dict[str, AnyValue]:
        parameters = layer.submessage(kind)
        if kind == "activation":
            return {"function": parameters}
        return fields_of(parameters.message, parameters.path)

    def _value(self, name: str, label: str, scope: Scope) -> Expr:
        value = scope.find(name)
        if value is None:
            raise FormatError(f"{label}: no tensor is called {name!r}", path=scope.source)
        return value

    def results(self, scope: Scope, inputs: Sequence[Var]) -> dict[str, Expr]:
        """Return the outputs by name; of a classifier its scores and not the class itself."""
        description = self._model.spec.description
        probabilities = layer = ""
        if self._model.kind == "neuralNetworkClassifier":
            probabilities = description.predictedProbabilitiesName
            layer = self._model.network.labelProbabilityLayerName
        plain = all(isinstance(each.type, TensorType) and each.type.rank < 5 for each in inputs)
        found = {}
        for feature in description.output:
            name = feature.name
            kind = feature.type.WhichOneof("Type")
            source = name
            if kind == "dictionaryType" or (probabilities and name == probabilities):
                source = layer or name
            elif kind in ("stringType", "int64Type") and name == description.predictedFeatureName:
                continue
            if source not in scope.values and kind == "dictionaryType":
                source = self._last(scope)
            if source not in scope.values:
                raise scope.fault(f"output {name!r} is given by no layer")
            value = scope.values[source]
            if not self.facts.exact and plain and not isinstance(value, Hole):
                value = self.assembly.fold(_as_declared(value, feature))
            array = feature.type.multiArrayType if kind == "multiArrayType" else None
            if array is not None and ARRAY_DTYPES.get(array.dataType) == "int32":
                is_hole = isinstance(value, Hole)
                value = value if is_hole else self.assembly.fold(cast(value, "int32"))
            found[name] = value
        if not found:
            last = self._last(scope)
            found[last] = scope.values[last]
        return found

    def _last(self, scope: Scope) -> str:
        """Return the name of what the last layer gives."""
        names = [name for layer in self._model.network.layers for name in layer.output]
        if not names or names[-1] not in scope.values:
            raise scope.fault("no layer gives an output")
        return names[-1]


def _as_declared(x: Expr, feature: AnyValue) -> Expr:
    """Return a tensor of five axes without those that an output does not declare."""
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        return drop_leading_axis(x) if is_lifted(x) else squeeze(x, axis=[0])
    rank = len(feature.type.multiArrayType.shape) if kind == "multiArrayType" else 5
    if kind == "dictionaryType" or rank == 1:
        return reshape(x, (-1,))
    if rank == 3:
        leading = x.type.shape[:2] if isinstance(x.type, TensorType) else ()
        if any(isinstance(length, int) and length != 1 for length in leading):
            raise FormatError(f"output {feature.name!r}: expected three axes, found {x.type!r}")
        return squeeze(x, axis=[0, 1])
    return x


LIFTED = frozenset(
    {
        "activation",
        "add",
        "average",
        "batchnorm",
        "bias",
        "convolution",
        "crop",
        "dot",
        "flatten",
        "innerProduct",
        "l2normalize",
        "lrn",
        "max",
        "min",
        "multiply",
        "mvn",
        "padding",
        "pooling",
        "reduce",
        "reorganizeData",
        "resizeBilinear",
        "scale",
        "slice",
        "softmax",
        "split",
        "unary",
        "upsample",
    }
)
"""Layers that know no sequence: where it has length 1, their tensors have four axes here."""

WRITERS = frozenset({"branch", "loop", "loopBreak", "loopContinue"})
"""Layers that give their tensors names themselves, or have none."""
