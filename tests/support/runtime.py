"""ONNX Runtime as the engine of converted models."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

LOG_ERRORS_ONLY = 3

OLD_RUNTIME = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24)
"""Whether this is the last ONNX Runtime for Python 3.10 or one before it."""

FIRST_ATTENTION = 23
"""The operator set that brought Attention."""


def skip_saturated_sums() -> None:
    """Skip what is left of a test where ONNX Runtime and MXNet saturate sums of bytes' products.

    They add two products in 16 bits on processors of x86 without VNNI.
    """
    if _saturates():
        pytest.skip("sums of products of bytes saturate on this processor")


@functools.cache
def _saturates() -> bool:
    bytes_ = [helper.make_tensor_value_info(*each) for each in (
        ("x", TensorProto.UINT8, [1, 64]), ("w", TensorProto.INT8, [64, 16]),
    )]  # fmt: skip
    total = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 16])
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    model = helper.make_model(
        helper.make_graph([node], "sums", bytes_, [total]),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
    )  # fmt: skip
    given = {"x": np.full((1, 64), 255, np.uint8), "w": np.full((64, 16), 127, np.int8)}
    (found,) = _session(model.SerializeToString()).run(None, given)
    return bool((found != 64 * 255 * 127).any())


def skip_wrong_attention(opset: int) -> None:
    """Skip what is left of a test where ONNX Runtime masks its first Attention wrongly."""
    if OLD_RUNTIME and opset >= FIRST_ATTENTION:
        pytest.skip("ONNX Runtime 1.23 masks its first Attention wrongly")


def skip_empty_sequences(lengths: Iterable[np.ndarray]) -> None:
    """Skip what is left of a test where ONNX Runtime crashes on sequences of length 0."""
    if OLD_RUNTIME and any((each == 0).any() for each in lengths):
        pytest.skip("ONNX Runtime 1.23 crashes in recurrent layers on sequences of length 0")


def skip_rnn_of_other_activations(activations: Sequence[str]) -> None:
    """Skip what is left of a test where ONNX Runtime's RNN writes beyond its memory."""
    if OLD_RUNTIME and activations:
        pytest.skip("ONNX Runtime 1.23 crashes in an RNN whose activations are named")


@functools.cache
def newest_runtime_opset() -> int:
    """The newest operator set that the installed onnx knows and ONNX Runtime has kernels of.

    ONNX Runtime 1.32 takes version 28, but has no kernels of its quantisation.
    """
    for opset in range(onnx.defs.onnx_opset_version(), 17, -1):
        ends = [
            helper.make_tensor_value_info(name, dtype, [1])
            for name, dtype in (("x", TensorProto.FLOAT), ("y", TensorProto.UINT8))
        ]
        node = helper.make_node("QuantizeLinear", ["x", "x"], ["y"])
        graph = helper.make_graph([node], "probe", ends[:1], ends[1:])
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = helper.find_min_ir_version_for(opsets)
        try:
            _session(model.SerializeToString())
        except Exception:  # ONNX Runtime has an error class a cause, all of its own
            continue
        return opset
    return 17


def open_session(source: Path | bytes, *, fuse: bool = True) -> onnxruntime.InferenceSession:
    """A session on the CPU, with or without nodes fused beyond what ONNX has.

    What the runtime of Python 3.10 has no kernel for is skipped.
    """
    try:
        return _session(source, fuse)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        if OLD_RUNTIME:
            pytest.skip(f"ONNX Runtime 1.23 has no kernel: {error}")
        raise


def _session(source: Path | bytes, fuse: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    if not fuse:
        level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.graph_optimization_level = level
    options.log_severity_level = LOG_ERRORS_ONLY
    options.intra_op_num_threads = 1
    model = source if isinstance(source, bytes) else str(source)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_onnx(
    source: Path | bytes, inputs: Mapping[str, np.ndarray]
) -> tuple[list[str], list[np.ndarray]]:
    """Names and values of a model's outputs.

    Raises:
        AssertionError: The model has not just the inputs given, in their order.
    """
    session = open_session(source)
    names = [each.name for each in session.get_inputs()]
    if names != list(inputs):
        raise AssertionError(f"inputs are {names}, not {list(inputs)}")
    outputs = [each.name for each in session.get_outputs()]
    return outputs, session.run(None, dict(inputs))


def optimized_operators(source: Path | bytes) -> Counter[str]:
    """How many nodes of each operator ONNX Runtime has left when it has fused what it can."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # It warns of nodes for this machine alone.
        extended = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.graph_optimization_level = extended
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        model = source if isinstance(source, bytes) else str(source)
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        graph = onnx.load(options.optimized_model_filepath).graph
    return Counter(node.op_type for node in graph.node)
