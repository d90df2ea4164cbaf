"""Pipelines of Core ML models as one Relay model: what a model gives is what later ones take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import Report, Weight, dataclass, field, pause_garbage_collection, replace
from serde.coreml.interface.interface import model_meta, tensors_of
from serde.coreml.interface.network_inputs import input_variable
from serde.coreml.mlprogram.importer import to_relay as program_to_relay
from serde.coreml.model import KINDS, SUPPRESSION, CoremlModel, members
from serde.coreml.neuralnetwork.importer import to_relay as network_to_relay
from serde.coreml.neuralnetwork.suppression import suppression_to_relay, thresholds_of
from serde.errors import FormatError, OptionError, Unsupported, raise_if_refused
from serde.relay.ir import IRModule, RelayModel, SymDim, TensorType, TupleType, infer_function
from serde.relay.ir.expr import Expr, Function, Span, Tuple, TupleGetItem, Var
from serde.relay.ir.visit import post_order, rewrite
from serde.walk.inputs import bind_inputs, check_names

if TYPE_CHECKING:
    from serde.coreml.options import CoremlImportOptions

__all__ = ["model_to_relay"]


def model_to_relay(model: CoremlModel, options: CoremlImportOptions, report: Report) -> RelayModel:
    """Return a model of whichever kind as Relay.

    Raises:
        FormatError: The model is not sound.
        OptionError: An option does not fit the model.
        UnsupportedModelError: Some of it cannot be converted.
    """
    if not model.is_pipeline:
        if options.pipeline_model is not None:
            raise OptionError(f"pipeline_model: {model.kind} is no pipeline")
        if model.kind == "mlProgram":
            return program_to_relay(model, options, report)
        if options.function is not None:
            raise OptionError("function: a NeuralNetwork has no functions")
        return network_to_relay(model, options, report)
    if options.pipeline_model is not None:
        chosen = _choose_model(model, options.pipeline_model)
        return model_to_relay(chosen, replace(options, pipeline_model=None), report)
    return _Chain(model, options, report).whole()


def _choose_model(model: CoremlModel, wanted: str) -> CoremlModel:
    """Return a model of a pipeline by its name or its number."""
    found = members(model)
    names = list(model.pipeline.names)
    numbers = [str(index) for index in range(len(found))]
    for known in (numbers, names):
        if wanted in known and known.index(wanted) < len(found):
            member = found[known.index(wanted)]
            if member.spec.WhichOneof("Type") in KINDS or member.is_pipeline:
                return member
            raise OptionError(f"pipeline_model: {wanted} is a {member.spec.WhichOneof('Type')}")
    listed = ", ".join(f"{i} ({each.spec.WhichOneof('Type')})" for i, each in enumerate(found))
    raise OptionError(f"pipeline_model: no model is called {wanted!r}; there are {listed}")


@dataclass
class _Chain:
    """A pipeline that is converted, one model after the other.

    Attributes:
        model: The pipeline.
        options: How it is read.
        report: Gets what cannot be converted.
        values: What inputs and models have given so far, by name.
        inputs: The inputs of the pipeline that have been met, by name.
        weights: Variables that stand for weights.
        params: The weights of all models.
        named: Expressions by the names that the models have for them.
        labels: Class labels of a classifier.
        facts: What is known of outputs besides.
        nodes: Number of operations of all models.
        shapes: Shapes that were asked for, by input.
        dtypes: dtypes that were asked for, by input.
    """

    model: CoremlModel
    options: CoremlImportOptions
    report: Report
    values: dict[str, Expr] = field(default_factory=dict)
    inputs: dict[str, Var] = field(default_factory=dict)
    weights: list[Var] = field(default_factory=list)
    params: dict[str, Weight] = field(default_factory=dict)
    named: dict[str, Expr] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    nodes: int = 0
    shapes: Mapping[str, Sequence[AnyValue]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)

    @pause_garbage_collection()
    def whole(self) -> RelayModel:
        """Return the pipeline as one model."""
        if self.options.function is not None:
            raise OptionError("function: a pipeline has no functions; pipeline_model names one")
        parts = members(self.model)
        self._require_known(parts)
        features = list(self.model.spec.description.input)
        names = [each.name for each in features]
        check_names(names, self.model.source)
        options = self.options
        self.shapes, self.dtypes = bind_inputs(names, options.input_shapes, options.input_dtypes)
        for index, part in enumerate(parts):
            label = f"models[{index}]"
            if part.spec.WhichOneof("Type") == SUPPRESSION:
                self._suppress(part, label)
            else:
                self._append(part, label)
        for feature in features:
            self._input(feature, "input")
        self.report.nodes = self.nodes
        raise_if_refused(self.report)
        return self._result(names)

    def _require_known(self, parts: Sequence[CoremlModel]) -> None:
        """Refuse a pipeline with models of other kinds, and name those that can be read alone."""
        kinds = [str(part.spec.WhichOneof("Type")) for part in parts]
        readable = [i for i, part in enumerate(parts) if kinds[i] in KINDS or part.is_pipeline]
        for index, kind in enumerate(kinds):
            if index not in readable and kind != SUPPRESSION:
                alone = ", ".join(f"{i} ({kinds[i]})" for i in readable)
                hint = f"use pipeline_model for one that is read alone: {alone}"
                reason = "a model of this kind is not read"
                self.report.add(kind, f"models[{index}]", reason, hint)
        raise_if_refused(self.report)

    def _append(self, part: CoremlModel, label: str) -> None:
        """Convert a model and take its outputs for those that follow."""
        wanted = [each.name for each in part.spec.description.input]
        shapes = {name: self.shapes[name] for name in wanted if name in self.shapes}
        met = [name for name in wanted if name in self.values and name not in self.inputs]
        options = replace(
            self.options,
            pipeline_model=None,
            input_shapes={**shapes, **{name: self._shape(name, label) for name in met}},
            input_dtypes={name: self.dtypes[name] for name in wanted if name in self.dtypes},
        )
        model = model_to_relay(part, options, self.report)
        self.nodes += self.report.nodes
        memo: dict[Expr, Expr] = {}
        for param in model.main.params:
            if param.name_hint in model.params:
                memo[param] = self._weight(param, model.params[param.name_hint])
            else:
                memo[param] = self._find_value(param, label)
        changed = any(old is not new for old, new in memo.items())
        body = rewrite(model.main.body, lambda _old, new: new, memo) if changed else model.main.body
        fields = [body]
        if isinstance(body, Tuple):
            fields = list(body.fields)
        elif isinstance(body.type, TupleType):
            fields = [TupleGetItem(body, index) for index in range(len(body.type.fields))]
        self._take(dict(zip(model.meta.outputs, fields, strict=True)), label)
        for name, value in model.values.items():
            self.named.setdefault(name, memo.get(value, value))
        self.labels = model.meta.labels or self.labels

    def _suppress(self, part: CoremlModel, label: str) -> None:
        """Add the suppression of boxes; its thresholds are inputs, or numbers if asked for so."""
        self.nodes += 1
        features = {each.name: each for each in self.model.spec.description.input}
        values = dict(self.values)
        for name, default in thresholds_of(part.spec).items():
            if name in values or name not in features:
                continue
            if self.options.optional_inputs == "defaults":
                self.report.notes.append(f"{name} is no input: it is always {default:g}")
                self.values[name] = relay.const(np.array([default], np.float32))
                continue
            values[name] = self._input(features[name], label)
            self.report.notes.append(
                f"{name} is an input; Core ML takes {default:g} where it is left out, and so does "
                "optional_inputs='defaults'"
            )
        try:
            found = suppression_to_relay(part.spec, values)
        except Unsupported as error:
            self.report.add(SUPPRESSION, label, error.reason, error.hint)
            raise_if_refused(self.report)
            return
        own = part.spec.nonMaximumSuppression
        kind = own.WhichOneof("ClassLabels")
        if kind is not None:
            texts = "\n".join(map(str, getattr(own, kind).vector))
            self.facts[f"{own.confidenceOutputFeatureName}.labels"] = texts
        self._take(found, label)

    def _take(self, found: Mapping[str, Expr], label: str) -> None:
        for name, value in found.items():
            if name in self.values:
                raise self._fault(f"{label} gives {name!r}, which is there already")
            self.values[name] = value

    def _input(self, feature: AnyValue, label: str) -> Expr:
        """Return an input of the pipeline that no model tells the type of."""
        name = feature.name
        if name not in self.values:
            try:
                variable = input_variable(feature, self.shapes.get(name), self.dtypes.get(name))
            except Unsupported as error:
                self.report.add(label, name, error.reason, error.hint)
                raise_if_refused(self.report)
                raise
            self.inputs[name] = self.values[name] = variable
        return self.values[name]

    def _find_value(self, param: Var, label: str) -> Expr:
        """Return the value of an input of a model: an input of the whole, or what is known."""
        name = param.name_hint
        if name not in self.values:
            if name not in {each.name for each in self.model.spec.description.input}:
                raise self._fault(f"{label} takes {name!r}, which nothing gives")
            self.inputs[name] = self.values[name] = param
            return param
        value = self.values[name]
        if value.type == param.type:
            return value
        if not isinstance(param.type, TensorType) or not isinstance(value.type, TensorType):
            raise self._fault(f"{label} takes {name!r} as {param.type!r}, not {value.type!r}")
        if value.type.shape != param.type.shape:
            self.report.add(label, name, f"is given as {value.type!r} and taken as {param.type!r}")
            raise_if_refused(self.report)
        return relay.cast(value, param.type.dtype)

    def _shape(self, name: str, label: str) -> tuple[int | str, ...]:
        """Return the shape of a value, for the model that takes it."""
        type_ = self.values[name].type
        dims = type_.shape if isinstance(type_, TensorType) else ()
        found = [dim.name if isinstance(dim, SymDim) else dim for dim in dims]
        plain = tuple(each for each in found if isinstance(each, (int, str)))
        if len(plain) < len(found):
            self.report.add(label, name, f"is given as {type_!r}, of lengths that are computed")
            raise_if_refused(self.report)
        return plain

    def _weight(self, param: Var, weight: Weight) -> Var:
        """Return a variable for a weight, of a name that no other has."""
        features = {each.name for each in self.model.spec.description.input}
        name, count = param.name_hint, 0
        while name in self.params or name in features:
            count += 1
            name = f"{param.name_hint}_{count}"
        found = param if name == param.name_hint else Var(name, param.type, Span(name))
        self.params[name] = weight
        self.weights.append(found)
        return found

    def _result(self, names: Sequence[str]) -> RelayModel:
        outputs = [each.name for each in tensors_of(self.model.spec.description)]
        missing = [name for name in outputs if name not in self.values]
        if missing:
            raise self._fault(f"output {missing[0]!r} is given by no model")
        results = [self.values[name] for name in outputs]
        body = results[0] if len(results) == 1 else Tuple(results)
        used = {node for node in post_order(body) if isinstance(node, Var)}
        weights = [each for each in self.weights if each in used]
        inputs = [self.inputs[name] for name in names if name in self.inputs]
        main = infer_function(Function([*inputs, *weights], body))
        given = [each.name_hint for each in inputs]
        meta = model_meta(self.model, given, outputs, labels=self.labels)
        meta = replace(meta, extra={**meta.extra, **self.facts})
        params = {each.name_hint: self.params[each.name_hint] for each in weights}
        return RelayModel(IRModule({"main": main}), params, meta, self.named)

    def _fault(self, message: str) -> FormatError:
        return FormatError(message, path=self.model.source)
