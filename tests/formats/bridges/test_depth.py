"""Conditionals and loops far inside each other: written, or refused by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
import serde.relay as relay
from serde.errors import FormatError, LimitError, ParseError, UnsupportedModelError
from serde.relay.op.control.loop import build_loop

LIMITS = {"depth": 200}
SHAPE = (2, 3)


def model_of(params: list[Any], body: Any) -> relay.RelayModel:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(params, body)))
    names = tuple(each.name_hint for each in params)
    return relay.RelayModel(mod, {}, relay.ModelMeta(inputs=names, outputs=("y",)))


def conditionals(depth: int) -> relay.RelayModel:
    """Conditionals each in the branch of another, of which each adds 1."""
    x, c = relay.var("x", shape=SHAPE), relay.var("c", shape=(), dtype="bool")
    sums = [x]
    for _ in range(depth):
        sums.append(relay.add(sums[-1], relay.const(1.0)))
    result = relay.negative(sums[-1])
    for level in reversed(range(depth)):
        result = relay.If(c, relay.add(result, sums[level]), sums[level])
    return model_of([x, c], result)


def loops(depth: int) -> relay.RelayModel:
    """Loops of three iterations each in the body of another."""
    body = None
    for _ in range(depth):
        i, s = relay.var("i", shape=(), dtype="int64"), relay.var("s", shape=SHAPE)
        after = relay.add(s, relay.const(1.0))
        if body is not None:
            after = build_loop(relay.const(3, "int64"), None, [after], body=body)[0]
        body = relay.Function([i, s], relay.Tuple([relay.const(True, "bool"), after]))
    x = relay.var("x", shape=SHAPE)
    assert body is not None
    looped = build_loop(relay.const(3, "int64"), None, [x], body=body)
    return model_of([x], looped[0])


TARGETS: dict[str, tuple[str, dict[str, Any]]] = {
    "relay": ("m.relay", {}),
    "onnx": ("m.onnx", {}),
    "mxnet": ("m-symbol.json", {}),
    "coreml": ("m.mlpackage", {}),
    "layers": ("m.mlmodel", {"format": "coreml", "minimum_deployment_target": "iOS14"}),
    "nnef": ("m", {"format": "nnef"}),
    "torch": ("t", {"format": "torch"}),
}
REFUSALS = (FormatError, LimitError, ParseError, UnsupportedModelError)


def convert_there_and_back(model: relay.RelayModel, path: Path, options: dict[str, Any]) -> str:
    """Return whether a model is written and read again, or how it is refused."""
    try:
        serde.from_relay(model, path=path, limits=LIMITS, **options)
        if options.get("format") == "torch":
            compile((path / "model.py").read_text(), "model.py", "exec")
        else:
            serde.to_relay(path, limits=LIMITS)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.wide
@pytest.mark.parametrize("depth", [20, 60, 100, 190])
@pytest.mark.parametrize("make", [conditionals, loops])
@pytest.mark.parametrize("target", TARGETS)
def test_depth_ends_in_a_model_or_a_refusal(
    target: str, make: Callable[[int], relay.RelayModel], depth: int, tmp_path: Path
) -> None:
    """Any other error, and Python that does not compile, fails."""
    name, options = TARGETS[target]
    start = time.process_time()
    told = convert_there_and_back(make(depth), tmp_path / name, options)
    if target == "relay":  # Whose text nests two expressions for each loop, and 200 are read.
        assert told.startswith("ParseError") if make is loops and depth > 90 else told == ""
    # Far more than it takes; doubled with each level, it would not come to an end.
    assert time.process_time() - start < 30


@pytest.mark.wide
def test_conditionals_as_deep_as_onnx_has_them_compute(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    serde.from_relay(conditionals(30), path=path, limits=LIMITS)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.float32([[1, -2, 3], [0, 5, 7]])
    (found,) = session.run(None, {"x": x, "c": np.array(True)})
    expected = -(x + 30) + sum(x + level for level in range(30))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_loops_inside_each_other_are_written_once_each(tmp_path: Path) -> None:
    """MXNet counts by slices; a body that looks at none is found out without another writing."""
    path = tmp_path / "m-symbol.json"
    serde.from_relay(loops(12), path=path)
    assert path.read_text().count('"_foreach"') == 12


@pytest.mark.wide
def test_python_that_would_not_compile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="more than 90 subgraphs"):
        serde.from_relay(conditionals(91), format="torch", path=tmp_path / "m")
    with pytest.raises(UnsupportedModelError, match="more than 20 loops"):
        serde.from_relay(loops(21), format="torch", path=tmp_path / "m")
    serde.from_relay(conditionals(90), format="torch", path=tmp_path / "m")
    compile((tmp_path / "m" / "model.py").read_text(), "model.py", "exec")


@pytest.mark.wide
def test_what_pytorch_would_trace_without_end_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(LimitError, match="traces iteration by iteration"):
        serde.from_relay(loops(15), path=tmp_path / "m.pt2")
