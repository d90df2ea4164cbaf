"""Modules of Relax in folders, and texts of them, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import serde
import serde.relay as relay
from serde.core.weights import Array, as_weight
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

__all__ = ["HEAD", "SCRIPT", "layered_model", "module_text", "write_model"]

HEAD = """\
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.script import relax as R

"""

SCRIPT = """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv: R.Tensor((2, 3), dtype="float32") = R.nn.relu(x)
            gv: R.Tensor((2, 3), dtype="float32") = R.add(lv, R.const(1.5, "float32"))
            R.output(gv)
        return gv
"""
"""A module as TVM prints it."""


def module_text(line: str, *, before: str = "") -> str:
    """Return a text with a line in the place of the first that computes something."""
    wanted = 'lv: R.Tensor((2, 3), dtype="float32") = R.nn.relu(x)'
    return HEAD + before + SCRIPT.replace(wanted, line)


def layered_model() -> RelayModel:
    """Return a model with two weights, a constant and names that variables cannot have."""
    rng = np.random.default_rng(0)
    image = relay.var("data:0", shape=(2, 3, 8, 8), dtype="float32")
    kernel = relay.var("conv.weight", shape=(4, 3, 3, 3), dtype="float32")
    bias = relay.var('b"\n\\', shape=(4,), dtype="float32")
    layer = relay.nn.conv2d(image, kernel, padding=(1, 1), kernel_size=(3, 3), channels=4)
    shifted = relay.nn.bias_add(layer, bias)
    scaled = relay.multiply(shifted, relay.const(np.linspace(-1, 1, 8, dtype="float32")))
    result = relay.Tuple([relay.nn.relu(scaled), relay.nn.softmax(scaled)])
    function = relay.Function([image, kernel, bias], result)
    params = {
        "conv.weight": rng.normal(size=(4, 3, 3, 3)).astype("float32"),
        'b"\n\\': rng.normal(size=4).astype("float32"),
    }
    return RelayModel(
        IRModule.from_expr(function),
        {name: as_weight(value) for name, value in params.items()},
        ModelMeta(inputs=("data:0",), outputs=("prob/1", 'other "one"')),
    )


def write_model(path: Path, model: RelayModel | None = None) -> Path:
    """Write a model to a folder and return its path."""
    serde.export_model(model or layered_model(), format="relax", path=path)
    return path


def arrays(model: RelayModel) -> dict[str, Array]:
    """Return the weights of a model by name."""
    return {name: weight.array() for name, weight in model.params.items()}
