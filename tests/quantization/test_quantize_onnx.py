"""ONNX models quantised by ONNX Runtime's tool, judged by ONNX Runtime itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.runtime import optimized_operators, run_onnx

import serde
from serde.command.cli import main
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError, OptionError

pytest.importorskip("onnxruntime.quantization")

CLASSES = 10


def save_net(path: Path, opset: int = 17) -> Path:
    """A convolution, a residual, a pooling and a head; its classes depend on the image."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.normal(0, 0.4, (8, 3, 3, 3)),
        "b0": rng.normal(0, 0.1, 8),
        "w1": rng.normal(0, 0.2, (8, 8, 3, 3)) * rng.uniform(0.05, 3, (8, 1, 1, 1)),
        "b1": rng.normal(0, 0.1, 8),
        "w2": rng.normal(0, 1, (8, CLASSES)),
        "b2": rng.normal(0, 1, CLASSES),
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["data", "w0", "b0"], ["c0"], "conv0", pads=[1, 1, 1, 1]),
        node("Relu", ["c0"], ["r0"], "relu0"),
        node("Conv", ["r0", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        node("Add", ["c1", "r0"], ["s"], "sum"),
        node("Relu", ["s"], ["r1"], "relu1"),
        node("GlobalAveragePool", ["r1"], ["p"], "pool"),
        node("Flatten", ["p"], ["f"], "flat"),
        node("Gemm", ["f", "w2", "b2"], ["scores"], "head"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, 12, 12])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(each.astype("f4"), name) for name, each in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_net(tmp_path_factory.mktemp("source") / "net.onnx")


def draw_samples(count: int = 6, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 2, count)
    return [rng.normal(0, s, (4, 3, 12, 12)).astype(np.float32) for s in spread]


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibration")
    for number, sample in enumerate(draw_samples()):
        np.save(folder / f"{number}.npy", sample)
    return folder


@pytest.fixture(scope="module")
def quantized(
    net: Path, calibration: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, serde.Report]:
    """The net with everything left as it is by default."""
    target = tmp_path_factory.mktemp("target") / "int8.onnx"
    return target, serde.convert(net, target, int8=True, calibration=calibration)


def convert(net: Path, target: Path, **options: Any) -> serde.Report:
    return serde.convert(net, target, **options)


def initializers(path: Path) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.wide
def test_all_layers_run_in_integers(quantized: tuple[Path, serde.Report]) -> None:
    """What ONNX Runtime makes of the file when it optimises it tells."""
    found = optimized_operators(quantized[0])
    assert found["QLinearConv"] == 2
    assert found["QLinearAdd"] == found["QGemm"] == found["QLinearGlobalAveragePool"] == 1
    assert not {"Conv", "Gemm", "Add"} & set(found)


@pytest.mark.wide
def test_each_channel_has_its_scale(
    net: Path, calibration: Path, quantized: tuple[Path, serde.Report], tmp_path: Path
) -> None:
    """Channels of the second convolution differ in size by a factor of 60."""
    (target, fine), coarse = quantized, tmp_path / "coarse.onnx"
    whole = convert(net, coarse, int8=True, calibration=calibration, per_channel=False)
    source = initializers(net)["w1"]
    expected = np.abs(source).max(axis=(1, 2, 3)) / 127
    np.testing.assert_allclose(initializers(target)["w1_scale"], expected, rtol=1e-6)
    assert initializers(coarse)["w1_scale"].shape == ()
    assert fine.accuracy[0].after.snr > whole.accuracy[0].after.snr


def test_figures_are_those_of_onnx_runtime(
    net: Path, calibration: Path, quantized: tuple[Path, serde.Report]
) -> None:
    """Cosine, ratio, error and classes, computed here from what ONNX Runtime gives."""
    target, report = quantized
    runs = [[run_onnx(p, {"data": x})[1][0] for x in draw_samples()] for p in (net, target)]
    wanted, found = (np.concatenate(each).astype(np.float64) for each in runs)
    (row,) = report.accuracy
    after = row.after
    noise = found - wanted
    x, y = wanted.ravel(), found.ravel()
    assert after.cosine == pytest.approx(x @ y / np.sqrt((x @ x) * (y @ y)), abs=1e-9)
    assert after.snr == pytest.approx(10 * np.log10((x @ x) / (noise**2).sum()), abs=1e-3)
    assert after.error == pytest.approx(np.sqrt((noise**2).mean()) / wanted.std(), rel=1e-4)
    assert after.agreement == (wanted.argmax(1) == found.argmax(1)).mean()
    cosines = [
        float(np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(*runs, strict=True)
    ]
    assert after.worst_cosine == pytest.approx(min(cosines), abs=1e-5)
    assert row.before.cosine == pytest.approx(1, abs=1e-6)
    assert row.before.agreement == 1
    assert 0.99 < after.cosine < 1
    assert report.facts["accuracy_data"] == f"6 samples of the calibration data ({calibration})"


@pytest.mark.wide
def test_other_data_tell_the_accuracy(net: Path, calibration: Path, tmp_path: Path) -> None:
    """Data of the check also check the floats, as without quantisation."""
    other = draw_samples(2, seed=9)
    report = convert(
        net, tmp_path / "int8.onnx", int8=True, calibration=calibration, check_data=other
    )
    assert report.facts["accuracy_data"] == "2 samples of the check data (arrays)"
    assert report.passed
    assert report.verdicts[0].cosine > report.accuracy[0].after.cosine


@pytest.mark.wide
@pytest.mark.parametrize("method", ["minmax", "entropy", "percentile"])
def test_every_sample_counts(net: Path, tmp_path: Path, method: str) -> None:
    """The last sample is ten times as large; a range without it would be that of the others."""
    small = [x / 10 for x in draw_samples()]
    scales = []
    for number, samples in enumerate([small, [*small, *draw_samples()[:1]]]):
        target = tmp_path / f"{number}.onnx"
        convert(net, target, int8=True, calibration=samples, calibration_method=method)
        scales.append(float(initializers(target)["data_scale"]))
    assert scales[1] > 2 * scales[0]


def test_range_of_least_and_greatest(quantized: tuple[Path, serde.Report]) -> None:
    values = np.concatenate(draw_samples())
    found = initializers(quantized[0])
    wanted = (values.max() - values.min()) / 255
    np.testing.assert_allclose(found["data_scale"], wanted, rtol=1e-5)
    assert found["data_zero_point"] == np.rint(-values.min() / wanted)


@pytest.mark.wide
def test_symmetric_activations(net: Path, calibration: Path, tmp_path: Path) -> None:
    """As TensorRT takes them: int8, zero points of zero, biases left in floats."""
    target = tmp_path / "int8.onnx"
    convert(net, target, int8=True, calibration=calibration, symmetric=True)
    values = initializers(target)
    points = [value for name, value in values.items() if name.endswith("zero_point")]
    assert points
    assert all(value.dtype == np.int8 and not value.any() for value in points)
    assert {values[name].dtype for name in ("b0", "b1", "b2")} == {np.dtype(np.float32)}


def test_dynamic_ranges_need_no_data(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "int8.onnx"
    report = convert(net, target, int8="dynamic", check=2)
    assert operators(target)["ConvInteger"] == 2
    assert operators(target)["DynamicQuantizeLinear"] >= 1
    assert report.accuracy[0].after.cosine > 0.99
    assert "drawn" in report.facts["accuracy_data"]
    assert report.facts["smaller_size_bytes"] == target.stat().st_size


@pytest.mark.wide
def test_nodes_that_stay(net: Path, calibration: Path, tmp_path: Path) -> None:
    target = tmp_path / "int8.onnx"
    convert(net, target, int8=True, calibration=calibration, int8_exclude=("conv0", "head"))
    found = optimized_operators(target)
    assert found["QLinearConv"] == 1
    assert found["Conv"] + found["FusedConv"] == 1
    assert found["QGemm"] == 0


@pytest.mark.wide
def test_same_bytes_whatever_the_order_of_sets(
    net: Path,
    calibration: Path,
    quantized: tuple[Path, serde.Report],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    again = tmp_path / "int8.onnx"
    convert(net, again, int8=True, calibration=calibration)
    assert again.read_bytes() == quantized[0].read_bytes()


@pytest.mark.wide
@pytest.mark.parametrize("demand", [{"min_agreement": 1.0}, {"min_cosine": 0.99999}])
def test_too_little_left(net: Path, tmp_path: Path, demand: dict[str, float]) -> None:
    """Calibrated on far too small images, the net forgets its classes; the old file stays."""
    target = tmp_path / "int8.onnx"
    target.write_bytes(b"old")
    report = serde.Report()
    with pytest.raises(CheckError, match="scores is below the least"):
        convert(
            net, target, int8=True, calibration=[x / 1000 for x in draw_samples()],
            check_data=draw_samples(), report=report, **demand,
        )  # fmt: skip
    assert report.accuracy[0].passed is False
    assert report.passed  # The floats are right all the same.
    assert target.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["int8.onnx"]


@pytest.mark.parametrize("options", [{"int8": "dynamic"}, {"int8": True}])
def test_a_quantised_model_is_not_quantised_again(
    quantized: tuple[Path, serde.Report], calibration: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    if options["int8"] is True:
        options = {**options, "calibration": calibration}
    with pytest.raises(OptionError, match=r"^int8: the model is quantised already \(w0_quant"):
        convert(quantized[0], tmp_path / "again.onnx", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("demand", "tick", "sentence"),
    [
        ([], False, "not judged, as no min_cosine or min_agreement is given"),
        (["--min-cosine", "0.5"], True, "1 output as near as is demanded"),
    ],
)
def test_there_is_a_tick_where_something_was_demanded(
    net: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    demand: list[str],
    tick: bool,
    sentence: str,
) -> None:
    target = tmp_path / "int8.onnx"
    assert main(["convert", str(net), str(target), "--int8", "dynamic", "--check", *demand]) == 0
    lines = capsys.readouterr().err.splitlines()
    (smaller,) = (line for line in lines if line.split()[:1] == ["smaller"] and "size" not in line)
    assert smaller.endswith("✓") is tick
    checked, made = lines[-2:]
    assert checked.startswith("checked onnxruntime ")
    assert checked.endswith(", before it was made smaller: the output agrees")
    assert made == f"made smaller: {sentence}"


@pytest.mark.wide
def test_on_the_command_line(
    net: Path, calibration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "int8.onnx"
    assert (
        main(["convert", str(net), str(target), "--int8", "--calibration", str(calibration)]) == 0
    )
    shown = capsys.readouterr().err
    assert "weights int8 per channel, activations uint8 by minmax of 6 samples" in shown
    assert "same class" in shown
    assert "root:" not in shown  # The tool's own messages.
    args = ["convert", "--int8", "dynamic", str(net), str(target), "--min-cosine", "1", "--json"]
    assert main(args) == 4
    assert '"worst_cosine"' in capsys.readouterr().out


@pytest.mark.wide
def test_weights_in_a_file_of_their_own(net: Path, calibration: Path, tmp_path: Path) -> None:
    target = tmp_path / "int8.onnx"
    convert(
        net, target, int8=True, calibration=calibration, save_as_external_data=True,
        external_data_threshold=0,
    )  # fmt: skip
    (found,) = run_onnx(target, {"data": draw_samples()[0]})[1]
    (wanted,) = run_onnx(net, {"data": draw_samples()[0]})[1]
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99


@pytest.mark.wide
def test_live_object(net: Path, calibration: Path) -> None:
    made = serde.export_model(net, format="onnx", int8=True, calibration=calibration)
    assert isinstance(made, onnx.ModelProto)
    (found,) = run_onnx(made.SerializeToString(), {"data": draw_samples()[0]})[1]
    (wanted,) = run_onnx(net, {"data": draw_samples()[0]})[1]
    assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99


def test_read_back_by_the_interpreter(quantized: tuple[Path, serde.Report]) -> None:
    """Relay's interpreter gives what ONNX Runtime gives, but for steps of the last scale."""
    target, _ = quantized
    data = draw_samples()[0]
    (found,) = RelayEngine(serde.to_relay(target)).run({"data": data})
    (wanted,) = run_onnx(target, {"data": data})[1]
    assert np.abs(found - wanted).max() <= 2.01 * initializers(target)["scores_scale"]


REFUSED = {
    "no calibration": ({"int8": True}, "int8='dynamic' takes ranges at run time"),
    "weights alone": ({"int8": "weights"}, "has 'static' and 'dynamic'"),
    "4 bits": ({"int8": "dynamic", "zero_points": True}, "zero_points: int8 of onnxruntime"),
    "no samples": ({"int8": True, "calibration": []}, "no samples"),
    "not a path": ({"int8": True, "calibration": 3}, "expected a path or arrays, found int"),
    "nothing there": (
        {"int8": True, "calibration": "nowhere"},
        "calibration: nowhere: there is no",
    ),
    "another shape": (
        {"int8": True, "calibration": np.zeros((1, 3, 12, 13), np.float32)},
        "calibration: sample 0: input data",
    ),
    "nothing asked": ({"symmetric": True}, "symmetric: nothing is to be made smaller"),
    "an unknown node": (
        {"int8": True, "calibration": draw_samples(1), "int8_exclude": ("conv9",)},
        "int8_exclude: the model has no node conv9",
    ),
    "a low opset": (
        {"int8": True, "calibration": draw_samples(1), "opset": 12},
        "scales per channel need opset 13, found 12",
    ),
    "16 bits": (
        {"int8": True, "calibration": draw_samples(1), "activation_type": "int16"},
        "int16 needs opset 21, found 17",
    ),
    "unsigned weights": (
        {"int8": True, "calibration": draw_samples(1), "symmetric": True, "weight_type": "uint8"},
        "weight_type='uint8'",
    ),
    "float16": (
        {"int8": True, "calibration": draw_samples(1), "float16": True},
        "takes models in float32",
    ),
    "a word": ({"int8": "all"}, "expected 'static' or 'dynamic'"),
    "a share": ({"int8": "dynamic", "min_cosine": 2.0}, "expected a number from 0 to 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(net: Path, tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    with pytest.raises(serde.OptionError, match=message.replace("(", r"\(")):
        convert(net, tmp_path / "int8.onnx", **options)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_quantise(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Sin", ["x"], ["y"])],
        "sine",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "sine.onnx",
    )
    with pytest.raises(serde.UnsupportedModelError, match="nothing in it is quantised"):
        serde.convert(
            tmp_path / "sine.onnx", tmp_path / "int8.onnx", int8=True,
            calibration=np.ones(2, np.float32),
        )  # fmt: skip
    assert not (tmp_path / "int8.onnx").exists()


@pytest.mark.exact_sums
@pytest.mark.wide
def test_lengths_that_change(tmp_path: Path) -> None:
    """Tokens of any number go through a table and a product, calibrated on three lengths."""
    rng = np.random.default_rng(0)
    tables = {"table": rng.normal(0, 1, (50, 16)), "w": rng.normal(0, 0.3, (16, 7))}
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["x"], "rows"),
            helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
        ],
        "tokens",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "L"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "L", 7])],
        [numpy_helper.from_array(each.astype("f4"), name) for name, each in tables.items()],
    )
    source = tmp_path / "tokens.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source
    )
    samples = [{"ids": rng.integers(0, 50, (2, length))} for length in (3, 5, 9)]
    report = convert(source, tmp_path / "int8.onnx", int8=True, calibration=samples)
    assert report.accuracy[0].after.cosine > 0.999
    assert report.accuracy[0].after.agreement is None
    with pytest.raises(serde.OptionError, match="give min_cosine"):
        convert(
            source, tmp_path / "again.onnx", int8="dynamic", calibration=samples, min_agreement=0.5
        )


def test_formats_without_a_tool(net: Path, tmp_path: Path) -> None:
    with pytest.raises(serde.OptionError, match="int8: format nnef has no tool"):
        serde.convert(net, tmp_path / "net_nnef", target_format="nnef", int8=True)
