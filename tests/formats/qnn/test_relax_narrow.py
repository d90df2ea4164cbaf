"""Floats of 8 bits and integers of 4 in modules of Relax, and weights that hold several in a word.

TVM casts neither zeros nor subnormal numbers of 8 bits right on processors, and does not compute
what shares a byte: ``ml_dtypes`` and ONNX Runtime judge these.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnxruntime
import tvm
from support.relax_imports import build, compare, read_and_run, run_in_tvm
from tvm import relax, te, tirx

import serde
from serde.errors import UnsupportedModelError

NUMBERS = np.array([0, -0.0, 2**-16, 2**-9, 0.011, 1.0625, -3.3, 17, 447, 500, 1e6, np.nan], "f")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_casts_to_floats_of_8_bits_and_back(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    every = np.arange(256, dtype=np.uint8).view(dtype)
    held = relax.const(every.reshape(16, 16), name)

    def cast(x: relax.Var) -> relax.Expr:
        narrow = relax.op.astype(relax.op.astype(x, name), "float32")
        return relax.Tuple([narrow, relax.op.astype(held, "float32")])

    module = build(cast, [NUMBERS])
    expected = [NUMBERS.astype(dtype).astype("f"), every.astype("f").reshape(16, 16)]
    compare(read_and_run(module, [NUMBERS]), expected)
    model = serde.export_model(module, format="onnx", opset=21)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    compare(session.run(None, {session.get_inputs()[0].name: NUMBERS}), expected)


def _packed(dtype: str) -> tvm.IRModule:
    held = tvm.runtime.tensor(np.arange(16, dtype=np.uint8) * 17)._create_view((4, 8), dtype)
    return build(lambda x: relax.op.add(relax.op.astype(relax.const(held), "int32"), x), [ZERO])


ZERO = np.zeros((1, 8), np.int32)


def test_a_constant_of_4_bits_has_signs() -> None:
    codes = np.repeat(np.arange(16, dtype=np.int8), 2).reshape(4, 8)
    module = _packed("int4")
    compare(read_and_run(module, [ZERO]), [codes.astype(ml_dtypes.int4).astype(np.int32)])


@pytest.mark.parametrize("dtype", ["uint4", "int2"])
def test_a_constant_that_tvm_cannot_unpack_is_refused(dtype: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"TVM does not tell how it packs {dtype}"):
        serde.to_relay(_packed(dtype))


def _decode(words: te.Tensor, scales: te.Tensor) -> te.Tensor:
    def one(row: tirx.Var, place: tirx.Var) -> tirx.Expr:
        shift = (place % 8 * 4).astype("uint32")
        code = (words[row, place // 8] >> shift) & tirx.const(15, "uint32")
        return (code.astype("float16") - tirx.const(7, "float16")) * scales[row, place // 32]

    return te.compute((16, 32), one, name="decode")


def _decoded(shapes: Sequence[np.ndarray]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    types = [relax.TensorType(each.shape, each.dtype.name) for each in shapes]
    x, words, scales = (relax.Var(f"x{i}", each) for i, each in enumerate(types))
    with builder.function("main", [x, words, scales]):
        weight = builder.emit_te(_decode, words, scales)
        product = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))
        builder.emit_func_output(builder.emit(relax.Tuple([weight, product])))
    return builder.get()


def test_weights_of_which_a_word_holds_eight_are_unpacked_as_tvm_does() -> None:
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal((2, 32)).astype(np.float16),
        random.integers(0, 2**32, (16, 4), dtype=np.uint32),
        random.random((16, 1)).astype(np.float16),
    ]
    module = _decoded(arrays)
    expected = run_in_tvm(module, arrays)
    compare(read_and_run(module, arrays), expected)
    session = onnxruntime.InferenceSession(
        serde.export_model(module, format="onnx").SerializeToString()
    )
    names = [each.name for each in session.get_inputs()]
    compare(session.run(None, dict(zip(names, arrays, strict=True))), expected)
