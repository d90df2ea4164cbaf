"""What Core ML models are made of that come of all samples: operators of MIL, kinds of layer."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from support.coreml_networks import layer_kinds
from support.coreml_samples import is_covered, model_of
from support.samples import BuiltSample, build

import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.coreml.exporter import from_relay
from serde.coreml.model import operations
from serde.coreml.options import CoremlExportOptions
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr, Function, If, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import all_ops, call
from serde.relay.ir.types import TensorType

CONSENT = frozenset(
    {"float64-as-float32", "int64-as-int32", "integers-as-float32", "quantised-as-floats"}
)


def with_weights(built: BuiltSample) -> tuple[RelayModel, dict[str, np.ndarray]]:
    """The sample as a model whose first operand is the input, and what goes in."""
    data, *others = built.variables
    main = infer_function(built.function)
    values = dict(zip(built.variables, built.arrays, strict=True))
    params = {each.name_hint: ArrayWeight(values[each]) for each in others}
    fields = getattr(built.call.type, "fields", (built.call.type,))
    meta = ModelMeta((data.name_hint,), tuple(f"out{i}" for i in range(len(fields))))
    return RelayModel(IRModule({"main": main}), params, meta), {data.name_hint: values[data]}


def model(body: Expr, *params: Var, **weights: np.ndarray) -> RelayModel:
    """A model of one output; parameters that have weights come last."""
    main = infer_function(Function(list(params), body))
    inputs = tuple(each.name_hint for each in params if each.name_hint not in weights)
    kept = {name: ArrayWeight(array) for name, array in weights.items()}
    return RelayModel(IRModule({"main": main}), kept, ModelMeta(inputs, ("out",)))


def var(name: str, *shape: int | str, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def others() -> Iterator[tuple[RelayModel, dict[str, object]]]:
    """Models that no sample is, with options to export them."""
    x, flag = var("x", 1, 4), var("flag", 1)
    positive = relay.greater(relay.reshape(flag, ()), relay.const(np.float32(0)))
    yield model(If(positive, relay.exp(x), relay.nn.relu(x)), x, flag), {}
    yield model(relay.nn.softmax(x), x), {"class_labels": ("a", "b", "c", "d")}
    yield model(relay.power(relay.const(np.float32(2)), x), x), {}
    yield model(relay.trilu(x, relay.const(np.int32(0)), upper=True), x), {}
    held = var("x", 2, dtype="float16")
    kept = model(relay.add(held, held), held)
    yield kept.evolve(meta=replace(kept.meta, extra={"x.state": "out"})), {}
    yield from ((each, {}) for each in (*weighed(), *compressed(), *images()))


def weighed() -> Iterator[RelayModel]:
    """Layers with weights: quantised ones, slopes of channels, two directions."""
    x = var("x", 1, 4)
    codes = np.arange(32, dtype=np.int8).reshape(8, 4)
    for scale in (np.float32(0.5), np.full(8, 0.5, np.float32)):
        weight = var("w", 8, 4, dtype="int8")
        floats = relay.serde.dequantize_linear(weight, relay.const(scale), None, axis=0)
        yield model(relay.nn.dense(x, floats), x, weight, w=codes)
    image, slope = var("x", 1, 3, 4, 5), var("w", 3)
    yield model(relay.nn.prelu(image, slope), image, slope, w=np.ones(3, np.float32))
    steps, kept = var("x", 3, 2, 4), {"w": np.ones((2, 20, 4)), "r": np.ones((2, 20, 5))}
    given = [var(name, *array.shape) for name, array in kept.items()]
    found = relay.serde.lstm(steps, *given, hidden_size=5, direction="bidirectional")
    arrays = {name: array.astype(np.float32) for name, array in kept.items()}
    yield model(found[0], steps, *given, **arrays)


def compressed() -> Iterator[RelayModel]:
    """A product with weights of a table, of zeros left out, and of both at once."""
    x, codes = var("x", 1, 4), var("w", 8, 4, dtype="uint8")
    table = relay.const(np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1))
    places = np.arange(32, dtype=np.uint8).reshape(8, 4) % 4
    weight = relay.serde.lut_to_dense(codes, table)
    yield model(relay.nn.dense(x, weight), x, codes, w=places)
    mask, some = var("m", 8, 4, dtype="uint8"), var("w", 16, dtype="uint8")
    arrays = {"m": places % 2, "w": places.reshape(-1)[:16]}
    scale = relay.const(np.full((8, 1), 0.5, np.float32))
    values = (
        relay.cast(some, "float32"),
        relay.serde.lut_to_sparse(mask, some, table),
        relay.serde.dequantize_sparse(mask, some, scale),
    )
    for each in values:
        weight = relay.serde.sparse_to_dense(each, mask)
        yield model(relay.nn.dense(x, weight), x, mask, some, **arrays)


def images() -> Iterator[RelayModel]:
    """Images of open lengths, cut out and resized, and a product of them."""
    x, boxes, places = var("x", 1, 3, 8, 8), var("boxes", 2, 4), var("i", 2, dtype="int32")
    cut = relay.image.crop_and_resize(x, boxes, places, (4, 4), layout="NCHW")
    yield model(cut, x, boxes, places)
    size, region = var("size", 2, dtype="int64"), relay.const(np.zeros(4, np.float32))
    yield model(call("dyn.image.resize2d", x, size, region), x, size)
    y = var("y", 1, 8, 8, 5)
    yield model(relay.einsum([x, y], "nchw,nwhu->nchu"), x, y)
    wide = var("x", 1, 3, "H", "W")
    scaled = relay.nn.upsampling(wide, 2, 2, method="bilinear", align_corners=True)
    yield model(scaled, wide)
    rows = var("x", "N", "M", 2, 2)
    yield model(relay.reshape(rows, (0, 0, 4, 1)), rows)


def models() -> Iterator[tuple[RelayModel, dict[str, object]]]:
    """The samples with all operands as inputs, and with those but the first as weights."""
    for name, definition in all_ops().items():
        if is_covered(name):
            for given in definition.samples:
                built = build(definition, given)
                yield model_of(built), {}
                weights = built.arrays[1:]
                if weights and all(isinstance(each, np.ndarray) for each in weights):
                    yield with_weights(built)[0], {}
    yield from others()


@functools.cache
def written(target: str) -> frozenset[str]:
    """The operators of MIL, or kinds of layer, that any of the models becomes."""
    found: set[str] = set()
    for source, more in models():
        options = CoremlExportOptions(
            minimum_deployment_target=target, compute_precision="float32", allow=CONSENT, **more
        )
        try:
            native = from_relay(source, options, Report())
        except UnsupportedModelError:
            continue
        if native.kind == "mlProgram":
            found.update(op.type for op in operations(native.spec))
        else:
            found.update(layer_kinds(native))
    return frozenset(found)
