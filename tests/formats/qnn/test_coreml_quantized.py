"""MIL's compressed weights and quantisation in Relay, against coremltools' own decompression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.mil import check_import

import serde
from serde.relay.run.interpreter import run

pytestmark = pytest.mark.wide


def draw(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def integers(dtype: str, *shape: int, low: int | None = None, high: int | None = None) -> Any:
    rng = np.random.default_rng(2)
    limits = np.iinfo(dtype)
    ends = (limits.min if low is None else low, limits.max if high is None else high)
    return rng.integers(*ends, shape, endpoint=True).astype(dtype)


def check_compressed(
    target: str, shape: tuple[int, ...], build: Any, path: Any, dtype: str = "float32"
) -> None:
    """Compare what a weight that a program keeps compressed becomes with what coremltools makes.

    Args:
        target: Deployment target.
        shape: Shape of the weight.
        build: Makes the operations of the weight and returns its variable.
        path: Directory of the test.
        dtype: dtype of the weight.
    """
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    wanted: list[np.ndarray] = []
    kind = {"float16": types.fp16, "float32": types.fp32}[dtype]
    version = getattr(ct.target, target)

    @Builder.program(
        input_specs=[Builder.TensorSpec(shape=shape, dtype=kind)], opset_version=version
    )
    def program(x: Any) -> Any:
        weight = build(Builder, types)
        found = weight.op.materialized_val_inference()
        wanted.append(found[weight.op.outputs.index(weight)] if isinstance(found, tuple) else found)
        return Builder.add(x=x, y=weight, name="result")

    model = ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=version,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )
    file = path / "model.mlpackage"
    model.save(str(file))
    found = serde.to_relay(file)
    values = {name: weight.array() for name, weight in found.params.items()}
    values["x"] = np.zeros(shape, dtype)
    (actual,) = [run(found.main, [values[p.name_hint] for p in found.main.params], mod=found.mod)]
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, wanted[0], rtol=1e-6 if dtype == "float32" else 1e-3)


AFFINE: dict[str, tuple[str, Any, Any, int]] = {
    "whole": ("uint8", np.uint8(7), np.float32(0.25), 0),
    "each": ("int8", np.array([1, -2, 3, 4], np.int8), np.array([1, 2, 3, 4], np.float32), 0),
    "last": ("uint8", integers("uint8", 6), draw(6, seed=5), -1),
    "mixed": ("int8", np.int8(3), draw(4, seed=5), 0),
    "shifted": ("int8", np.float32(0.5), np.float32(0.25), 0),
}


@pytest.mark.parametrize("name", AFFINE)
def test_constexpr_affine_dequantize(name: str, tmp_path: Any) -> None:
    dtype, zero, scale, axis = AFFINE[name]
    data = integers(dtype, 4, 5, 6)

    def build(mb: Any, _types: Any) -> Any:
        return mb.constexpr_affine_dequantize(
            quantized_data=data, zero_point=zero, scale=scale, axis=np.int32(axis)
        )

    check_compressed("iOS16", (4, 5, 6), build, tmp_path)


@pytest.mark.parametrize("target", ["iOS16", "iOS18"])
def test_constexpr_cast(target: str, tmp_path: Any) -> None:
    data = draw(4, 5).astype(np.float16)

    def build(mb: Any, _types: Any) -> Any:
        return mb.constexpr_cast(source_val=data, output_dtype="fp32")

    check_compressed(target, (4, 5), build, tmp_path)


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """The lowest bits of each value, from the lowest bits of each byte up."""
    spread = np.unpackbits(values.astype(np.uint8).reshape(-1, 1), axis=1, bitorder="little")
    return np.packbits(spread[:, :bits].reshape(-1), bitorder="little")


@pytest.mark.parametrize("bits", [1, 2, 4, 6, 8])
@pytest.mark.parametrize("shape", [(4, 5, 6), (7, 3)])
def test_constexpr_lut_to_dense_of_packed_places(
    shape: tuple[int, ...], bits: int, tmp_path: Any
) -> None:
    places = integers("uint8", *shape, low=0, high=2**bits - 1)
    lut = draw(2**bits)

    def build(mb: Any, _types: Any) -> Any:
        return mb.constexpr_lut_to_dense(
            indices=packed(places, bits), lut=lut, shape=np.array(shape, np.uint32)
        )

    check_compressed("iOS16", shape, build, tmp_path)


@pytest.mark.parametrize("chance", [0.3, 1.0])
def test_constexpr_sparse_to_dense_of_packed_marks(chance: float, tmp_path: Any) -> None:
    mask = np.random.default_rng(4).uniform(0, 1, (5, 7)) < chance
    values = draw(int(mask.sum()))

    def build(mb: Any, _types: Any) -> Any:
        return mb.constexpr_sparse_to_dense(
            nonzero_data=values, mask=packed(mask, 1), shape=np.array((5, 7), np.uint32)
        )

    check_compressed("iOS16", (5, 7), build, tmp_path)


def narrow(types: Any, bits: int, values: np.ndarray) -> np.ndarray:
    """Values of a type narrower than a byte, as coremltools holds them."""
    from coremltools.converters.mil.mil.types import nptype_from_builtin, string_to_builtin

    if bits == 8:
        return values.astype(np.uint8)
    return values.astype(nptype_from_builtin(string_to_builtin(f"uint{bits}")))


LUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, int | None]] = {
    "whole": ((4, 6), (1, 1), 1, None),
    "rows": ((4, 6), (2, 1), 1, None),
    "blocks": ((4, 6), (2, 3), 1, None),
    "vectors": ((4, 6), (1, 1), 3, 0),
    "last_vectors": ((4, 6), (1, 1), 2, -1),
    "vectors_of_rows": ((4, 6), (2, 1), 2, 1),
}


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("name", LUTS)
def test_constexpr_lut_to_dense(name: str, bits: int, tmp_path: Any) -> None:
    shape, blocks, width, axis = LUTS[name]
    places = integers("uint8", *shape, low=0, high=2**bits - 1)
    lut = draw(*blocks, 2**bits, width)
    wide = list(shape)
    if axis is not None:
        wide[axis] *= width

    def build(mb: Any, types: Any) -> Any:
        given = {"vector_axis": np.int32(axis)} if axis is not None else {}
        return mb.constexpr_lut_to_dense(indices=narrow(types, bits, places), lut=lut, **given)

    check_compressed("iOS18", tuple(wide), build, tmp_path)


SCALES: dict[str, tuple[int, ...]] = {
    "whole": (1, 1, 1),
    "channels": (4, 1, 1),
    "middle": (1, 6, 1),
    "blocks": (4, 3, 2),
    "rows_of_blocks": (4, 3, 1),
    "mixed": (2, 3, 1),
}


@pytest.mark.parametrize("kind", ["int8", "uint8", "int4", "uint4"])
@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("name", SCALES)
def test_constexpr_blockwise_shift_scale(
    name: str, shifted: bool, kind: str, tmp_path: Any
) -> None:
    from coremltools.converters.mil.mil.types import nptype_from_builtin, string_to_builtin

    bits, signed = int(kind.removeprefix("u").removeprefix("int")), kind.startswith("int")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    own = np.dtype(kind) if bits == 8 else nptype_from_builtin(string_to_builtin(kind))
    data = integers("int16", 4, 6, 2, low=low, high=high).astype(own)
    scale = draw(*SCALES[name])
    offset = integers("int16", *SCALES[name], low=low, high=high).astype(own)

    def build(mb: Any, _types: Any) -> Any:
        given = {"offset": offset} if shifted else {}
        return mb.constexpr_blockwise_shift_scale(data=data, scale=scale, **given)

    check_compressed("iOS18", (4, 6, 2), build, tmp_path)


def test_constexpr_blockwise_shift_scale_in_float16(tmp_path: Any) -> None:
    data, scale = integers("int8", 4, 6), draw(4, 1).astype(np.float16)

    def build(mb: Any, _types: Any) -> Any:
        return mb.constexpr_blockwise_shift_scale(data=data, scale=scale)

    check_compressed("iOS18", (4, 6), build, tmp_path, "float16")


MASK = np.random.default_rng(6).uniform(0, 1, (4, 6)) < 0.5


def test_constexpr_sparse_to_dense(tmp_path: Any) -> None:
    values = draw(int(MASK.sum()))

    def build(mb: Any, types: Any) -> Any:
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=narrow(types, 1, MASK))

    check_compressed("iOS18", (4, 6), build, tmp_path)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_constexpr_lut_to_sparse(axis: int | None, tmp_path: Any) -> None:
    places = integers("uint8", int(MASK.sum()), low=0, high=3)
    lut = draw(2, 1, 4, 1 if axis is None else 3)
    wide = [4, 6]
    if axis is not None:
        wide[axis] *= 3

    def build(mb: Any, types: Any) -> Any:
        given = {"vector_axis": np.int32(axis)} if axis is not None else {}
        mask, values = mb.constexpr_lut_to_sparse(
            indices_mask=narrow(types, 1, MASK),
            indices_nonzero_data=narrow(types, 2, places),
            lut=lut,
            **given,
        )
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=mask)

    check_compressed("iOS18", tuple(wide), build, tmp_path)


@pytest.mark.parametrize("shifted", [True, False])
def test_constexpr_sparse_blockwise_shift_scale(shifted: bool, tmp_path: Any) -> None:
    data, scale = integers("int8", int(MASK.sum())), draw(2, 3)
    offset = integers("int8", 2, 3)

    def build(mb: Any, types: Any) -> Any:
        given = {"offset": offset} if shifted else {}
        mask, values = mb.constexpr_sparse_blockwise_shift_scale(
            data_mask=narrow(types, 1, MASK), nonzero_data=data, scale=scale, **given
        )
        return mb.constexpr_sparse_to_dense(nonzero_data=values, mask=mask)

    check_compressed("iOS18", (4, 6), build, tmp_path)


STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "whole": ({"scale": np.float32(0.05)}, "int8"),
    "whole_shifted": ({"scale": np.float32(0.05), "zero_point": np.uint8(100)}, "uint8"),
    "each": ({"scale": np.array([0.05, 0.1, 0.2], np.float32), "axis": np.int32(1)}, "int8"),
    "each_shifted": (
        {
            "scale": np.array([0.05, 0.1, 0.2], np.float32),
            "zero_point": np.array([10, 20, 30], np.uint8),
            "axis": np.int32(-2),
        },
        "uint8",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_quantize(name: str) -> None:
    attrs, dtype = STEPS[name]
    x = draw(2, 3, 50) * 12
    x.flat[:4] = [0.025, 0.075, -0.025, 0.125]
    check_import("quantize", {"input": x}, {**attrs, "output_dtype": dtype}, target="iOS17")


@pytest.mark.parametrize("name", STEPS)
def test_dequantize(name: str) -> None:
    """By way of a quantisation, as programs take no bytes."""
    ct = tools()
    from coremltools.converters.mil import Builder

    attrs, dtype = STEPS[name]
    x = draw(2, 3, 50) * 12

    @Builder.program(input_specs=[Builder.TensorSpec(shape=x.shape)], opset_version=ct.target.iOS17)
    def program(x: Any) -> Any:
        steps = Builder.quantize(input=x, output_dtype=dtype, **attrs)
        return Builder.dequantize(input=steps, name="result", **attrs)

    model = ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.iOS17,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )
    found = serde.to_relay(model)
    values = {key: weight.array() for key, weight in found.params.items()} | {"x": x}
    actual = run(found.main, [values[p.name_hint] for p in found.main.params], mod=found.mod)
    axis = attrs.get("axis")
    shape = [1] * 3
    if axis is not None:
        shape[axis] = -1
    scale = attrs["scale"].reshape(shape)
    zero = np.asarray(attrs.get("zero_point", 0)).reshape(shape if axis is not None else ())
    limits = np.iinfo(dtype)
    steps = np.clip(np.rint(x / scale) + zero.astype(np.float32), limits.min, limits.max)
    np.testing.assert_allclose(actual, (steps - zero) * scale, rtol=1e-6, atol=1e-6)
