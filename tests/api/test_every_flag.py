"""Each flag of ``serde convert`` through the command line, on a net of ONNX with usual layers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.command.cli import find_command, main

LINES: Final = """
--from onnx: net.onnx n.onnx
--input-shape x:1,3,8,8: net.onnx n.onnx
--input-dtype x:float32: net.onnx n.onnx
--allow float16-overflow --float16: net.onnx n.onnx
--to nnef --input-shape x:1,3,8,8: net.onnx n.nnef
--check 2: net.onnx n.onnx
--check-atol 1e-4 --check-rtol 1e-3 --check: net.onnx n.onnx
--check-dim N=2 --check: net.onnx n.onnx
--check-data x.npy --check: net.onnx n.onnx
--yardstick off --check: net.onnx n.onnx
--overwrite: net.onnx n-symbol.json
--float16: net.onnx n.onnx
--keep-io-types --float16: net.onnx n.onnx
--op-block-list Softmax --float16: net.onnx n.onnx
--min-cosine 0.9 --float16 auto: net.onnx n.onnx
--report r.json: net.onnx n.onnx
--json: net.onnx n.onnx
--verbose: net.onnx n.onnx
--quiet: net.onnx n.onnx
--log-level debug: net.onnx n.onnx
--no-color: net.onnx n.onnx
--tensor-mapping names.json: net.onnx n.onnx
--limit nodes=10M: net.onnx n.onnx
--converters own.py: net.onnx n.onnx
--keep-unknown: net.onnx n.onnx
--fix-input x=x.npy: net.onnx n.onnx
--custom-ops com.acme::Scale: net.onnx n.onnx
--storage-option anon=true: net.onnx n.onnx
--inputs conv: net.onnx n.onnx
--outputs relu: net.onnx n.onnx
--rename-input x=data: net.onnx n.onnx
--rename-output y=prob: net.onnx n.onnx
--no-simplify: net.onnx n.onnx
--keep-batch-norm: net.onnx n.onnx
--static --input-shape x:1,3,8,8: net.onnx n.onnx
--opset auto: net.onnx n.onnx
--opset 11: net.onnx n.onnx
--source-opset 17: net.onnx n.onnx
--keep-initializers-as-inputs: net.onnx n.onnx
--intermediate-shapes: net.onnx n.onnx
--quantized qdq: net.onnx n.onnx
--save-as-external-data: net.onnx n.onnx
--external-data-threshold 64: net.onnx n.onnx
--link-weights --link-digest full: net.onnx n.onnx
--runtime onnxruntime: net.onnx n.onnx
--for webnn --input-shape x:1,3,8,8: net.onnx n.onnx
--for rknn --input-shape x:1,3,8,8: net.onnx n.onnx
--local-functions: net.onnx n.onnx
--int8 --calibration x.npy: net.onnx n.onnx
--int8 dynamic --weight-type uint8 --no-per-channel: net.onnx n.onnx
--int8 --calibration-method percentile --activation-type uint8 --calibration x.npy: net.onnx n.onnx
--int8 --symmetric --reduce-range --int8-exclude head --calibration x.npy: net.onnx n.onnx
--int4 --block-size 32 --zero-points --no-int4-head: net.onnx n.onnx
--triton models --model-name net --max-batch-size 4 --dynamic-batching: net.onnx
--epoch 0 --widen-weights --drop-labels: net-symbol.json n.onnx
--params-epoch 3: net.onnx n-symbol.json
--strict: net.onnx n.relay
--lift-constants 8: net.relay n.onnx
--nnef-fragments --input-shape x:1,3,8,8: net.onnx n.nnef
--minimum-deployment-target iOS16 --compute-precision float32: net.onnx n.mlpackage
--float32-ops norms: net.onnx n.mlpackage
--image x:RGB,scale=0.017 --class-labels labels.txt --input-shape x:1,3,8,8: net.onnx n.mlpackage
--author A --license MIT --model-version 2 --short-description D: net.onnx n.mlpackage
--describe x=picture --metadata k=v: net.onnx n.mlpackage
--range N:1:8:2: net.onnx n.mlpackage
--enumerated-shape x:1,3,8,8 --enumerated-shape x:2,3,8,8: net.onnx n.mlpackage
--write-quantized int8: net.onnx n.tflite
--read-quantized qdq: net.tflite n.onnx
--palettize 4 --minimum-deployment-target iOS16: net.onnx n.mlpackage
--sparsity 0.5 --minimum-deployment-target iOS16: net.onnx n.mlpackage
"""
"""Flags, and the source and the target of the command that they stand in."""

ELSEWHERE: Final = {
    "--cache", "--cache-batch", "--cache-length", "--cc", "--control-flow", "--default-dtype",
    "--dtype", "--freeze-vars", "--function", "--help", "--help-all", "--int4-embeddings",
    "--max-perplexity", "--min-agreement", "--mode", "--optional-inputs", "--output-image",
    "--perplexity-text", "--pipeline", "--pipeline-model", "--predicted-feature-name",
    "--predicted-probabilities-output", "--raw-audio", "--result-types", "--signature", "--state",
    "--target", "--task", "--torchserve", "--training", "--trials", "--tuning",
}  # fmt: skip
"""Flags that need another net, a compiler or PyTorch."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sources."""
    path = tmp_path_factory.mktemp("flags")
    _write_net(path / "net.onnx")
    np.save(path / "x.npy", np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype("float32"))
    (path / "own.py").write_text(
        "from serde import relay\nCONVERTERS = {'Relu': lambda ctx, x: relay.nn.relu(x)}\n"
    )
    (path / "labels.txt").write_text("\n".join(f"label{i}" for i in range(10)))
    for target in ("net-symbol.json", "net.relay", "net.tflite"):
        assert main(["convert", str(path / "net.onnx"), str(path / target), "-q"]) == 0
    return path


def _write_net(path: Path) -> None:
    draw = np.random.default_rng(1)
    weights = {
        "w": draw.normal(size=(8, 3, 3, 3)), "b": draw.normal(size=8),
        "scale": draw.uniform(1, 2, 8), "shift": draw.normal(size=8), "mean": draw.normal(size=8),
        "var": draw.uniform(1, 2, 8), "dense": draw.normal(size=(8, 512)),
        "last": draw.normal(size=(512, 10)),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], "norm"
        ),
        helper.make_node("Relu", ["n"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "dense"], ["d"], "dense"),
        helper.make_node("MatMul", ["d", "last"], ["e"], "head"),
        helper.make_node("Softmax", ["e"], ["y"], "prob", axis=-1),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(each.astype(np.float32), name) for name, each in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def _tiered(line: str) -> Any:
    """Return a line as a parameter; what starts a process with another tool comes later."""
    late = line.startswith(("--int", "--palettize", "--sparsity"))
    return pytest.param(line, marks=[pytest.mark.wide] if late else [])


def test_every_flag_stands_in_a_line() -> None:
    command = find_command("convert")
    options = command.get_params(click.Context(command))
    flags = [
        {*each.opts, *each.secondary_opts} for each in options if each.param_type_name == "option"
    ]
    known = ELSEWHERE | set(re.findall(r"--[a-z][a-z0-9-]*", LINES))
    assert [each for each in flags if not each & known] == []


@pytest.mark.parametrize("line", [_tiered(each) for each in LINES.strip().splitlines()])
def test_a_flag_through_the_command_line(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags, _, paths = line.rpartition(": ")
    monkeypatch.chdir(folder)
    source, *target = paths.split()
    code = main(["convert", source, *(str(tmp_path / each) for each in target), *flags.split()])
    assert code == 0
    assert all((tmp_path / each).exists() for each in target)
