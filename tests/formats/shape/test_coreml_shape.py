"""MIL's shapes, reductions and products in Relay, against what coremltools itself infers."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.mil import check_import

import serde
from serde.relay.run.interpreter import run

pytestmark = pytest.mark.wide

BOTH = ("iOS15", "iOS17")


def draw(*shape: int, name: str = "x", low: float = -2.0, high: float = 2.0) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return rng.uniform(low, high, shape).astype(np.float32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def check(
    op: str, tensors: dict[str, Any], attrs: dict[str, Any], target: str = "iOS15", **more: Any
) -> None:
    """Compare an operator with coremltools, or with NumPy where that infers nothing."""
    check_import(op, tensors, attrs, target=target, **more)


X = draw(2, 3, 4)
REDUCTIONS = ("l1_norm", "l2_norm", "log_sum", "log_sum_exp", "max", "mean", "min", "prod", "sum",
              "sum_square")  # fmt: skip


@pytest.mark.parametrize("attrs", [{}, {"axes": [1]}, {"axes": [-1, 0], "keep_dims": True}])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, attrs: dict[str, Any]) -> None:
    check(f"reduce_{name}", {"x": np.abs(X) + 0.1}, attrs, tolerance=1e-5)


@pytest.mark.parametrize("name", ["l1_norm", "max", "mean", "min", "prod", "sum", "sum_square"])
def test_reduction_of_integers(name: str) -> None:
    check(f"reduce_{name}", {"x": ints([-7, 3, 3], [5, 0, -2])}, {"axes": [1]})


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("attrs", [{}, {"axis": 0}, {"axis": 1, "keep_dims": True}])
@pytest.mark.parametrize("op", ["reduce_argmax", "reduce_argmin"])
def test_place_of_an_extreme(op: str, attrs: dict[str, Any], target: str) -> None:
    check(op, {"x": X}, attrs, target)


def test_place_in_a_narrow_dtype() -> None:
    check("reduce_argmax", {"x": X}, {"axis": 1, "output_dtype": "uint16"}, "iOS17")


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_cumsum(axis: int, exclusive: bool, reverse: bool) -> None:
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    check("cumsum", {"x": X}, attrs, tolerance=1e-5)


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("shape", [[6, 4], [-1, 4], [0, -1, 2]])
def test_reshape(shape: list[int], target: str) -> None:
    check("reshape", {"x": X}, {"shape": ints(*shape)}, target)


def test_reshape_to_lengths_from_the_right() -> None:
    check("reshape", {"x": draw(2, 50)}, {"shape": ints(1, 0, -1, 0)}, "iOS17")


@pytest.mark.parametrize("shape", [[6, 4], [2, 12, 1]])
def test_reshape_to_a_computed_shape(shape: list[int]) -> None:
    check("reshape", {"x": X, "shape": ints(*shape)}, {})


@pytest.mark.parametrize("target", ["iOS16", "iOS17"])
def test_reshape_like(target: str) -> None:
    tensors = {"x": draw(2, 3, 30), "ref_tensors": (draw(2, 3, 4), draw(1, 5, 6))}
    attrs = {"begins": (0, 1), "ends": (2, 0), "end_masks": (False, True)}
    check("reshape_like", tensors, attrs, target)


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "transpose": ("transpose", {"x": X}, {"perm": [2, 0, 1]}),
    "transpose_negative": ("transpose", {"x": X}, {"perm": [-1, 0, 1]}),
    "expand_dims": ("expand_dims", {"x": X}, {"axes": [0, -1]}),
    "expand_dims_two": ("expand_dims", {"x": X}, {"axes": [1, 2]}),
    "squeeze": ("squeeze", {"x": draw(1, 3, 1)}, {"axes": [0]}),
    "squeeze_all": ("squeeze", {"x": draw(1, 3, 1)}, {}),
    "squeeze_what_is_long": ("squeeze", {"x": draw(1, 3, 1)}, {"axes": [1, 2]}),
    "reverse": ("reverse", {"x": X}, {"axes": [0, -1]}),
    "reverse_all": ("reverse", {"x": X}, {}),
    "reverse_sequence": (
        "reverse_sequence",
        {"x": X, "lengths": ints(3, 1)},
        {"seq_axis": 1, "batch_axis": 0},
    ),
    "reverse_sequence_of_rows": (
        "reverse_sequence",
        {"x": X, "lengths": ints(2, 0, 1, 2)},
        {"seq_axis": 0, "batch_axis": 2},
    ),
    "sliding_windows": ("sliding_windows", {"x": draw(2, 7, 3)}, {"axis": 1, "size": 3}),
    "sliding_windows_last": (
        "sliding_windows",
        {"x": draw(2, 7)},
        {"axis": -1, "size": 2, "stride": 2},
    ),
    "linear": ("linear", {"x": X}, {"weight": draw(5, 4, name="w")}),
    "linear_bias": (
        "linear",
        {"x": draw(2, 4)},
        {"weight": draw(5, 4, name="w"), "bias": draw(5, name="b")},
    ),
    "matmul": ("matmul", {"x": X, "y": draw(2, 4, 5, name="y")}, {}),
    "matmul_turned": (
        "matmul",
        {"x": draw(2, 4, 3), "y": draw(5, 4, name="y")},
        {"transpose_x": True, "transpose_y": True},
    ),
    "matmul_stacks": ("matmul", {"x": draw(2, 1, 3, 4), "y": draw(3, 4, 2, name="y")}, {}),
    "matmul_plain": ("matmul", {"x": draw(3, 4), "y": draw(5, 4, name="y")}, {"transpose_y": True}),
}


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, target: str) -> None:
    op, tensors, attrs = CASES[name]
    check(op, tensors, attrs, target, tolerance=1e-5)


PLAIN: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "concat": ("concat", {"values": (X, draw(2, 1, 4, name="y"))}, {"axis": 1}),
    "concat_scalars": ("concat", {"values": (draw(1), draw(2, name="y"))}, {"axis": -1}),
    "stack": ("stack", {"values": (X, X + 1)}, {"axis": 1}),
    "stack_last": ("stack", {"values": (X, X + 1)}, {"axis": -1}),
    "split": ("split", {"x": X}, {"num_splits": 2, "axis": 2}),
    "split_sizes": ("split", {"x": X}, {"split_sizes": [1, 2], "axis": 1}),
    "split_both": ("split", {"x": X}, {"num_splits": 2, "split_sizes": [1, 3], "axis": -1}),
    "tile": ("tile", {"x": X}, {"reps": ints(1, 2, 3)}),
    "tile_computed": ("tile", {"x": X, "reps": ints(2, 1, 2)}, {}),
    "fill": ("fill", {"shape": ints(2, 3)}, {"value": np.float32(1.5)}),
    "shape": ("shape", {"x": X}, {}),
    "flatten2d": ("flatten2d", {"x": X}, {}),
    "flatten2d_negative": ("flatten2d", {"x": X}, {"axis": -1}),
    "band_part": ("band_part", {"x": draw(4, 5)}, {"lower": 1, "upper": 2}),
    "band_part_upper": ("band_part", {"x": X}, {"lower": 0, "upper": -1}),
    "band_part_lower": ("band_part", {"x": X}, {"lower": -1, "upper": 0}),
    "pad": (
        "pad",
        {"x": X},
        {"pad": ints(1, 0, 0, 2), "mode": "constant", "constant_val": np.float32(0.5)},
    ),
    "pad_reflect": ("pad", {"x": X}, {"pad": ints(2, 1, 3, 0), "mode": "reflect"}),
    "pad_replicate": ("pad", {"x": X}, {"pad": ints(2, 1), "mode": "replicate"}),
    "pad_default": ("pad", {"x": X}, {"pad": ints(1, 1)}),
    "pad_computed": ("pad", {"x": draw(2, 3), "pad": ints(1, 0, 0, 2)}, {}),
    "depth_to_space": ("depth_to_space", {"x": draw(1, 8, 2, 3)}, {"block_size": 2}),
    "space_to_depth": ("space_to_depth", {"x": draw(1, 2, 4, 6)}, {"block_size": 2}),
    "pixel_shuffle": ("pixel_shuffle", {"x": draw(1, 8, 2, 3)}, {"upscale_factor": 2}),
    "einsum": (
        "einsum",
        {"values": (draw(2, 3, 4, 5), draw(2, 5, 4, 6, name="y"))},
        {"equation": "nchw,nwhu->nchu"},
    ),
    "einsum_spread": (
        "einsum",
        {"values": (draw(2, 3, 1, 5), draw(1, 5, 4, 6, name="y"))},
        {"equation": "abcd,adce->abce"},
    ),
    "einsum_of_rank_3": (
        "einsum",
        {"values": (draw(3, 4, 5), draw(5, 4, 6, name="y"))},
        {"equation": "chw,whr->chr"},
    ),
    "identity": ("identity", {"x": X}, {}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_operator_of_one_version(name: str) -> None:
    op, tensors, attrs = PLAIN[name]
    check(op, tensors, attrs, tolerance=1e-5)


def test_concat_interleaved() -> None:
    """Coremltools' values leave the interleaving out."""
    first, second = draw(2, 3), draw(2, 3, name="y")
    wanted = np.stack([first, second], 1).reshape(4, 3)
    tensors = {"values": (first, second)}
    check("concat", tensors, {"axis": 0, "interleave": True}, expected=[wanted])


@pytest.mark.parametrize("op", ["space_to_batch", "batch_to_space"])
def test_batch_and_space(op: str) -> None:
    sides = ints([1, 1], [0, 2])
    if op == "space_to_batch":
        check(op, {"x": draw(2, 3, 4, 4)}, {"block_shape": ints(2, 3), "paddings": sides})
    else:
        check(op, {"x": draw(12, 3, 3, 2)}, {"block_shape": ints(2, 3), "crops": sides})


def test_pixel_unshuffle() -> None:
    attrs = {"downscale_factor": np.uint32(2)}
    check("pixel_unshuffle", {"x": draw(1, 3, 4, 6)}, attrs, "iOS16")


def test_fill_like() -> None:
    check("fill_like", {"ref_tensor": X}, {"value": np.int32(3)}, "iOS16")


def converted(program: Any) -> Any:
    """A program as an ``MLModel``, unchanged by coremltools' passes."""
    ct = tools()
    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.iOS15,
        pass_pipeline=ct.PassPipeline.EMPTY,
        skip_model_load=True,
    )


def outputs_of(model: Any, given: dict[str, np.ndarray]) -> Any:
    """What our importer and interpreter make of a model."""
    found = serde.to_relay(model)
    values = given | {name: weight.array() for name, weight in found.params.items()}
    return run(found.main, [values[each.name_hint] for each in found.main.params], mod=found.mod)


def test_range_to_a_computed_end() -> None:
    """Ends of a range are scalars, which no input of a model is."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import types

    spec = Builder.TensorSpec(shape=(1,), dtype=types.int32)

    @Builder.program(input_specs=[spec], opset_version=ct.target.iOS15)
    def program(end: Any) -> Any:
        last = Builder.squeeze(x=end, axes=[0])
        return Builder.range_1d(start=1, end=last, step=3, name="result")

    found = outputs_of(converted(program), {"end": ints(8)})
    np.testing.assert_array_equal(found, np.arange(1, 8, 3, dtype=np.int32))


def test_a_list_of_fixed_length() -> None:
    ct = tools()
    from coremltools.converters.mil import Builder

    @Builder.program(
        input_specs=[Builder.TensorSpec(shape=(2,)), Builder.TensorSpec(shape=(2, 2))],
        opset_version=ct.target.iOS15,
    )
    def program(row: Any, rows: Any) -> Any:
        made = Builder.make_list(init_length=4, dynamic_length=False, elem_shape=(2,))
        made = Builder.list_write(ls=made, index=1, value=row)
        made = Builder.list_scatter(ls=made, indices=[3, 0], value=rows)
        count = Builder.cast(x=Builder.list_length(ls=made), dtype="fp32")
        read = Builder.list_read(ls=made, index=3)
        whole = Builder.list_gather(ls=made, indices=[0, 1, 2, 3])
        return Builder.add(x=read, y=count), whole

    model = converted(program)
    row, rows = draw(2), draw(2, 2)
    results = outputs_of(model, {"row": row, "rows": rows})
    np.testing.assert_array_equal(results[0], rows[0] + 4)
    np.testing.assert_array_equal(results[1], [rows[1], row, [0, 0], rows[0]])
