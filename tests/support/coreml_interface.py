"""Small nets with images, labels and flexible lengths, of coremltools and of Relay."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.coreml_models import tools

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.core.report import Report
from serde.coreml.model import CoremlModel
from serde.coreml.options import CoremlExportOptions
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run

FIXED = (1, 3, 8, 8)
SIZES = [(1, 3, 8, 8), (1, 3, 16, 20)]
LABELS = ["tench", "goldfish", "shark"]
SCALED = {"color_layout": "BGR", "scale": 1 / 255, "bias": (-0.1, -0.2, -0.3)}


def program(shape: tuple[Any, ...], dtype: str = "float32", target: str = "iOS15") -> Any:
    """A convolution, a dense layer and a softmax as a program of MIL."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    generator = np.random.default_rng(1)
    kernel = generator.normal(size=(4, shape[1], 3, 3)).astype(dtype)
    weight = generator.normal(size=(3, 4)).astype(dtype)
    spec = Builder.TensorSpec(shape=shape, dtype={"float16": types.fp16}.get(dtype, types.fp32))

    @Builder.program(input_specs=[spec], opset_version=getattr(ct.target, target))
    def net(x: Any) -> Any:
        y = Builder.conv(
            x=x, weight=kernel, bias=np.ones(4, dtype), pad_type="custom", pad=[0, 0, 0, 0]
        )
        y = Builder.reduce_max(x=Builder.relu(x=y), axes=[2, 3], keep_dims=False)
        y = Builder.linear(x=y, weight=weight, bias=np.zeros(3, dtype))
        return Builder.softmax(x=y, axis=1, name="out")

    return net


def convert(net: Any, precision: str, target: str, **options: Any) -> Any:
    """What coremltools makes of a program."""
    ct = tools()
    return ct.convert(
        net,
        convert_to="mlprogram",
        compute_precision=getattr(ct.precision, precision.upper()),
        minimum_deployment_target=getattr(ct.target, target),
        skip_model_load=True,
        **options,
    )


def image(shape: Any = FIXED, layout: str = "RGB", **options: Any) -> dict[str, Any]:
    ct = tools()
    color = getattr(ct.colorlayout, layout)
    return {"inputs": [ct.ImageType(name="x", shape=shape, color_layout=color, **options)]}


def relay_net(
    shape: tuple[Any, ...], dtype: str = "float32", *, softmax: bool = True, layout: str = "NCHW"
) -> RelayModel:
    """A convolution, a pooling and a softmax as Relay."""
    channels = shape[layout.index("C")]
    x = Var("x", TensorType(shape, dtype))
    generator = np.random.default_rng(2)
    kernel = relay.Constant(generator.normal(size=(3, channels, 3, 3)).astype(dtype))
    data = x if layout == "NCHW" else relay.transpose(x, axes=[0, 3, 1, 2])
    y = relay.nn.relu(relay.nn.conv2d(data, kernel, channels=3, kernel_size=(3, 3)))
    y = relay.max(y, axis=[2, 3])
    y = relay.nn.softmax(y, axis=1) if softmax else y
    meta = ModelMeta(inputs=("x",), outputs=("scores",), source_format="relay")
    return RelayModel(IRModule({"main": Function([x], y)}), {}, meta)


def written(model: RelayModel, report: Report | None = None, **options: Any) -> CoremlModel:
    own = CoremlExportOptions(**options)
    return get_bridge("coreml").from_relay(model, own, report=report or Report("test"))


def read(model: CoremlModel, **options: Any) -> RelayModel:
    return serde.to_relay(get_bridge("coreml").complete(model), **options)


def evaluate(model: RelayModel, *inputs: np.ndarray) -> Any:
    """What Relay's interpreter computes of a model that was read."""
    weights = {name: weight.array() for name, weight in model.params.items()}
    given = {**weights, **dict(zip(model.meta.inputs, inputs, strict=True))}
    return run(model.main, [given[each.name_hint] for each in model.main.params])
