"""Split models whose names are those that the split itself would choose, or no names of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde.relay as relay
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build, partition_for_onnx

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
V = "Tensor[(2, 3), float32]"


def parse(text: str) -> relay.IRModule:
    return relay.fromtext(f'#[version = "0.0.5"]\n{text}')


def run(text: str, params: dict[str, np.ndarray], supported: list[str]) -> list[np.ndarray]:
    module = build(partition_for_onnx(parse(text), params, supported=supported))
    return HybridExecutor(module).run(X)


def test_a_parameter_of_an_inner_function_may_share_the_name_of_a_weight() -> None:
    text = f"""def @main(%x: {V}, %w: {V}) -> {V} {{
      %0 = fn (%w: {V}, Composite="some.neg") {{ negative(%w) }};
      %1 = %0(%x);
      add(%1, %w)
    }}"""
    weight = np.full((2, 3), 7, np.float32)
    np.testing.assert_array_equal(run(text, {"w": weight}, ["Add"])[0], 7 - X)


def test_weights_may_have_the_names_of_inputs_and_outputs_of_regions() -> None:
    text = f"""def @main(%x: {V}, %onnx_0_i0: {V}, %onnx_0_o0: {V}) {{
      let %y = add(add(negative(%x), %x), %onnx_0_i0);
      (abs(%y), add(%y, %onnx_0_o0))
    }}"""
    weights = {"onnx_0_i0": X + 10, "onnx_0_o0": X + 100}
    results = run(text, weights, ["Add"])
    np.testing.assert_array_equal(results[0], X + 10)
    np.testing.assert_array_equal(results[1], 2 * X + 110)


def test_what_is_partitioned_already_is_partitioned_further() -> None:
    mod = parse(f"def @main(%x: {V}) {{ abs(negative(add(%x, %x))) }}")
    first = partition_for_onnx(mod, supported=["Add"])
    second = partition_for_onnx(first, supported=["Add", "Abs"])
    names = {each.name_hint for each in second.functions}
    assert names == {"main", "tvmgen_default_onnx_main_0", "tvmgen_default_onnx_main_1"}
    module = build(second)
    assert [region.nodes for region in module.imported_modules] == [("Add",), ("Abs",)]
    np.testing.assert_array_equal(HybridExecutor(module).run(X)[0], abs(2 * X))


def call_region(name: str, times: int = 1) -> relay.IRModule:
    """``abs(region(...(region(negative(x)))))`` where the region adds one."""
    a, x = relay.var("a", shape=(2, 3)), relay.var("x", shape=(2, 3))
    marks = {"Compiler": "onnx", "global_symbol": name, "Primitive": 1}
    region = relay.Function([a], relay.add(a, relay.const(np.float32(1)))).with_attr(marks)
    callee = relay.GlobalVar(name)
    value = relay.negative(x)
    for _ in range(times):
        value = relay.Call(callee, [value])
    main = relay.Function([x], relay.abs(value))
    return relay.IRModule({callee: region, relay.GlobalVar("main"): main})


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    "name",
    [*("../../outside", "a/b", "host", "host_0", "x" * 300, "é"), "a b", "\n", "\0", ".onnx"],
)
def test_a_region_of_any_name_is_saved_in_the_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    folder = build(call_region(name)).save(tmp_path / "a" / "b" / "split")
    files = {each for each in tmp_path.rglob("*") if each.is_file()}
    assert files == set(folder.iterdir())
    assert len(files) == 4
    loaded = OnnxModule.load(folder)
    assert list(loaded.regions) == [name]
    np.testing.assert_array_equal(HybridExecutor(loaded).run(X)[0], abs(1 - X))


@pytest.mark.wide
def test_a_region_may_be_called_many_times(tmp_path: Path) -> None:
    module = build(call_region("reg", times=80))
    assert list(module.regions)[:3] == ["reg", "reg_0", "reg_1"]
    loaded = OnnxModule.load(module.save(tmp_path / "split"))
    np.testing.assert_array_equal(HybridExecutor(loaded).run(X)[0], abs(80 - X))
