"""Numbers and shapes that functions of Relax take: scalars and vectors of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnxruntime")

import onnxruntime
from support.relax_imports import compare, read_and_run, run_in_tvm
from support.relax_numbers import CASES
from tvm import relax

import serde
from serde.errors import UnsupportedModelError
from serde.relax.framework import load

FIRST = ("Inputs", "Formulas", "RoundedTowardsZero", "Called", "Recursion")
NAMES = [
    pytest.param(name, marks=[] if name in FIRST else pytest.mark.wide, id=name) for name in CASES
]


def _arguments(module: Any, given: Any) -> list[np.ndarray]:
    framework = load()
    types = [framework.type_of(each) for each in module["main"].params]
    dtypes = [str(getattr(each, "dtype", "int64")) for each in types]
    return [np.asarray(*each) for each in zip(given, dtypes, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_among_the_inputs_are_scalars_of_their_dtype(name: str) -> None:
    module, several = CASES[name]
    model = serde.export_model(module, format="onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    for given in several:
        arrays = _arguments(module, given)
        expected = run_in_tvm(module, arrays)
        compare(session.run(None, dict(zip(names, arrays, strict=True))), expected)
        compare(read_and_run(module, arrays), expected)


def test_a_condition_that_tvm_computes_by_a_function_of_its_own_is_read() -> None:
    module, several = CASES["Branches"]
    lowered = relax.transform.ComputePrimValue()(module)
    assert len(lowered.functions) == 2
    for given in several:
        arrays = _arguments(module, given)
        compare(read_and_run(lowered, arrays), run_in_tvm(module, arrays))


def test_a_number_that_is_fixed_is_a_length_that_is_known() -> None:
    module, _ = CASES["Called"]
    model = serde.export_model(module, format="onnx", fix_inputs={"n": 4})
    assert [each.name for each in model.graph.input] == ["x"]
    shapes = [[n.dim_value for n in each.type.tensor_type.shape.dim] for each in model.graph.output]
    assert shapes == [[4, 3], [6, 3], [2, 3]]


def test_a_number_of_another_dtype_is_refused() -> None:
    module, _ = CASES["Called"]
    with pytest.raises(UnsupportedModelError, match="a number of int64 cannot be one of float32"):
        serde.to_relay(module, input_dtypes={"n": "float32"})


@pytest.mark.parametrize("name", ["Inputs", "Tuples"])
def test_types_of_numbers_in_tuples_are_read_as_tvm_prints_them(name: str, tmp_path: Path) -> None:
    module, several = CASES[name]
    folder = tmp_path / "net_relax"
    folder.mkdir()
    (folder / "model.py").write_text(module.script(show_meta=True))
    arrays = _arguments(module, several[0])
    session = onnxruntime.InferenceSession(
        serde.export_model(folder, format="onnx").SerializeToString()
    )
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, dict(zip(names, arrays, strict=True)))
    compare(found, run_in_tvm(module, arrays))


@pytest.mark.wide
def test_a_check_gives_tvm_numbers(tmp_path: Path) -> None:
    module, _ = CASES["Triangles"]
    report = serde.convert(module, tmp_path / "net.onnx", check=True)
    assert all(each.max_abs == 0 for each in report.verdicts)
    shown = [(each["name"], each["shape"], each["dtype"]) for each in report.facts["inputs"]]
    assert shown == [("x", (5, 5), "float32"), ("k", (), "int64")]
