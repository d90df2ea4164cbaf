"""docs/vendor-compiler.md and its toolchain: each block runs; C gives what ONNX Runtime does."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.distribution import environment
from support.pages import ROOT, blocks

from serde.engine import foreign
from serde.target import HybridExecutor, regions
from serde.target.splitting import split

FOLDER = ROOT / "examples" / "toolchains" / "acme"
PAGE = "docs/vendor-compiler.md"


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(regions, "_RUNNERS", dict(regions._RUNNERS))
    monkeypatch.setattr(foreign, "_KERNELS", dict(foreign._KERNELS))
    spec = importlib.util.spec_from_file_location("acme", FOLDER / "acme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "acme", module)
    spec.loader.exec_module(module)
    if module.compiler() is None:
        pytest.skip("there is no C compiler")
    return module


@pytest.mark.wide
def test_the_page_runs_from_top_to_bottom(
    acme: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    printed = ""
    for block in blocks(PAGE):
        if block.language == "toml":
            assert block.body.partition("\n")[2].strip() in (FOLDER / "acme.toml").read_text()
            (tmp_path / "acme.toml").write_text(block.body)
        elif block.language == "sh":
            words = [sys.executable, "-m", "serde", *block.body.split()[1:]]
            env = {**environment(ROOT), "COLUMNS": "200"}
            done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 1, done.stderr
            printed = done.stdout
        elif block.language == "text":
            lines = [line.rstrip() for line in block.body.strip().splitlines()]
            assert [line.rstrip() for line in printed.strip().splitlines()] == lines
        else:
            exec(compile(block.body, PAGE, "exec"), names)
    (want,) = reference(names["model"], {"x": names["x"]})
    np.testing.assert_allclose(names["on_chip"], want, rtol=1e-5, atol=1e-6)
    shown = capsys.readouterr().out
    assert "[('com.acme', 'DenseRelu', 3), ('com.acme', 'Scale', 1)]" in shown
    assert "[('com.acme', 'DenseRelu', ['Gemm', 'Relu'])]" in shown
    assert "('tvmgen_acme_onnx_main_0', ('DenseRelu', 'Scale'))" in shown
    assert "['main', 'tvmgen_default_onnx_main_0']" in shown
    (layer,) = (n for n in onnx.load("first.onnx").graph.node if n.op_type == "DenseRelu")
    assert [(each.name, each.i) for each in layer.attribute] == [("units", 16)]


def reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime gives, `Scale` spelled out as a local function."""
    import onnxruntime

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    scale = parser.parse_function("""
    <domain: "com.acme", opset_import: ["" : 17]>
    Scale <by, bias> (x) => (y) {
      factor = Constant <value_float: float = @by> ()
      added = Constant <value_float: float = @bias> ()
      scaled = Mul (x, factor)
      y = Add (scaled, added)
    }""")
    whole.functions.append(scale)
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    return list(session.run(None, feeds))


NETS = {
    "elementwise operators broadcast": (
        "s = Mul (x, row) t = Add (column, s) y = Relu (t)", {"row": (1, 8), "column": (3, 1)}),
    "products with and without a bias": (
        "a = Gemm (x, w, row) b = MatMul (a, v) y = Gemm <transB = 1> (b, u)",
        {"w": (8, 5), "row": (5,), "v": (5, 6), "u": (4, 6)}),
    "a composite twice, the first result read twice": (
        "a = Gemm <transB = 1> (x, w, b) r = Relu (a) c = Gemm <transB = 1> (r, v, d) "
        "s = Relu (c) y = Add (r, s)", {"w": (8, 8), "b": (8,), "v": (8, 8), "d": (8,)}),
    "the host in between": (
        "a = Gemm <transB = 1> (x, w, b) r = Relu (a) t = Tanh (r) y = Mul (t, r)",
        {"w": (8, 8), "b": (8,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_what_is_compiled_gives_what_onnx_runtime_does(name: str, acme: Any) -> None:
    pytest.importorskip("onnxruntime")
    body, shapes = NETS[name]
    head = '<ir_version: 8, opset_import: ["" : 17]>\nnet (float[3, 8] x) => (float[N, M] y)'
    model = parser.parse_model(f"{head} {{ {body} }}")
    rng = np.random.default_rng(7)
    for each, shape in shapes.items():
        value = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, each))
    x = rng.normal(size=(3, 8)).astype(np.float32)
    module = split(model, supported=FOLDER / "acme.toml").module
    (want,) = reference(model, {"x": x})
    for runner in ("acme", "onnxruntime", "reference"):
        (found,) = HybridExecutor(module, runner=runner).run(x)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    composites = sum(region.nodes.count("DenseRelu") for region in module.regions.values())
    assert composites == body.count("Relu") * ("Gemm <transB = 1> (x" in body)
