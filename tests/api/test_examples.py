"""The examples in the docstrings of the public functions run as they stand there."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
import serde.errors as errors
import serde.relay as relay
from serde.conversion.signature import PublicFunction
from serde.engine import foreign
from serde.target import regions

NEEDS = {"import_model": "mxnet", "import_to_gluon": "mxnet", "compile": "tvm"}
SLOW = ("batch", "compile")
"""Functions that start processes."""


def names() -> list[Any]:
    public = [(name, getattr(serde, name)) for name in serde.__all__]
    found = [name for name, each in public if callable(each) and not isinstance(each, type)]
    return [pytest.param(n, marks=[pytest.mark.wide] if n in SLOW else []) for n in found]


def write(path: str, operator: str, domain: str, factor: float) -> None:
    """Write a net with one weight and one input, `x`."""
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32) * np.float32(factor), "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3]) for n in "xy")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="dense"),
        helper.make_node(operator, ["h"], ["y"], name="last", domain=domain),
    ]
    graph = helper.make_graph(nodes, "net", [x], [y], [weight])
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)


@pytest.mark.parametrize("name", names())
def test_what_a_conversion_raises_is_told(name: str) -> None:
    function = getattr(serde, name)
    if name == "batch" or not isinstance(function, PublicFunction):
        return
    told = (function.__wrapped__.__doc__ or "").partition("Raises:")[2]
    named = set(re.findall(r"^ {8}(\w+): ", told, re.MULTILINE))
    assert {each for each in named if not hasattr(errors, each)} == set()
    wanted = {"LimitError", "MissingDependency", "OptionError"}
    wanted |= set() if function.reads is None else {"FormatError"}
    wanted |= set() if function.locations is None else {"StoreError"}
    assert wanted <= named


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(regions, "_RUNNERS", {**regions._RUNNERS})
    monkeypatch.setattr(foreign, "_KERNELS", {**foreign._KERNELS})
    write("net.onnx", "Relu", "", 1.0)
    write("other.onnx", "Relu", "", 2.0)
    write("custom.onnx", "Twice", "com.acme", 1.0)
    return tmp_path


@pytest.mark.wide
@pytest.mark.parametrize("name", names())
def test_the_example_of_a_function_runs(name: str, work: Path) -> None:
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    function = getattr(serde, name)
    source = getattr(function, "__wrapped__", function).__doc__ or ""
    globs = {"serde": serde, "relay": relay, "np": np}
    test = doctest.DocTestParser().get_doctest(source, globs, name, None, None)
    assert any(f"serde.{name}(" in each.source for each in test.examples)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert "".join(told) == ""
