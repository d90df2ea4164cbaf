"""Arrays that TVM and NumPy share, modules as users get them, and NNEF to Relax."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any as AnyValue

import numpy as np
import pytest
from support.nnef_files import NET, WEIGHT, write_folder
from support.relax_folders import layered_model

import serde
import serde.relax
from serde.core.weights import ArrayWeight, empty_aligned, numpy_dtype
from serde.errors import UnsupportedModelError
from serde.relax.framework import load
from serde.relax.live import share, shared_array, to_tensor

tvm = pytest.importorskip("tvm")

RNG = np.random.default_rng(3)
DTYPES = (
    *("bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64", "bfloat16"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_shared_both_ways(dtype: str) -> None:
    data = empty_aligned((3, 5), dtype)
    data[...] = np.ones((3, 5))
    tensor = share(load(), data)
    assert str(tensor.dtype) == dtype
    seen = shared_array(tensor)
    assert seen is not None
    assert seen.dtype == numpy_dtype(dtype)
    assert seen.ctypes.data == data.ctypes.data
    data[1, 2] = 2 if dtype != "bool" else False
    assert tensor.numpy().tobytes() == data.tobytes()


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_shared_memory_outlives_who_made_it(dtype: str) -> None:
    data = empty_aligned((100, 1000), dtype)
    data[...] = RNG.integers(0, 100, (100, 1000))
    wanted = data.tobytes()
    seen = shared_array(share(load(), data))
    del data
    gc.collect()
    other = [np.zeros((100, 1000), np.float32) for _ in range(8)]
    assert seen is not None
    assert seen.tobytes() == wanted
    assert len(other) == 8


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "float8_e4m3fn"])
def test_a_weight_becomes_a_tensor(dtype: str, shape: tuple[int, ...]) -> None:
    data = RNG.integers(0, 2, shape).astype(numpy_dtype(dtype))
    tensor = to_tensor(load(), ArrayWeight(data))
    assert str(tensor.dtype) == dtype
    assert tuple(tensor.shape) == shape
    assert tensor.numpy().tobytes() == data.tobytes()


def test_an_array_that_cannot_be_shared_is_copied() -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    data.flags.writeable = False
    tensor = share(load(), data.T)
    np.testing.assert_array_equal(tensor.numpy(), data.T)


@pytest.mark.wide
def test_a_module_has_its_weights_as_tvm_has_them() -> None:
    from tvm.relax.frontend import detach_params

    model = layered_model()
    module, params = detach_params(serde.export_model(model, format="relax"))
    assert "params" not in module["main"].attrs
    found = {tuple(each.shape): each.numpy() for each in params["main"]}
    kernel = model.params["conv.weight"].array()
    np.testing.assert_array_equal(found[4, 3, 3, 3], kernel)


# NNEF


def run(module: AnyValue, *values: AnyValue) -> np.ndarray:
    compiled = tvm.compile(module, target="llvm")
    machine = tvm.relax.VirtualMachine(compiled, tvm.cpu())
    return machine["main"](*map(tvm.runtime.tensor, values)).numpy()


@pytest.mark.wide
@pytest.mark.parametrize("form", ["folder", "graph"])
def test_from_nnef_gives_a_module(form: str, tmp_path: Path) -> None:
    source: AnyValue = write_folder(tmp_path / "net", NET)
    if form == "graph":
        source = pytest.importorskip("nnef").load_graph(str(source))
    module = serde.relax.frontend.nnef.from_nnef(source)
    assert len(module["main"].params) == 1
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(run(module, x), np.maximum(x + WEIGHT, 0), rtol=1e-6)


@pytest.mark.wide
def test_from_nnef_keeps_parameters_in_the_input(tmp_path: Path) -> None:
    from tvm.relax.frontend import detach_params

    from serde.relax.frontend.nnef import from_nnef

    source = write_folder(tmp_path / "net", NET)
    module, params = detach_params(from_nnef(source, keep_params_in_input=True))
    assert int(module["main"].attrs["num_input"]) == 1
    (weight,) = params["main"]
    np.testing.assert_array_equal(weight.numpy(), WEIGHT)
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(run(module, x, WEIGHT), np.maximum(x + WEIGHT, 0), rtol=1e-6)


@pytest.mark.wide
def test_from_nnef_tells_what_it_cannot_convert(tmp_path: Path) -> None:
    head, graph = NET.split("graph", 1)
    fragment = "fragment own(x: tensor<scalar>) -> (y: tensor<scalar>);\n\n"
    extension = "extension KHR_enable_fragment_definitions;\n\n"
    text = f"{head}{extension}{fragment}graph{graph.replace('relu(s)', 'own(s)')}"
    with pytest.raises(UnsupportedModelError, match="own "):
        serde.relax.frontend.nnef.from_nnef(write_folder(tmp_path / "net", text))
