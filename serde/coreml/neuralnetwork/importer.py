"""The walk over a NeuralNetwork into Relay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from typing import Any as AnyValue

from serde.coreml.interface.features import declare, five_axes, prepared
from serde.coreml.interface.interface import (
    ARRAY_DTYPES,
    class_labels,
    input_names,
    model_meta,
    read_shapes,
)
from serde.coreml.model import CoremlModel
from serde.coreml.neuralnetwork.import_context import ImportContext, is_lifted, lifted, lowered
from serde.coreml.neuralnetwork.ops import LAYERS
from serde.coreml.neuralnetwork.parameters import read_parameter, stored
from serde.coreml.neuralnetwork.parts import Part, ends_iteration, fields_of, layers_of, written
from serde.errors import FormatError, Unsupported
from serde.limits import MAX_LOOP_FORKS, MAX_SUBGRAPH_DEPTH
from serde.relay import cast, reshape, squeeze
from serde.relay.ir.collection import without_collection
from serde.relay.ir.expr import Expr, Var, const
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import TensorType
from serde.report import Report
from serde.walk.assembly import Assembly
from serde.walk.table import Hole, Incomplete
from serde.weights import Weight

if TYPE_CHECKING:
    from serde.coreml.options import CoremlImportOptions

__all__ = ["network_to_relay"]


@without_collection()
def network_to_relay(
    model: CoremlModel, options: CoremlImportOptions, report: Report
) -> RelayModel:
    """Return a NeuralNetwork, a classifier or a regressor as Relay.

    Raises:
        FormatError: The network is not sound.
        OptionError: An option names no input.
        UnsupportedModelError: Some layers cannot be converted.
    """
    walk = _Walk(model, report)
    scope = _Scope()
    inputs = walk.declare(options, scope)
    walk.run(layers_of(Part(model.network, model.kind)), scope)
    results = walk.results(scope, inputs)
    report.raise_if_refused()
    meta = model_meta(
        model,
        [each.name_hint for each in inputs],
        list(results),
        labels=class_labels(model),
        image_axes=("height", "width"),
    )
    return walk.assembly.model(inputs, list(results.values()), meta, scope.values)


@dataclass
class _Scope:
    """The tensors of a network by name, and where they are.

    Attributes:
        values: The tensors.
        prefix: What the names of layers follow.
        depth: How many networks are around.
        flag: In the body of a loop, the name of what tells whether to go on with it.
        ended: Whether an iteration ends here, so that no layers follow.
    """

    values: dict[str, Expr] = field(default_factory=dict)
    prefix: str = ""
    depth: int = 0
    flag: str = ""
    ended: bool = False


class _Walk:
    """State of one conversion.

    Attributes:
        assembly: What has been made of the network.
    """

    def __init__(self, model: CoremlModel, report: Report) -> None:
        self.model = model
        self._report = report
        self.assembly = Assembly()
        self._parameters: dict[tuple[str, tuple[int, ...], int], Expr] = {}
        self._forks = 0
        report.nodes = 0

    @property
    def exact(self) -> bool:
        """Whether tensors have the axes that the model declares, and not always five."""
        return bool(self.model.network.arrayInputShapeMapping)

    def declare(self, options: CoremlImportOptions, scope: _Scope) -> list[Var]:
        """Make a variable of every input, and what the network makes of it first."""
        features = list(self.model.spec.description.input)
        names = input_names(features, self.model.source)
        shapes, dtypes = read_shapes(names, options)
        steps = self._preparations(features)
        found = []
        for feature in features:
            name = feature.name
            try:
                variable = declare(feature, shapes.get(name), dtypes.get(name))
                image = feature.type.WhichOneof("Type") == "imageType"
                x: Expr = variable
                if isinstance(variable.type, TensorType) and variable.type.dtype != "float32":
                    x = cast(x, "float32")
                x = prepared(x, feature, steps.get(name, ()))
                exact = self.model.network.imageInputShapeMapping if image else self.exact
                scope.values[name] = self.assembly.fold(x if exact else five_axes(x))
            except Unsupported as error:
                self._report.add("input", name, error.reason, error.hint)
                continue
            self.assembly.take(name)
            found.append(variable)
        self._report.raise_if_refused()
        return found

    def _preparations(self, features: Sequence[AnyValue]) -> dict[str, list[AnyValue]]:
        """Return the steps of each input; without a name they are those of the only image."""
        images = [each.name for each in features if each.type.WhichOneof("Type") == "imageType"]
        found: dict[str, list[AnyValue]] = {}
        for step in self.model.network.preprocessing:
            name = step.featureName or (images[0] if len(images) == 1 else "")
            if name not in {each.name for each in features}:
                raise FormatError(f"no input is called {name!r}", path=self.model.source)
            found.setdefault(name, []).append(step)
        return found

    def run(self, layers: Sequence[Part], scope: _Scope) -> None:
        """Convert layers, up to where an iteration ends."""
        for place, layer in enumerate(layers):
            self._report.nodes += 1
            following = layers[place + 1 :] if ends_iteration(layer.message) else None
            self._layer(layer, scope, following)
            if scope.ended or following is not None:
                return

    def _layer(self, layer: Part, scope: _Scope, following: Sequence[Part] | None) -> None:
        """Convert a layer; a branch in which an iteration may end takes what follows it in."""
        message = layer.message
        kind = message.WhichOneof("layer")
        label = f"{scope.prefix}{message.name or layer.path}"
        if kind is None:
            self._report.add("layer", label, "a layer of an unknown kind")
            scope.values |= {name: Hole() for name in message.output}
            return
        inputs = [self._value(name, label, scope) for name in message.input]
        around = _Around(self, layer, scope, label, following)
        ctx = ImportContext(label, len(message.output), around)
        lift = kind in LIFTED and all(map(is_lifted, inputs)) and bool(inputs)
        given = [lowered(x) for x in inputs] if lift else inputs
        before = len(self._report.issues)
        results = LAYERS.run_import(ctx, kind, given, self._attributes(layer, kind), self._report)
        if kind in WRITERS:
            if len(self._report.issues) > before or any(isinstance(x, Hole) for x in inputs):
                missing = (name for each in (layer, *(following or ())) for name in written(each))
                scope.values |= {name: Hole() for name in missing}
            return
        if len(results) < len(message.output):
            raise self._fault(f"{label}: expected at most {len(results)} outputs")
        for name, value in zip(message.output, results, strict=False):
            if name in scope.values and kind != "copy":
                raise self._fault(f"{label}: the name {name!r} is given twice")
            done = value if isinstance(value, Hole) or not lift else lifted(value)
            scope.values[name] = done if isinstance(done, Hole) else self.assembly.fold(done)

    def _attributes(self, layer: Part, kind: str) -> dict[str, AnyValue]:
        parameters = layer.part(kind)
        if kind == "activation":
            return {"function": parameters}
        return fields_of(parameters.message, parameters.path)

    def _value(self, name: str, label: str, scope: _Scope) -> Expr:
        if name not in scope.values:
            raise self._fault(f"{label}: no tensor is called {name!r}")
        return scope.values[name]

    def results(self, scope: _Scope, inputs: Sequence[Var]) -> dict[str, Expr]:
        """Return the outputs by name; of a classifier its scores and not the class itself."""
        description = self.model.spec.description
        probabilities = ""
        if self.model.kind == "neuralNetworkClassifier":
            probabilities = description.predictedProbabilitiesName
        plain = all(isinstance(each.type, TensorType) and each.type.rank < 5 for each in inputs)
        found = {}
        for feature in description.output:
            name = feature.name
            kind = feature.type.WhichOneof("Type")
            source = name
            if kind == "dictionaryType" or (probabilities and name == probabilities):
                source = self.model.network.labelProbabilityLayerName or name
            elif kind in ("stringType", "int64Type") and name == description.predictedFeatureName:
                continue
            if source not in scope.values and kind == "dictionaryType":
                source = self._last(scope)
            if source not in scope.values:
                raise self._fault(f"output {name!r} is given by no layer")
            value = scope.values[source]
            if not self.exact and plain and not isinstance(value, Hole):
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

    def _last(self, scope: _Scope) -> str:
        """Return the name of what the last layer gives."""
        names = [name for layer in self.model.network.layers for name in layer.output]
        if not names or names[-1] not in scope.values:
            raise self._fault("no layer gives an output")
        return names[-1]

    def parameter(self, part: Part, shape: tuple[int, ...], axis: int) -> Expr:
        """Return the values of a ``WeightParams``; the same ones are the same expression."""
        key = part.path, shape, axis
        if key not in self._parameters:
            source = self.model.source
            self._parameters[key] = read_parameter(
                part, shape, self.model.arrays, source, self._weight, axis=axis
            )
        return self._parameters[key]

    def _weight(self, weight: Weight, path: str) -> Expr:
        return self.assembly.tensor(weight, self._named(path))

    def _named(self, path: str) -> str:
        """Return a name for a weight: that of its layer and that of its field."""
        node: AnyValue = self.model.spec
        names = []
        for step in path.split("."):
            field_name, _, index = step.partition("[")
            node = getattr(node, field_name, None)
            if index and node is not None:
                node = node[int(index[:-1])]
            if field_name == "layers" and node is not None:
                names.append(node.name or f"layer{index[:-1]}")
        return "_".join([*names, path.rsplit(".", 1)[-1]])

    def _fault(self, message: str) -> FormatError:
        return FormatError(message, path=self.model.source)

    def inner(
        self,
        layers: Sequence[Part],
        scope: _Scope,
        label: str,
        values: Mapping[str, Expr],
        flag: str,
    ) -> _Scope:
        """Convert layers within a layer; return the tensors that there are after them."""
        if scope.depth >= MAX_SUBGRAPH_DEPTH:
            raise self._fault(f"{label}: more than {MAX_SUBGRAPH_DEPTH} networks deep")
        before = len(self._report.issues)
        inner = _Scope({**scope.values, **values}, f"{label}/", scope.depth + 1, flag)
        self.run(layers, inner)
        if len(self._report.issues) > before:
            raise Incomplete
        return inner

    def fork(self, scope: _Scope) -> None:
        """Count a branch that takes in what follows it.

        Raises:
            Unsupported: There are too many: what follows may be doubled by each.
        """
        self._forks += 1
        if self._forks > MAX_LOOP_FORKS or scope.depth + 1 >= MAX_SUBGRAPH_DEPTH:
            raise Unsupported("iterations of a loop end in too many ways")


def _as_declared(x: Expr, feature: AnyValue) -> Expr:
    """Return a tensor of five axes without those that an output does not declare."""
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        return lowered(x) if is_lifted(x) else squeeze(x, axis=[0])
    rank = len(feature.type.multiArrayType.shape) if kind == "multiArrayType" else 5
    if kind == "dictionaryType" or rank == 1:
        return reshape(x, (-1,))
    if rank == 3:
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


class _Around:
    """What the converter of one layer may reach of the walk."""

    def __init__(
        self,
        walk: _Walk,
        layer: Part,
        scope: _Scope,
        label: str,
        following: Sequence[Part] | None,
    ) -> None:
        self._walk = walk
        self._layer = layer
        self._scope = scope
        self._label = label
        self._following = following
        self.assembly = walk.assembly
        self.exact = walk.exact

    def parameter(self, part: Part, shape: tuple[int, ...], axis: int) -> Expr:
        return self._walk.parameter(part, shape, axis)

    def length(self, part: Part) -> int:
        found = stored(part, self._walk.model.arrays, self._walk.model.source)
        return 0 if found is None else found.size

    def values(self) -> Mapping[str, Expr]:
        return self._scope.values

    def define(self, name: str, value: Expr) -> None:
        self._scope.values[name] = self.assembly.fold(value)

    def network(self, part: Part, values: Mapping[str, Expr], flag: str) -> dict[str, Expr]:
        return self._walk.inner(layers_of(part), self._scope, self._label, values, flag).values

    @property
    def forks(self) -> bool:
        return self._following is not None

    def branch(self, part: Part | None) -> dict[str, Expr]:
        own = [] if part is None else layers_of(part)
        if self._following is not None:
            self._walk.fork(self._scope)
            own = [*own, *self._following]
        return self._walk.inner(own, self._scope, self._label, {}, self._scope.flag).values

    def end(self, *, again: bool) -> None:
        flag = self._scope.flag
        if not flag:
            raise Unsupported("it is not in the body of a loop")
        if not again:
            self._scope.values[flag] = const(False, "bool")
        self._scope.ended = True
