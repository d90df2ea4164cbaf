"""Layers whose weights are weights: MIL wants constants of many of them, and has more then.

The samples of the other test give every operand as an input.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_networks import check_network, layer_kinds, network
from support.coreml_written import with_weights
from support.gaps import case, unknown_gaps
from support.mil_apple import Proof
from support.mil_executor import execute
from support.mil_values import check_types
from support.samples import build

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.coreml.exporter import from_relay
from serde.coreml.model import CoremlModel, operations
from serde.coreml.options import CoremlExportOptions
from serde.coreml.writer import save
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import Sample, all_ops
from serde.relay.run.interpreter import run

LAYERS = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d", "nn.conv3d"), "conv"),
    **dict.fromkeys(
        ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"), "conv_transpose"
    ),
    "nn.batch_norm": "batch_norm",
    "nn.instance_norm": "instance_norm",
    "nn.layer_norm": "layer_norm",
    "serde.gru": "gru",
    "serde.layer_norm": "layer_norm",
    "serde.lstm": "lstm",
    "serde.rnn": "rnn",
}
"""Operators of Relay, and what MIL has of them where their weights are constant."""

OTHERWISE = {
    "nn.batch_norm-1": "channels on the last axis",
    "nn.batch_norm-2": "a tensor of two axes",
    "nn.instance_norm-1": "channels on the last axis",
    "serde.gru-1": "lengths of sequences",
    "serde.gru-2": "a function that MIL has not, and a bound of gates",
    "serde.lstm-1": "lengths of sequences",
    "serde.lstm-2": "a function that MIL has not, and a bound of gates",
    "serde.lstm-3": "a projection, and bounds that differ",
    "serde.rnn-1": "lengths of sequences",
}
"""Samples that MIL's operator cannot say, which are spelled out."""

TARGETS = ("iOS15", "iOS18")
HALF = {"float16": 2e-2, "float32": 2e-3}


def layers() -> list[Any]:
    return [
        case("coreml-weights", f"{name}-{index}-{target}", name, index, target)
        for name in LAYERS
        for index, _ in enumerate(all_ops()[name].samples)
        for target in TARGETS
    ]


def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-weights", {each.id for each in layers()}) == []


def written(model: RelayModel, target: str, precision: str = "float32") -> CoremlModel:
    allow = frozenset({"int64-as-int32", "float64-as-float32"})
    options = CoremlExportOptions(
        minimum_deployment_target=target, compute_precision=precision, allow=allow
    )
    return from_relay(model, options, Report())


def kinds(model: CoremlModel) -> set[str]:
    return {op.type for op in operations(model.spec)}


@pytest.mark.thin(3)
@pytest.mark.parametrize(("name", "index", "target"), layers())
def test_layer(
    name: str, index: int, target: str, record_property: Callable[[str, object], None]
) -> None:
    given: Sample = all_ops()[name].samples[index]
    built = build(all_ops()[name], given)
    source, inputs = with_weights(built)
    model = written(source, target)
    check_types(model)
    record_property("mil_exported", sorted(kinds(model) - {"const"}))
    whole = LAYERS[name] in kinds(model)
    assert whole == (f"{name}-{index}" not in OTHERWISE)
    ends = {"float64": "float32", "int8": "int32", "int64": "int32"}
    if target == "iOS15":
        ends["float16"] = "float32"

    def held(array: np.ndarray) -> np.ndarray:
        return array.astype(ends.get(array.dtype.name, array.dtype.name))

    found = execute(model, {key: held(value) for key, value in inputs.items()})
    for expected, actual in zip(built.run(), found, strict=True):
        wanted = held(expected)
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        tolerance = 4e-3 if expected.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


NETWORKS = {
    **dict.fromkeys(("nn.conv1d", "nn.conv2d"), "convolution"),
    **dict.fromkeys(("nn.conv1d_transpose", "nn.conv2d_transpose"), "convolution"),
    **dict.fromkeys(("nn.conv3d", "nn.conv3d_transpose"), "convolution3d"),
    **dict.fromkeys(("nn.batch_norm", "nn.instance_norm"), "batchnorm"),
    **dict.fromkeys(("nn.layer_norm", "serde.layer_norm"), "layerNormalization"),
    "serde.gru": "gru",
    "serde.lstm": "LSTM",
    "serde.rnn": "simpleRecurrent",
}
"""Operators of Relay, and their layers; of the memory the end of two names."""

APART = {"nn.layer_norm-1": "channels that are not last"}
"""Samples that are spelled out in layers, besides those that are in MIL."""


@pytest.mark.thin(3)
@pytest.mark.parametrize("target", ["iOS13", "iOS14"])
@pytest.mark.parametrize(
    ("name", "index"),
    [(name, index) for name in NETWORKS for index, _ in enumerate(all_ops()[name].samples)],
)
def test_layer_of_a_network(name: str, index: int, target: str) -> None:
    built = build(all_ops()[name], all_ops()[name].samples[index])
    source, inputs = with_weights(built)
    if target == "iOS13" and NETWORKS[name] == "convolution3d":
        with pytest.raises(UnsupportedModelError, match="use minimum_deployment_target=iOS14"):
            network(source, target)
        return
    model = network(source, target)
    kinds = layer_kinds(model)
    whole = any(kind.endswith(NETWORKS[name]) for kind in kinds)
    assert whole == (f"{name}-{index}" not in OTHERWISE | APART)
    expected = built.run()
    tolerance = 4e-3 if expected[0].dtype == np.float16 else 2e-5
    check_network(model, inputs, expected, tolerance=tolerance)


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("name", ["serde.lstm", "serde.gru", "serde.rnn", "nn.batch_norm"])
def test_layer_in_float16(name: str, target: str) -> None:
    """Before iOS17 recurrent layers compute in float32 in between."""
    built = build(all_ops()[name], all_ops()[name].samples[0])
    source, inputs = with_weights(built)
    model = written(source, target, "float16")
    check_types(model)
    assert LAYERS[name] in kinds(model)
    for expected, actual in zip(built.run(), execute(model, inputs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-2, atol=5e-3)


def test_layer_of_an_open_batch() -> None:
    """States that are not given are zeros, as many as there are sequences."""
    built = build(
        all_ops()["serde.lstm"],
        all_ops()["serde.lstm"].samples[0],
        lambda number, axis, length: symbol("batch") if (number, axis) == (0, 1) else length,
    )
    source, inputs = with_weights(built)
    model = written(source, "iOS15")
    check_types(model)
    assert "lstm" in kinds(model)
    for ours, theirs in zip(execute(model, inputs), built.run(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


QUANTIZED = ["whole", "whole_shifted", "each", "each_shifted", "last"]


@pytest.mark.parametrize("target", ["iOS15", "iOS16", "iOS17", "iOS18"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", QUANTIZED)
def test_quantised_weight(
    name: str,
    dtype: str,
    target: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """It stays quantised from iOS16 on, and is the weight of a convolution all the same."""
    rng = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    axis = -1 if name == "last" else 0
    count = 5 if name == "last" else 6
    shape = () if name.startswith("whole") else (count,)
    weight = rng.integers(limits.min, limits.max, (6, 3, 4, 5), endpoint=True).astype(dtype)
    scale = rng.uniform(0.01, 0.02, shape).astype(np.float32)
    zero = rng.integers(1, 9, shape).astype(dtype)
    x = relay.var("x", shape=(1, 3, 8, 9))
    w = relay.var("w", shape=weight.shape, dtype=dtype)
    shifted = None if name in ("whole", "each") else relay.const(zero)
    real = relay.serde.dequantize_linear(w, relay.const(scale), shifted, axis=axis)
    main = infer_function(relay.Function([x, w], relay.nn.conv2d(x, real, kernel_size=(4, 5))))
    source = RelayModel(
        IRModule({"main": main}), {"w": ArrayWeight(weight)}, ModelMeta(("x",), ("y",))
    )
    model = written(source, target)
    check_types(model)
    kept = {"iOS15": "", "iOS18": "constexpr_blockwise_shift_scale"}
    wanted = kept.get(target, "constexpr_affine_dequantize")
    made = {kind for kind in kinds(model) if kind.startswith("constexpr")}
    assert made == ({wanted} if wanted else set())
    found = serde.to_relay(save(model, tmp_path / "model.mlpackage"))
    data = rng.uniform(-1, 1, (1, 3, 8, 9)).astype(np.float32)
    values = {"x": data} | {key: each.array() for key, each in found.params.items()}
    actual = run(found.main, [values[p.name_hint] for p in found.main.params], mod=found.mod)
    spread = [1] * 4
    if shape:
        spread[axis] = -1
    lower = 0 if shifted is None else zero.astype(np.float32).reshape(spread if shape else ())
    floats = (weight.astype(np.float32) - lower) * scale.reshape(spread if shape else ())
    windows = np.lib.stride_tricks.sliding_window_view(data, (4, 5), (2, 3))
    expected = np.moveaxis(np.tensordot(windows, floats, ([1, 4, 5], [1, 2, 3])), -1, 1)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)
    proof = Proof()
    (computed,) = execute(model, {"x": data}, proof)
    record_property("mil_exported", sorted(kinds(model) - {"const"}))
    record_property("mil_judged", sorted(proof.agreed))
    assert proof.differing == []
    np.testing.assert_allclose(computed, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("block", [2, 4])
def test_weight_of_four_bits_in_blocks(block: int, tmp_path: Path) -> None:
    from ml_dtypes import int4

    rng = np.random.default_rng(5)
    weight = rng.integers(-8, 7, (6, 8), endpoint=True).astype(int4)
    scale = rng.uniform(0.1, 0.2, (6, 8 // block)).astype(np.float32)
    x = relay.var("x", shape=(3, 8))
    w = relay.var("w", shape=(6, 8), dtype="int4")
    real = relay.serde.dequantize_linear(w, relay.const(scale), None, axis=1, block_size=block)
    main = infer_function(relay.Function([x, w], relay.nn.dense(x, real)))
    source = RelayModel(
        IRModule({"main": main}), {"w": ArrayWeight(weight)}, ModelMeta(("x",), ("y",))
    )
    model = written(source, "iOS18")
    check_types(model)
    assert "constexpr_blockwise_shift_scale" in kinds(model)
    found = serde.to_relay(save(model, tmp_path / "model.mlpackage"))
    data = rng.uniform(-1, 1, (3, 8)).astype(np.float32)
    values = {"x": data} | {key: each.array() for key, each in found.params.items()}
    actual = run(found.main, [values[p.name_hint] for p in found.main.params], mod=found.mod)
    floats = weight.astype(np.float32) * scale.repeat(block, 1)
    np.testing.assert_allclose(actual, data @ floats.T, rtol=1e-5, atol=1e-5)
