"""NumPy's random operators in MXNet: draws judged by shape, dtype and distribution.

ONNX Runtime 1.32 has none of the random operators of version 22, so models go to version 21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_draws import COUNT, DTYPES, OPSET, Values, alike, distance, engines, graph
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

pytestmark = pytest.mark.wide

ARRAYS: list[tuple[str, dict[str, float | None]]] = [
    ("uniform", {"low": -1.0, "high": 3.0}),
    ("uniform_n", {"low": -1.0, "high": 3.0}),
    ("normal", {"loc": 2.0, "scale": 3.0}),
    ("normal_n", {"loc": 2.0, "scale": 3.0}),
    ("gamma", {"shape": 0.7, "scale": 3.0}),
    ("gumbel", {"loc": 1.0, "scale": 2.0}),
    ("logistic", {"loc": 1.0, "scale": 2.0}),
    ("exponential", {"scale": 2.0}),
    ("rayleigh", {"scale": 2.0}),
    ("pareto", {"a": 3.0}),
    ("powerd", {"a": 3.0}),
    ("weibull", {"a": 2.0}),
]
NAMES = dict(ARRAYS)
EACH = ("uniform_n", "normal_n")
"""Samplers whose size comes in front of that of their parameters."""


@pytest.mark.parametrize(("name", "given"), ARRAYS)
def test_numbers_of_a_size(name: str, given: dict[str, float]) -> None:
    where = {} if name == "powerd" else {"ctx": "cpu"}
    alike(graph(f"_npi_{name}", size=(200, 200), **where, **given))


@pytest.mark.parametrize("size", [(), None, (0, 2), 3, (2, 3)])
@pytest.mark.parametrize(("name", "given"), ARRAYS)
def test_sizes_of_numbers(name: str, given: dict[str, float], size: Any) -> None:
    theirs, *ours = engines(graph(f"_npi_{name}", size=size, **given), {})
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)


@pytest.mark.parametrize("name", ["exponential", "rayleigh"])
def test_default_scale(name: str) -> None:
    alike(graph(f"_npi_{name}", size=(COUNT,)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["uniform", "uniform_n", "normal", "normal_n", "gamma"])
def test_dtypes_of_numbers(name: str, dtype: str) -> None:
    alike(graph(f"_npi_{name}", size=(COUNT,), dtype=dtype, **NAMES[name]))


def tensors(name: str, which: Sequence[str], *values: Any) -> tuple[dict[str, Any], Values]:
    """The attributes of a sampler of which some parameters are tensors, and these."""
    attrs = {**NAMES[name], **dict.fromkeys(which)}
    feeds = {f"x{place}": np.array(value) for place, value in enumerate(values)}
    return attrs, feeds


ONE_TENSOR = [(name, which) for name, given in ARRAYS for which in given]


@pytest.mark.parametrize("kind", [*DTYPES, "int32"])
@pytest.mark.parametrize(("name", "which"), ONE_TENSOR)
def test_a_parameter_of_each_column(name: str, which: str, kind: str) -> None:
    if (name, kind) == ("gamma", "int32"):
        pytest.skip("MXNet takes no integers as parameters of gamma numbers")
    attrs, feeds = tensors(name, [which], np.array([1, 2, 3], kind))
    size = (10_000,) if name in EACH else (10_000, 3)
    alike(graph(f"_npi_{name}", list(feeds), size=size, **attrs), feeds, each=1)


@pytest.mark.parametrize("name", [name for name, given in ARRAYS if len(given) == 2])
def test_two_tensors_broadcast(name: str) -> None:
    both = list(NAMES[name])
    attrs, feeds = tensors(name, both, np.array([[-1], [0]], "f"), np.array([1, 2, 3], "f"))
    if name == "gamma":
        feeds = {**feeds, "x0": np.array([[0.5], [2]], "f")}
    size = (10_000,) if name in EACH else (10_000, 2, 3)
    symbol = graph(f"_npi_{name}", list(feeds), size=size, **attrs)
    alike(symbol, feeds, each=2)


@pytest.mark.parametrize(("name", "which"), ONE_TENSOR)
def test_a_number_for_each_parameter(name: str, which: str) -> None:
    attrs, feeds = tensors(name, [which], np.ones((2, 3), np.float32))
    symbol = graph(f"_npi_{name}", list(feeds), **attrs)
    theirs, *ours = engines(symbol, feeds)
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)
    model = serde.to_relay(symbol, input_shapes={"x0": ("n", 3)})
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    assert run_onnx(proto.SerializeToString(), feeds)[1][0].shape == (2, 3)


@pytest.mark.parametrize("name", EACH)
def test_a_size_before_parameters_of_open_length(name: str) -> None:
    attrs, feeds = tensors(name, list(NAMES[name])[:1], np.ones((2, 3), np.float32))
    symbol = graph(f"_npi_{name}", list(feeds), size=(4, 5), **attrs)
    model = serde.to_relay(symbol, input_shapes={"x0": ("n", 3)})
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    assert run_onnx(proto.SerializeToString(), feeds)[1][0].shape == (4, 5, 2, 3)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(EACH)))
def test_a_size_below_that_of_the_parameters_is_refused(name: str) -> None:
    which = list(NAMES[name])[:1]
    attrs, _ = tensors(name, which, np.ones((2, 3), np.float32))
    with pytest.raises(UnsupportedModelError, match="parameters that are larger"):
        serde.to_relay(graph(f"_npi_{name}", ["x0"], size=(3,), **attrs),
                       input_shapes={"x0": (2, 3)})  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_too_many_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match="1 tensors for 0 parameters"):
        serde.to_relay(graph(f"_npi_{name}", ["x"], size=(3,), **NAMES[name]),
                       input_shapes={"x": (3,)})  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", *DTYPES, "int32", "uint8"])
@pytest.mark.parametrize("is_logit", [False, True])
def test_bernoulli(is_logit: bool, dtype: str) -> None:
    odds = {"prob": None, "logit": -0.4} if is_logit else {"prob": 0.3, "logit": None}
    alike(graph("_npi_bernoulli", size=(COUNT,), dtype=dtype, is_logit=is_logit, **odds))


@pytest.mark.parametrize("size", [None, (10_000, 3)])
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("is_logit", [False, True])
def test_bernoulli_by_a_tensor(is_logit: bool, kind: str, size: Any) -> None:
    feeds = {"x": np.array([0.0, 0.3, 1.0], kind)}
    symbol = graph("_npi_bernoulli", ["x"], prob=None, logit=None, is_logit=is_logit, size=size)
    if size is not None:
        alike(symbol, feeds, each=1)
    theirs, *ours = engines(symbol, feeds)
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)


@pytest.mark.parametrize("size", [None, (), (5,), (4, 5)])
@pytest.mark.parametrize("n", [0, 1, 10])
def test_shapes_of_multinomial(n: int, size: Any) -> None:
    symbol = graph("_npi_multinomial", n=n, pvals=(0.2, 0.3, 0.5), size=size)
    theirs, *ours = engines(symbol, {})
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)
        np.testing.assert_array_equal(found.sum(-1), n)


@pytest.mark.parametrize("pvals", [(0.2, 0.3, 0.5), (0.2, 0.3), (0.0, 1.0, 0.0)])
def test_multinomial(pvals: tuple[float, ...]) -> None:
    alike(graph("_npi_multinomial", n=12, pvals=pvals, size=(COUNT,)), each=1)


@pytest.mark.parametrize("kind", DTYPES)
def test_multinomial_by_a_tensor(kind: str) -> None:
    feeds = {"x": np.array([0.25, 0.25, 0.5], kind)}
    alike(graph("_npi_multinomial", ["x"], n=7, size=(20_000,)), feeds, each=1)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("size", [None, (), (3,), (2, 2), (5,)])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_shapes_of_choice(whole: bool, weighted: bool, size: Any, replace: bool) -> None:
    """Choosing from a tensor gives places, too."""
    feeds = {} if whole else {"a": np.arange(5, dtype=np.float32)}
    if weighted:
        feeds = {**feeds, "p": np.array([0.1, 0.1, 0.2, 0.2, 0.4], np.float32)}
    attrs = {"a": 5 if whole else None, "size": size, "replace": replace, "weighted": weighted}
    theirs, *ours = engines(graph("_npi_choice", list(feeds), **attrs), feeds)
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)
        assert replace or len(set(found.ravel().tolist())) == found.size
        assert 0 <= found.min() <= found.max() < 5


@pytest.mark.parametrize("weights", [None, (0.1, 0.0, 0.2, 0.3, 0.4)])
def test_choice_with_repetition(weights: Any) -> None:
    feeds = {} if weights is None else {"p": np.array(weights, np.float32)}
    attrs = {"a": 5, "size": (COUNT,), "weighted": weights is not None}
    alike(graph("_npi_choice", list(feeds), **attrs), feeds)


@pytest.mark.parametrize("weights", [None, (0.1, 0.05, 0.15, 0.3, 0.4)])
def test_choice_without_repetition(weights: Any) -> None:
    """Each place of the result has the distribution that MXNet gives it."""
    feeds = {} if weights is None else {"p": np.array(weights, np.float32)}
    attrs = {"a": 5, "size": (3,), "replace": False, "weighted": weights is not None}
    symbol = graph("_npi_choice", list(feeds), **attrs)
    model = serde.to_relay(symbol, input_shapes={name: x.shape for name, x in feeds.items()})
    mx = import_mxnet()
    with mx.util.np_shape(True):
        bound = symbol.bind(mx.cpu(), {name: mx.nd.array(x) for name, x in feeds.items()})
        theirs = np.array([bound.forward()[0].asnumpy() for _ in range(2000)])
    given = [feeds[name] for name in model.meta.inputs]
    ours = np.array([run(model.main, given, mod=model.mod) for _ in range(2000)])
    for one, other in zip(ours.T, theirs.T, strict=True):
        assert distance(one, other) < 2.5 * np.sqrt(2 / 2000)


def test_more_choices_than_places_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="9 of 5 places"):
        serde.to_relay(graph("_npi_choice", a=5, size=(9,), replace=False))
