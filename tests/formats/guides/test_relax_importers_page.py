"""docs/tvm-importers.md: every block of Python in it runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")

import serde
import serde.relay as relay

PAGE = (Path(__file__).parents[3] / "docs" / "tvm-importers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs_and_gives_a_model_of_onnx(number: int) -> None:
    block = BLOCKS[number]
    if "import torch" in block:
        pytest.importorskip("torch")
    x = relay.var("x", shape=(2, 3))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    names: dict[str, Any] = {"model": serde.export_model(mod, format="onnx"), "serde": serde}
    exec(compile(block, "tvm-importers.md", "exec"), names)
    kinds = {node.op_type for node in names["proto"].graph.node}
    assert kinds
    assert kinds <= {"Exp", "Gelu", "Gemm", "MatMul", "Add", "Mul", "Div", "Erf", "Transpose"}
