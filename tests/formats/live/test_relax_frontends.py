"""Modules that TVM's importer of ONNX and its ``nn`` made: read, and led to ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.onnx_suite import SuiteCase, frozen, judge as judge_results, load_cases
from support.relax_imports import flatten, read_and_run, run_in_tvm
from tvm.relax.frontend import nn
from tvm.relax.frontend.onnx import from_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import MissingDependency, UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore")


def _run_in_onnx_runtime(
    module: Any, arrays: Sequence[np.ndarray], params: Any = None
) -> list[np.ndarray]:
    runtime = pytest.importorskip("onnxruntime")
    proto = serde.export_model(module, params, format="onnx")
    session = runtime.InferenceSession(proto.SerializeToString())
    names = [each.name for each in session.get_inputs()]
    found: list[np.ndarray] = session.run(None, dict(zip(names, arrays, strict=True)))
    return found


class Decoder(nn.Module):
    """A layer of a language model, as TVM's users write them."""

    def __init__(self) -> None:
        self.words = nn.Embedding(20, 16)
        self.norm = nn.RMSNorm(16, -1, 1e-5, bias=False)
        self.joint = nn.Linear(16, 48, bias=False)
        self.out = nn.Linear(16, 5)

    def forward(self, i: nn.Tensor) -> nn.Tensor:
        x = self.norm(nn.op.silu(self.words(i)))
        batch, length, _ = x.shape
        parts = nn.op.split(self.joint(x), 3, axis=-1)
        heads = (nn.op.reshape(each, (batch, length, 2, 8)) for each in parts)
        joined = nn.op.scaled_dot_product_attention(*heads, is_causal=True)
        return nn.op.softmax(self.out(nn.op.reshape(joined, (batch, length, 16))), axis=-1)


@pytest.mark.wide
@pytest.mark.parametrize("shape", [[2, 6], ["b", "t"]], ids=["fixed", "symbols"])
def test_a_module_of_nn_is_read_with_its_weights(shape: list[Any]) -> None:
    module, named = Decoder().export_tvm({"forward": {"i": nn.spec.Tensor(shape, "int32")}})
    random = np.random.default_rng(3)
    params = {n: random.standard_normal(p.shape).astype(p.dtype) / 3 for n, p in named}
    words = random.integers(0, 20, (2, 6)).astype(np.int32)
    (expected,) = run_in_tvm(module, [words, *params.values()], "forward")
    for found in (
        read_and_run(module, [words], params, function="forward"),
        _run_in_onnx_runtime(module, [words], params),
    ):
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


def _mxnet() -> Any:
    try:
        return import_mxnet()
    except MissingDependency:
        pytest.skip("needs MXNet")


def _nets(mx: Any) -> dict[str, tuple[Any, int]]:
    vision = mx.gluon.model_zoo.vision
    sizes = {"resnet18_v1": 64, "resnet18_v2": 64, "mobilenet0.25": 64, "vgg11_bn": 64}
    sizes |= {"squeezenet1.1": 224, "densenet121": 224}
    return {name: (vision.get_model(name), size) for name, size in sizes.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["resnet18_v1", "resnet18_v2", "mobilenet0.25", "vgg11_bn", "squeezenet1.1", "densenet121"],
)
def test_a_gluon_net_goes_to_tvm_and_back(name: str) -> None:
    mx = _mxnet()
    net, size = _nets(mx)[name]
    net.initialize(mx.init.Xavier(magnitude=2))
    net.hybridize()
    image = mx.nd.random.normal(shape=(1, 3, size, size))
    expected = net(image).asnumpy()
    proto = serde.export_model(net, format="onnx", input_shapes=image.shape)
    module = from_onnx(proto, keep_params_in_input=True)
    (found,) = _run_in_onnx_runtime(module, [image.asnumpy()])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


_CASES = {f"{each.kind}/{each.name}": each for each in load_cases() if each.left_out is None}


def _chosen() -> list[Any]:
    """Return cases of the backend suite: a seventh of them, of these a twentieth for most runs.

    What TVM compiles casts to floats of 8 bits to is wrong; the greatest of nothing is no number.
    """
    kinds = ("node/", "pytorch")
    names = [
        name
        for name in sorted(_CASES)
        if name.startswith(kinds) and not re.search("FLOAT8|empty_set", name)
    ][::7]
    marks = [pytest.mark.wide if i % 20 == 0 else pytest.mark.slow for i in range(len(names))]
    return [pytest.param(n, marks=mark) for n, mark in zip(names, marks, strict=True)]


@pytest.mark.parametrize("name", _chosen())
def test_what_tvm_reads_of_onnx_is_read_as_tvm_computes_it(name: str) -> None:
    case = frozen(_CASES[name])
    module = _imported(case)
    inputs, outputs = case.data()[0]
    arrays = [np.asarray(each) for each in inputs]
    try:
        found = read_and_run(module, arrays)
    except UnsupportedModelError as error:
        if not _is_beyond_tvm(module, arrays, {issue.op for issue in error.report.issues}):
            raise
        pytest.skip("TVM's importer writes what TVM does not compile")
    try:
        judge_results(case, outputs, found)
    except AssertionError:
        # TVM's importer takes some operators for others: what it wrote counts.
        for actual, wanted in zip(flatten(found), _run_or_skip(module, arrays), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def _is_beyond_tvm(module: Any, arrays: Sequence[np.ndarray], refused: set[str]) -> bool:
    """Whether serde may refuse operators: inputs that are no tensors, what TVM refuses, too."""
    if "input" in refused:
        return True
    try:
        run_in_tvm(module, arrays)
    except Exception:
        return True
    return False


def _run_or_skip(module: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    try:
        return run_in_tvm(module, arrays)
    except Exception as error:
        pytest.skip(f"TVM does not run it: {type(error).__name__}")


def _imported(case: SuiteCase) -> Any:
    try:
        return from_onnx(case.model())
    except Exception as error:
        pytest.skip(f"TVM's importer refuses it: {type(error).__name__}")
