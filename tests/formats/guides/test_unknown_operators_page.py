"""docs/unknown-operators.md: every example on it runs, and says what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import MissingDependency

ROOT = Path(serde.__file__).parents[1]
PAGE = (ROOT / "docs" / "unknown-operators.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n# (?P<path>\S+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = {each["path"]: each["body"] for each in BLOCK.finditer(PAGE)}
COMMANDS = re.findall(r"^(?:`)?(serde (?:convert|inspect) [^`\n]+)", PAGE, re.MULTILINE)
COMMANDS += re.findall(r"^`(serde convert[^`]+)`", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BLOCKS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, name: str) -> str:
    paths = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


EXPECTED = {
    "onnx_example.py": ["%0 = multiply(%x, 2f);", "nn.relu(%1)"],
    "coreml_example.py": ["%0 = multiply(%x, 2f);", "add(%0, 0f)"],
    "nnef_example.py": ["%0 = multiply(%x, 2f);", "add(%0, 0f)"],
    "writing_example.py": ["['Mul', 'Max']"],
    "running_example.py": ["[[2. 0. 6.]]"],
}


QUICK = ("onnx_example.py", "writing_example.py")


@pytest.mark.wide
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.wide) for n in EXPECTED]
)
def test_an_example_of_the_page_runs(folder: Path, name: str) -> None:
    if name == "coreml_example.py":
        pytest.importorskip("coremltools")
    if name == "nnef_example.py":
        pytest.importorskip("nnef")
    told = run(folder, name)
    for text in EXPECTED[name]:
        assert text in told


def test_the_example_of_torch_runs(folder: Path) -> None:
    pytest.importorskip("torch")
    assert "%0 = multiply(%x, 2f);" in run(folder, "torch_example.py")


def test_there_is_no_other_example() -> None:
    assert set(BLOCKS) == {*EXPECTED, "torch_example.py", "my_ops.py"}


def test_commands_of_the_page_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        mx = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    monkeypatch.chdir(folder)

    class Swish(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            self.assign(out_data[0], req[0], in_data[0] * mx.nd.sigmoid(in_data[0]))

    @mx.operator.register("swish")
    class SwishProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):  # type: ignore[no-untyped-def]
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Swish()

    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    mx.sym.Custom(x, op_type="swish", name="act").save("net-symbol.json")
    weights = {"arg:fc_weight": mx.nd.ones((4, 5)), "arg:fc_bias": mx.nd.zeros((4,))}
    mx.nd.save("net-0000.params", weights)
    commands = [each for each in COMMANDS if "net-symbol.json" in each]
    assert len(commands) >= 5
    for command in commands:
        assert main(command.split()[1:]) == 0, command
        told = capsys.readouterr()
        if "--relay" in command:
            assert 'name="swish"' in told.out
        if "--custom-ops" in command:
            nodes = onnx.load("net.onnx").graph.node
            assert [(n.domain, n.op_type) for n in nodes if n.domain] == [("mxnet", "swish")]
        if "--converters" in command:
            onnx.checker.check_model(onnx.load("net.onnx"), full_check=True)
    np.testing.assert_array_equal(weights["arg:fc_bias"].asnumpy(), np.zeros(4, np.float32))
