"""Small MXNet graphs that other converters get wrong, against MXNet."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibrate import calibrate
from support.oracle import PlainMxnet, run_mxnet
from support.runtime import newest_runtime_opset, run_onnx
from support.tiers import first_of
from support.toy_graphs import TOYS, Toy

import serde
from serde.compat import import_mxnet

SEED = 11

AT_EVERY_OPSET = {
    "arcface_head",
    "bn_last_axis",
    "checkpoint_rank_4",
    "clip",
    "dense_no_flatten_rank_3",
    "group_norm",
    "internal_outputs",
    "l2_channel",
    "layer_norm",
    "pad_reflect",
    "pool_avg_include_full_past_2d",
    "pool_lp2_full_past_2d",
    "pool_max_full_past_2d",
    "prelu_rank_4",
    "resize_size_up_pixels",
    "slice_channel_squeeze",
    "slice_none",
    "softmax_activation_instance",
    "upsample_nearest_concat",
}

AT_ANY_SIZE = [
    case
    for case in TOYS
    if case.name.startswith(("adaptive", "crop_centre", "crop_like", "resize", "upsample_nearest"))
    or case.name in ("deconv_target", "deconv_odd_target")
]
"""Graphs that leave heights and widths of images open."""

POOLS = [case for case in TOYS if case.name.startswith("pool_")]


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def save(mx: Any, prefix: Path, symbol: Any, args: Any, aux: Any) -> tuple[Path, Path]:
    """The two files that MXNet makes of a checkpoint."""
    paths = Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params")
    symbol.save(str(paths[0]))
    tagged = {f"arg:{name}": value for name, value in args.items()}
    mx.nd.save(str(paths[1]), tagged | {f"aux:{name}": value for name, value in aux.items()})
    return paths


def output_names(symbol: Any) -> list[str]:
    """MXNet's names; a name that an input or a weight has already, or a repeated one, differs."""
    taken, names = {*symbol.list_inputs()}, []
    for name in symbol.list_outputs():
        name = f"{name}_output" if name in taken else name
        number = 0
        unique = name
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        names.append(unique)
    return names


def assert_close(
    names: list[str], found: list[np.ndarray], expected: list[np.ndarray], tolerance: float
) -> None:
    """Every output has MXNet's shape and dtype, and differs by little of its deviation."""
    assert len(found) == len(expected)
    for name, ours, theirs in zip(names, found, expected, strict=True):
        assert ours.shape == theirs.shape, name
        assert ours.dtype == theirs.dtype, name
        spread = float(theirs.std())
        assert np.isfinite(theirs).all(), name
        assert spread > 1e-3, f"{name} is the same everywhere"
        error = float(np.abs(ours - theirs).max()) / spread
        assert error <= tolerance, f"{name}: {error:.2e} deviations"


def opened(name: str, shape: tuple[int, ...], source: str) -> tuple[int | str, ...]:
    """A shape with symbols for the lengths that the source leaves open."""
    if source == "any batch":
        return ("N", *shape[1:])
    if source == "any size":
        return ("N", shape[1], f"{name}_height", f"{name}_width")
    return shape


def convert_and_compare(
    mx: Any, oracle: PlainMxnet, case: Toy, source: str, opset: int, directory: Path
) -> None:
    symbol = case.build(mx.sym, mx.sym.var("data"))
    symbol, args, aux = calibrate(symbol, dict(case.shapes), seed=SEED)
    inputs = case.inputs(SEED)
    prefix, target = directory / "net", directory / "net.onnx"
    paths = save(mx, prefix, symbol, args, aux)
    options = {
        "input_shapes": {name: opened(name, shape, source) for name, shape in case.shapes.items()},
        "input_dtypes": dict(case.dtypes),
        "opset": opset,
    }
    if source == "files":
        serde.export_model(paths[0], paths[1], path=target, **options)
    else:
        proto = serde.export_model(symbol, (args, aux), format="onnx", **options)
        target.write_bytes(proto.SerializeToString())

    names, found = run_onnx(target, inputs)
    assert names == output_names(symbol)
    assert_close(names, found, oracle.run(prefix, inputs, directory), case.tolerance)
    if case.mkldnn:
        assert_close(names, found, run_mxnet(symbol, args | aux, inputs), case.tolerance)


@pytest.mark.thin(3)
@pytest.mark.parametrize("source", first_of(["files", "live", "any batch"], ["any batch"]))
@pytest.mark.parametrize("case", TOYS, ids=lambda case: case.name)
def test_toy_graph(
    mx: Any, plain_mxnet: PlainMxnet, case: Toy, source: str, tmp_path: Path
) -> None:
    convert_and_compare(mx, plain_mxnet, case, source, 17, tmp_path)


@pytest.mark.parametrize("opset", [11, 13, newest_runtime_opset()])
@pytest.mark.parametrize(
    "case", [c for c in TOYS if c.name in AT_EVERY_OPSET], ids=lambda case: case.name
)
def test_toy_graph_at_opset(
    mx: Any, plain_mxnet: PlainMxnet, case: Toy, opset: int, tmp_path: Path
) -> None:
    convert_and_compare(mx, plain_mxnet, case, "files", opset, tmp_path)


def test_case_names_are_distinct() -> None:
    names = [case.name for case in TOYS]
    assert len(set(names)) == len(names)
    assert set(names) >= AT_EVERY_OPSET


def test_labels_are_no_inputs(mx: Any, tmp_path: Path) -> None:
    import onnx

    symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4))
    symbol, args, aux = calibrate(symbol, {"data": (2, 8)}, seed=SEED)
    model = serde.export_model(symbol, (args, aux), format="onnx", input_shapes={"data": (2, 8)})
    assert [each.name for each in model.graph.input] == ["data"]
    assert {each.name for each in model.graph.initializer} == set(args)
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("opset", first_of([11, 17, newest_runtime_opset()], [17]))
@pytest.mark.parametrize("case", first_of(POOLS, POOLS[::4]), ids=lambda case: case.name)
def test_pooling_of_any_size(mx: Any, case: Toy, opset: int, tmp_path: Path) -> None:
    symbol = case.build(mx.sym, mx.sym.var("data"))
    shapes = {
        name: ("N", shape[1], *"HWD"[: len(shape) - 2]) for name, shape in case.shapes.items()
    }
    proto = serde.export_model(symbol, {}, format="onnx", input_shapes=shapes, opset=opset)
    inputs = case.inputs(SEED)
    names, found = run_onnx(proto.SerializeToString(), inputs)
    assert_close(names, found, run_mxnet(symbol, {}, inputs), case.tolerance)


@pytest.mark.wide
@pytest.mark.parametrize("opset", first_of([11, 17], [17]))
@pytest.mark.parametrize("case", AT_ANY_SIZE, ids=lambda case: case.name)
def test_toy_graph_at_any_size(
    mx: Any, plain_mxnet: PlainMxnet, case: Toy, opset: int, tmp_path: Path
) -> None:
    convert_and_compare(mx, plain_mxnet, case, "any size", opset, tmp_path)
