"""A toolchain in one file: a region's ONNX becomes C, that a shared library, and that is run.

Only what `acme.toml` lists is written. Weights are not compiled in: they are handed over with the
inputs, so they stay as they are to the last bit.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import serde

Shapes = dict[str, tuple[int, ...]]


def compiler() -> str | None:
    """Return the C compiler that there is."""
    return next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)


def elementwise(text: str) -> Callable[[onnx.NodeProto, Shapes, dict[str, Any]], str]:
    """Return what writes an operator on each element, with operands broadcast."""

    def write(node: onnx.NodeProto, shapes: Shapes, attributes: dict[str, Any]) -> str:
        lengths = shapes[node.output[0]]
        loops = "".join(
            f"for (long i{axis} = 0; i{axis} < {length}; i{axis}++) "
            for axis, length in enumerate(lengths)
        )
        operands = [f"{name}[{index(shapes[name], lengths)}]" for name in node.input]
        value = text.format(*operands, **attributes)
        return f"{loops}{node.output[0]}[{index(lengths, lengths)}] = {value};"

    return write


def index(shape: Sequence[int], lengths: Sequence[int]) -> str:
    """Return the place of an element of a tensor that is broadcast to these lengths."""
    terms, stride = ["0"], 1
    for back, length in enumerate(reversed(shape)):
        if length > 1:
            terms.append(f"i{len(lengths) - 1 - back} * {stride}")
        stride *= length
    return " + ".join(terms)


def product(node: onnx.NodeProto, shapes: Shapes, attributes: dict[str, Any]) -> str:
    """Write a matrix product, perhaps with a bias and a ReLU."""
    a, b, *bias = node.input
    (rows, inner), columns = shapes[a], shapes[node.output[0]][1]
    turned = node.op_type == "DenseRelu" or attributes.get("transB", 0)
    place = f"j * {inner} + k" if turned else f"k * {columns} + j"
    start = "0"
    if bias:
        names = {"i0": "i", "i1": "j"}
        start = f"{bias[0]}[{index(shapes[bias[0]], (rows, columns))}]"
        for old, new in names.items():
            start = start.replace(old, new)
    end = "sum > 0 ? sum : 0" if node.op_type == "DenseRelu" else "sum"
    return (
        f"for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{\n"
        f"    float sum = {start};\n"
        f"    for (long k = 0; k < {inner}; k++) sum += {a}[i * {inner} + k] * {b}[{place}];\n"
        f"    {node.output[0]}[i * {columns} + j] = {end};\n  }}"
    )


WRITERS: dict[str, Callable[[onnx.NodeProto, Shapes, dict[str, Any]], str]] = {
    "Add": elementwise("{} + {}"),
    "Mul": elementwise("{} * {}"),
    "Relu": elementwise("fmaxf({}, 0)"),
    "Scale": elementwise("{} * {by}f + {bias}f"),
    "MatMul": product,
    "Gemm": product,
    "DenseRelu": product,
}
DEFAULTS = {"Scale": {"bias": 0.0}}


def write_c(model: onnx.ModelProto) -> tuple[str, list[np.ndarray]]:
    """Return a model as a function `run` in C, and the weights that it is handed last."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    names: dict[str, str] = {}
    shapes: Shapes = {}

    def declare(name: str, shape: Sequence[int]) -> str:
        names[name] = f"t{len(names)}"
        shapes[names[name]] = tuple(shape)
        return names[name]

    lines = ["#include <math.h>", "", "void run(const float **in, float **out) {"]
    weights = [numpy_helper.to_array(each) for each in graph.initializer]
    known = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in known]
    types = [each.type.tensor_type.shape.dim for each in inputs]
    pairs = [
        (each.name, [d.dim_value for d in dim]) for each, dim in zip(inputs, types, strict=True)
    ]
    pairs += [(each.name, each.dims) for each in graph.initializer]
    for number, pair in enumerate(pairs):
        lines.append(f"  const float *{declare(*pair)} = in[{number}];")
    results = {each.name: number for number, each in enumerate(graph.output)}
    for value in (*graph.value_info, *graph.output):
        length = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        name = declare(value.name, length)
        size = int(np.prod(length))
        if value.name in results:
            lines.append(f"  float *{name} = out[{results[value.name]}];")
        else:
            lines.append(f"  static _Thread_local float {name}[{size}];")
    for node in graph.node:
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        renamed = onnx.NodeProto(op_type=node.op_type)
        renamed.input.extend(names[each] for each in node.input)
        renamed.output.extend(names[each] for each in node.output)
        merged = {**DEFAULTS.get(node.op_type, {}), **attributes}
        lines.append(f"  {WRITERS[node.op_type](renamed, shapes, merged)}")
    return "\n".join([*lines, "}", ""]), weights


def build(model: onnx.ModelProto, folder: Path) -> tuple[Path, list[np.ndarray]]:
    """Return the shared library of a model, and its weights."""
    text, weights = write_c(model)
    source, library = folder / "region.c", folder / "region.so"
    source.write_text(text)
    given = [compiler() or "cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    subprocess.run(given, check=True, capture_output=True)
    return library, weights


def open_on_acme(region: Any) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Compile a region and return what runs it: what `serde.register_runner` takes."""
    folder = tempfile.TemporaryDirectory()
    library, weights = build(region.proto(), Path(folder.name))
    run = ctypes.CDLL(str(library)).run
    held = [np.ascontiguousarray(each) for each in weights]

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = [*(np.ascontiguousarray(each, np.float32) for each in arrays), *held]
        results = [np.empty(port.type.concrete_shape, np.float32) for port in region.outputs]
        run(pointers(given), pointers(results))
        return results

    call.folder = folder  # type: ignore[attr-defined]  # It goes when the runner goes.
    return call


def pointers(arrays: Sequence[np.ndarray]) -> ctypes.Array[Any]:
    """Return the addresses of arrays, as C takes them."""
    return (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))


serde.register_runner("acme", open_on_acme, override=True)
