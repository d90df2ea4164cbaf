"""Compressed weights from Core ML to Core ML: they stay as they are, or the report tells.

coremltools compresses the weights, and unpacks them again of what was written: its own values are
what ours are compared with.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_compression import Compression, in_turn, palette, pruned, quantized
from support.coreml_layers import evaluate
from support.coreml_models import tools
from support.coreml_written import model as relay_model
from support.mil_executor import execute

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.coreml.exporter import from_relay
from serde.coreml.model import operations
from serde.coreml.options import CoremlExportOptions
from serde.coreml.reader import load

pytestmark = pytest.mark.wide

WAYS: dict[str, Compression] = {
    "int8": quantized(mode="linear_symmetric"),
    "uint8": quantized(mode="linear", dtype="uint8"),
    "tensor": quantized(granularity="per_tensor"),
    "block4": quantized(dtype="int4", granularity="per_block", block_size=4),
    "block8": quantized(mode="linear", granularity="per_block", block_size=4),
    "palette1": palette(1),
    "palette2": palette(2),
    "palette3": palette(3),
    "palette4": palette(4),
    "palette6": palette(6),
    "palette8": palette(8),
    "groups": palette(4, granularity="per_grouped_channel", group_size=4),
    "sparse": pruned(target_sparsity=0.6),
    "sparse palette": in_turn(pruned(target_sparsity=0.6), palette(4)),
    "sparse int8": in_turn(pruned(target_sparsity=0.6), quantized(mode="linear_symmetric")),
    "quantised palette": in_turn(palette(4), quantized(granularity="per_tensor")),
}
NEWER = (
    "block4",
    "block8",
    "groups",
    "palette3",
    "quantised palette",
    "sparse int8",
    "sparse palette",
)
"""What only programs for iOS18 can say."""


def net(target: str) -> Any:
    """A convolution and a dense layer as an ``MLModel``."""
    ct = tools()
    from coremltools.converters.mil import Builder

    draws = np.random.default_rng(3)
    kernel, weight = (
        draws.standard_normal(shape).astype(np.float32) / 4
        for shape in ((16, 8, 3, 3), (12, 16 * 36))
    )
    version = getattr(ct.target, target)

    @Builder.program(input_specs=[Builder.TensorSpec(shape=(1, 8, 6, 6))], opset_version=version)
    def program(x: Any) -> Any:
        y = Builder.relu(x=Builder.conv(x=x, weight=kernel, pad_type="same", name="conv"))
        return Builder.linear(x=Builder.reshape(x=y, shape=[1, -1]), weight=weight, name="out")

    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=version,
        skip_model_load=True,
    )


def source(way: str, target: str, path: Path) -> Path:
    ct = tools()
    model = WAYS[way](ct, net(target))
    model.save(str(path))
    return path


def compressions(path: Path) -> Counter[str]:
    kinds = (op.type for op in operations(load(path).spec))
    return Counter(kind for kind in kinds if kind.startswith("constexpr_"))


def size_of(path: Path) -> int:
    return (path / "Data/com.apple.CoreML/weights/weight.bin").stat().st_size


def unpacked(path: Path) -> list[np.ndarray]:
    """The weights of layers as coremltools itself unpacks them."""
    ct = tools()
    model = ct.models.MLModel(str(path), skip_model_load=True)
    plain = ct.optimize.coreml.decompress_weights(model)
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    spec = plain.get_spec()
    program = load_program(spec, spec.specificationVersion, plain.weights_dir)
    block = program.functions["main"]
    return [op.weight.val for kind in ("conv", "linear") for op in block.find_ops(op_type=kind)]


CASES = [(way, "iOS18") for way in WAYS] + [(way, "iOS16") for way in WAYS if way not in NEWER]


@pytest.mark.parametrize(("way", "target"), CASES)
def test_compressed_weights_stay(way: str, target: str, tmp_path: Path) -> None:
    given, written = source(way, target, tmp_path / "a.mlpackage"), tmp_path / "b.mlpackage"
    report = serde.convert(
        given, written, minimum_deployment_target=target, compute_precision="float32", check=True
    )
    assert not [note for note in report.notes if "becomes plain" in note]
    assert compressions(given)
    assert compressions(written) == compressions(given)
    assert size_of(written) <= size_of(given) + 64 * 4
    for ours, theirs in zip(unpacked(written), unpacked(given), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("target", ["iOS16", "iOS17"])
@pytest.mark.parametrize("way", NEWER)
def test_what_only_newer_targets_hold_is_plain(way: str, target: str, tmp_path: Path) -> None:
    """All of a weight is unpacked, the report tells, and coremltools takes the program."""
    given, written = source(way, "iOS18", tmp_path / "a.mlpackage"), tmp_path / "b.mlpackage"
    report = serde.convert(
        given, written, minimum_deployment_target=target, compute_precision="float32", check=True
    )
    assert len([note for note in report.notes if "becomes plain float32 of" in note]) == 2
    assert not compressions(written)
    weights = unpacked(given)
    assert sum(each.size for each in weights) * 4 <= size_of(written)
    for ours, theirs in zip(unpacked(written), weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("way", ["int8", "block4", "palette4", "sparse int8"])
def test_compressed_weights_stay_in_float16(way: str, tmp_path: Path) -> None:
    given, written = source(way, "iOS18", tmp_path / "a.mlpackage"), tmp_path / "b.mlpackage"
    report = serde.convert(given, written, minimum_deployment_target="iOS18", check=True)
    assert not [note for note in report.notes if "becomes plain" in note]
    assert compressions(written) == compressions(given)
    for ours, theirs in zip(unpacked(written), unpacked(given), strict=True):
        assert ours.dtype == np.float16
        np.testing.assert_allclose(ours, theirs, rtol=2**-9, atol=2**-12)


@pytest.mark.parametrize("way", ["int8", "block4", "palette4", "sparse", "sparse palette"])
def test_what_is_lost_is_told(way: str, tmp_path: Path) -> None:
    given, written = source(way, "iOS18", tmp_path / "a.mlpackage"), tmp_path / "b.mlpackage"
    report = serde.convert(given, written, compute_precision="float32")
    told = [note for note in report.notes if "becomes plain float32 of" in note]
    assert len(told) == 2
    assert any("becomes plain float32 of 4608 bytes; minimum_deployment" in each for each in told)
    assert not compressions(written)
    weights = unpacked(given)
    x = np.random.default_rng(4).standard_normal((1, 8, 6, 6)).astype(np.float32)
    (found,) = evaluate(serde.to_relay(written), {"x": x})
    (wanted,) = evaluate(serde.to_relay(given), {"x": x})
    assert sum(each.size for each in weights) * 4 <= size_of(written)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_compressed_weights_are_read(way: str, tmp_path: Path) -> None:
    """Judged by NumPy's product of what coremltools unpacks."""
    given = source(way, "iOS18", tmp_path / "a.mlpackage")
    kernel, weight = unpacked(given)
    x = np.random.default_rng(4).standard_normal((1, 8, 6, 6)).astype(np.float32)
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide[0], (3, 3), axis=(1, 2))
    y = np.maximum(np.einsum("chwij,ocij->ohw", windows, kernel), 0)
    (found,) = evaluate(serde.to_relay(given), {"x": x})
    np.testing.assert_allclose(found[0], weight @ y.reshape(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("way", ["int8", "palette4", "sparse"])
def test_weights_of_recurrent_layers_become_plain(way: str, tmp_path: Path) -> None:
    """MIL wants them constant, and their gates stand in another order in between."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.frontend.milproto.load import load as load_program

    draws = np.random.default_rng(3)
    w, r = (draws.standard_normal((24, n)).astype(np.float32) / 3 for n in (5, 6))

    @Builder.program(
        input_specs=[Builder.TensorSpec(shape=(7, 2, 5)), Builder.TensorSpec(shape=(2, 6))],
        opset_version=ct.target.iOS18,
    )
    def program(x: Any, h: Any) -> Any:
        found = Builder.lstm(
            x=x, initial_h=h, initial_c=h, weight_ih=w, weight_hh=r, output_sequence=True
        )
        return Builder.identity(x=found[0], name="out")

    model = ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.iOS18,
        skip_model_load=True,
    )
    given, written = tmp_path / "a.mlpackage", tmp_path / "b.mlpackage"
    WAYS[way](ct, model).save(str(given))
    report = serde.convert(
        given, written, minimum_deployment_target="iOS18", compute_precision="float32", check=True
    )
    assert compressions(given).total() == 2
    assert not compressions(written)
    assert len([note for note in report.notes if "becomes plain" in note]) == 2
    spec = load(written).spec
    weights = str(written / "Data/com.apple.CoreML/weights")
    block = load_program(spec, spec.specificationVersion, weights).functions["main"]
    (layer,) = block.find_ops(op_type="lstm")
    assert layer.weight_ih.val is not None
    assert layer.weight_hh.val is not None


def looping(target: str) -> Any:
    """A layer within a loop, and within the branches of a condition."""
    ct = tools()
    from coremltools.converters.mil import Builder

    draws = np.random.default_rng(3)
    inner, yes, no = (draws.standard_normal((32, 32)).astype(np.float32) / 6 for _ in range(3))

    @Builder.program(
        input_specs=[Builder.TensorSpec(shape=(2, 32))], opset_version=getattr(ct.target, target)
    )
    def program(x: Any) -> Any:
        def turn(i: Any, y: Any) -> Any:
            return Builder.add(x=i, y=1), Builder.tanh(x=Builder.linear(x=y, weight=inner))

        _, y = Builder.while_loop(
            _cond=lambda i, y: Builder.less(x=i, y=3), _body=turn, loop_vars=(0, x)
        )
        return Builder.cond(
            pred=Builder.greater(x=Builder.reduce_sum(x=x, axes=[0, 1]), y=0.0),
            _true_fn=lambda: Builder.linear(x=y, weight=yes),
            _false_fn=lambda: Builder.linear(x=y, weight=no),
            name="out",
        )

    return ct.convert(
        program,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=getattr(ct.target, target),
        skip_model_load=True,
    )


@pytest.mark.parametrize("precision", ["float16", "float32"])
@pytest.mark.parametrize("way", ["int8", "block4", "palette4", "sparse"])
def test_weights_inside_loops_and_branches_stay(way: str, precision: str, tmp_path: Path) -> None:
    given, written = tmp_path / "a.mlpackage", tmp_path / "b.mlpackage"
    WAYS[way](tools(), looping("iOS18")).save(str(given))
    options = {"compute_precision": precision, "overwrite": True}
    serde.convert(given, written, minimum_deployment_target="iOS18", **options)
    assert compressions(written) == compressions(given)
    assert compressions(given).total() == 3
    x = {"x": np.random.default_rng(4).standard_normal((2, 32)).astype(np.float32)}
    (wanted,) = execute(given, x)
    (found,) = execute(written, x)
    np.testing.assert_allclose(found, wanted, atol=4e-3 if precision == "float16" else 1e-6)
    report = serde.convert(given, written, **options)
    assert len([note for note in report.notes if "becomes plain" in note]) == 3
    (found,) = execute(written, x)
    np.testing.assert_allclose(found, wanted, atol=4e-3 if precision == "float16" else 1e-6)


@pytest.mark.parametrize("target", ["iOS15", "iOS16", "iOS18"])
@pytest.mark.parametrize(("scale", "stays"), [(1e-3, True), (1e-6, False), (3e-9, False)])
def test_scales_that_float16_does_not_hold(scale: float, stays: bool, target: str) -> None:
    """The weight is float16 then, which has its numbers, and the report tells."""
    draws = np.random.default_rng(5)
    codes = draws.integers(-127, 128, (16, 32)).astype(np.int8)
    scales = np.full(16, scale, np.float32)
    x = relay.var("x", shape=(2, 32))
    q, s = relay.var("q", shape=(16, 32), dtype="int8"), relay.var("s", shape=(16,))
    body = relay.nn.dense(x, relay.serde.dequantize_linear(q, s, None, axis=0))
    report = Report()
    options = CoremlExportOptions(minimum_deployment_target=target)
    native = from_relay(relay_model(body, x, q, s, q=codes, s=scales), options, report)
    kinds = {op.type for op in operations(native.spec) if op.type.startswith("constexpr_")}
    assert bool(kinds) == (stays and target != "iOS15")
    assert any("float16 does not hold its scales" in each for each in report.notes) == (
        not stays and target != "iOS15"
    )
    given = draws.standard_normal((2, 32)).astype(np.float32) * np.float32(1e-3 / scale)
    given = np.clip(given, -6e4, 6e4).astype(np.float16).astype(np.float32)
    weights = (codes * scales[:, None]).astype(np.float16).astype(np.float64)
    (found,) = execute(native, {"x": given})
    wanted = given @ weights.T
    np.testing.assert_allclose(found, wanted, atol=np.abs(wanted).max() * 2e-3)
