"""Small Core ML models that coremltools itself makes."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def tools() -> Any:
    """The module ``coremltools``, imported without its warnings about what is not there."""
    if "coremltools" not in sys.modules:
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        import coremltools  # noqa: F401

        logging.disable(before)
    from coremltools.converters import _converters_entry

    # Each conversion collects the garbage of the whole process, which is most of its time.
    _converters_entry.gc = SimpleNamespace(collect=lambda: 0)
    return sys.modules["coremltools"]


def small_program(target: str = "iOS15") -> Any:
    """A convolution, a rectifier and a softmax as an ``MLModel`` in float32."""
    ct = tools()
    from coremltools.converters.mil import Builder

    kernel = np.arange(108, dtype=np.float32).reshape(4, 3, 3, 3) / 108

    @Builder.program(
        input_specs=[Builder.TensorSpec(shape=(1, 3, 8, 8))],
        opset_version=getattr(ct.target, target),
    )
    def program(x: Any) -> Any:
        y = Builder.conv(
            x=x, weight=kernel, bias=np.ones(4, np.float32), pad_type="same", name="conv"
        )
        return Builder.softmax(x=Builder.relu(x=y), axis=1, name="out")

    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=getattr(ct.target, target),
    )


def small_network() -> Any:
    """A dense layer as a NeuralNetwork."""
    ct = tools()
    features = [("x", ct.models.datatypes.Array(16))], [("y", ct.models.datatypes.Array(64))]
    builder = ct.models.neural_network.NeuralNetworkBuilder(*features)
    weights = np.arange(1024, dtype=np.float32).reshape(64, 16)
    builder.add_inner_product("dense", weights, None, 16, 64, False, "x", "y")
    return ct.models.MLModel(builder.spec, skip_model_load=True)


def package(model: Any, path: Path) -> Path:
    """Save an ``MLModel`` and return the path."""
    model.save(str(path))
    return path
