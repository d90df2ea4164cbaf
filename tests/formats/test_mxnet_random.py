"""Random operators of MXNet: exact densities, and draws judged by shape, dtype, range and moments.

ONNX Runtime 1.31 has none of the random operators of version 22, so models go to version 21.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, run_under
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.interpreter import run

OPSET = 21
COUNT = 40_000
DTYPES = ("float16", "float32", "float64")
Values = Mapping[str, np.ndarray]


def graph(op: str, names: Sequence[str] = (), heads: int = 1, **attrs: Any) -> Any:
    """A symbol of one node, whatever MXNet's own Python functions make of its attributes."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names]
    inputs = [[place, 0, 0] for place in range(len(names))]
    texts = {name: str(value) for name, value in attrs.items()}
    nodes.append({"op": op, "name": "node", "attrs": texts, "inputs": inputs})
    found = {
        "nodes": nodes,
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), head, 0] for head in range(heads)],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
    return import_mxnet().sym.load_json(json.dumps(found))


def engines(symbol: Any, feeds: Values, *, numpy: bool = True) -> list[list[np.ndarray]]:
    """The outputs of MXNet, of the interpreter and of ONNX Runtime."""
    shapes = {name: value.shape for name, value in feeds.items()}
    dtypes = {name: value.dtype.name for name, value in feeds.items()}
    model = serde.to_relay(symbol, input_shapes=shapes, input_dtypes=dtypes)
    given = {name: feeds[name] for name in model.meta.inputs}
    result = run(model.main, list(given.values()), mod=model.mod)
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    return [
        run_under(symbol, feeds, numpy=numpy),
        list(result) if isinstance(result, tuple) else [result],
        run_onnx(proto.SerializeToString(), given)[1],
    ]


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference of two empirical distribution functions (Kolmogorov, Smirnov)."""
    found, expected = np.sort(found.ravel()), np.sort(expected.ravel())
    places = np.concatenate([found, expected])
    sides = [np.searchsorted(each, places, side="right") / each.size for each in (found, expected)]
    return float(np.abs(sides[0] - sides[1]).max())


def alike(symbol: Any, feeds: Values | None = None, *, numpy: bool = True, each: int = 0) -> None:
    """Compare shapes, dtypes and the distributions of draws.

    Args:
        symbol: The graph.
        feeds: Values of its variables.
        numpy: Whether MXNet runs it with NumPy's shapes.
        each: How many of the last axes hold parameters, each with a distribution of its own.
    """
    theirs, *ours = engines(symbol, feeds or {}, numpy=numpy)
    for outputs in ours:
        assert len(outputs) == len(theirs)
        for found, expected in zip(outputs, theirs, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            assert np.isfinite(found.astype(np.float64)).all()
            lead = expected.ndim - each
            rows = [x.reshape(int(np.prod(x.shape[:lead])), -1).T for x in (found, expected)]
            for one, other in zip(*rows, strict=True):
                # Two draws of equal distribution exceed this once in 100,000 times.
                assert distance(one, other) < 2.5 * np.sqrt(2 / max(one.size, 1))


SPREADS: list[tuple[str, dict[str, float]]] = [
    ("uniform", {}),
    ("uniform", {"low": -3.0, "high": 5.0}),
    ("normal", {}),
    ("normal", {"loc": 2.0, "scale": 0.5}),
    ("gamma", {}),
    ("gamma", {"alpha": 0.3, "beta": 2.0}),
    ("gamma", {"alpha": 9.0, "beta": 0.5}),
    ("exponential", {}),
    ("exponential", {"lam": 4.0}),
    ("poisson", {}),
    ("poisson", {"lam": 7.5}),
    ("poisson", {"lam": 60.0}),
    ("poisson", {"lam": 0.0}),
    ("negative_binomial", {}),
    ("negative_binomial", {"k": 3, "p": 0.4}),
    ("negative_binomial", {"k": 20, "p": 0.3}),
    ("generalized_negative_binomial", {}),
    ("generalized_negative_binomial", {"mu": 3.0, "alpha": 0.4}),
    ("generalized_negative_binomial", {"mu": 3.0, "alpha": 0.0}),
]


@pytest.mark.parametrize(("name", "spread"), SPREADS)
def test_draws_of_a_shape(name: str, spread: dict[str, float]) -> None:
    alike(graph(f"_random_{name}", shape=(100, COUNT // 100), **spread))


@pytest.mark.parametrize(("name", "spread"), SPREADS)
def test_draws_like_a_tensor(name: str, spread: dict[str, float]) -> None:
    alike(graph(f"_random_{name}_like", ["x"], **spread), {"x": np.zeros((200, 200), "float32")})


@pytest.mark.parametrize("dtype", [*DTYPES, "None"])
@pytest.mark.parametrize("name", dict(SPREADS))
def test_dtypes_of_draws(name: str, dtype: str) -> None:
    alike(graph(f"_random_{name}", shape=(COUNT,), dtype=dtype), numpy=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", dict(SPREADS))
def test_dtypes_of_draws_like_a_tensor(name: str, dtype: str) -> None:
    alike(graph(f"_random_{name}_like", ["x"]), {"x": np.zeros(COUNT, dtype)})


@pytest.mark.parametrize("shape", [(), (0, 3), 7, (1, 1, 2)])
@pytest.mark.parametrize("name", dict(SPREADS))
def test_shapes_of_draws(name: str, shape: Any) -> None:
    symbol = graph(f"_random_{name}", shape=shape, ctx="cpu(0)")
    for found, expected in zip(*engines(symbol, {})[:2], strict=True):
        assert found.shape == expected.shape


@pytest.mark.parametrize("name", dict(SPREADS))
def test_draws_like_a_tensor_of_open_length(name: str) -> None:
    model = serde.to_relay(graph(f"_random_{name}_like", ["x"]), input_shapes={"x": ("n", 3)})
    fed = {"x": np.ones((500, 3), np.float32)}
    assert run(model.main, list(fed.values()), mod=model.mod).shape == (500, 3)
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    (found,) = run_onnx(proto.SerializeToString(), fed)[1]
    assert found.shape == (500, 3)
    assert found.std() > 0 or name == "negative_binomial"


@pytest.mark.parametrize("name", dict(SPREADS))
def test_draws_without_a_shape_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match="left to what uses it"):
        serde.to_relay(graph(f"_random_{name}"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "None"])
@pytest.mark.parametrize(("low", "high"), [(-3, 5), (0, 1), (7, 100), (-(2**31), 2**31 - 1)])
def test_randint(low: int, high: int, dtype: str) -> None:
    alike(graph("_random_randint", low=low, high=high, shape=(COUNT,), dtype=dtype))


def test_randint_of_too_many_integers_is_refused() -> None:
    symbol = graph("_random_randint", low=0, high=2**60, shape=(2,), dtype="int64")
    with pytest.raises(UnsupportedModelError, match=r"2\*\*53"):
        serde.to_relay(symbol)


SAMPLED: list[tuple[str, tuple[Sequence[float], ...]]] = [
    ("uniform", ([-1, 2, 0], [0, 5, 10])),
    ("normal", ([-1, 2, 0], [0.5, 5, 10])),
    ("gamma", ([0.5, 2, 20], [3, 1, 0.5])),
    ("exponential", ([0.5, 2, 20],)),
    ("poisson", ([0.5, 0, 20],)),
    ("negative_binomial", ([1, 2, 20], [0.5, 0.9, 0.3])),
    ("generalized_negative_binomial", ([1, 2, 20], [0.5, 0, 0.3])),
]


def parameters(given: tuple[Sequence[float], ...], dtype: str) -> dict[str, np.ndarray]:
    return {name: np.array(value, dtype) for name, value in zip("ab", given, strict=False)}


@pytest.mark.parametrize(("name", "given"), SAMPLED)
def test_samples_of_each_parameter(name: str, given: tuple[Sequence[float], ...]) -> None:
    feeds = parameters(given, "float32")
    symbol = graph(f"_sample_{name}", list(feeds), shape=(10, 1000))
    theirs, *ours = engines(symbol, feeds)
    for (found,) in ours:
        assert (found.shape, found.dtype) == ((3, 10, 1000), np.float32)
        for one, other in zip(found, theirs[0], strict=True):
            assert distance(one, other) < 2.5 * np.sqrt(2 / one.size)


@pytest.mark.parametrize("dtype", [*DTYPES, "None"])
@pytest.mark.parametrize("kind", [*DTYPES, "int32"])
@pytest.mark.parametrize("name", [name for name, _ in SAMPLED])
def test_dtypes_of_samples(name: str, kind: str, dtype: str) -> None:
    count = len(dict(SAMPLED)[name])
    feeds = dict(zip("ab"[:count], np.ones((2, 2), kind), strict=False))
    symbol = graph(f"_sample_{name}", list(feeds), shape=(4,), dtype=dtype)
    theirs, *ours = engines(symbol, feeds)
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)


@pytest.mark.parametrize("shape", [(), (4,), (4, 5), 3])
@pytest.mark.parametrize("name", [name for name, _ in SAMPLED])
def test_shapes_of_samples(name: str, shape: Any) -> None:
    count = len(dict(SAMPLED)[name])
    feeds = dict(zip("ab"[:count], np.full((2, 2, 3), 0.5, np.float32), strict=False))
    symbol = graph(f"_sample_{name}", list(feeds), shape=shape)
    theirs, *ours = engines(symbol, feeds, numpy=False)
    for (found,) in ours:
        assert (found.shape, found.dtype) == (theirs[0].shape, theirs[0].dtype)


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize("name", [name for name, _ in SAMPLED])
def test_samples_of_parameters_of_open_length(name: str, shape: Any) -> None:
    count = len(dict(SAMPLED)[name])
    feeds = dict(zip("ab"[:count], np.full((2, 5, 3), 0.5, np.float32), strict=False))
    symbol = graph(f"_sample_{name}", list(feeds), shape=shape)
    model = serde.to_relay(symbol, input_shapes=dict.fromkeys(feeds, ("n", 3)))
    assert run(model.main, list(feeds.values()), mod=model.mod).shape == (5, 3, *shape)
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    assert run_onnx(proto.SerializeToString(), feeds)[1][0].shape == (5, 3, *shape)


WEIGHTS = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "uint8"])
@pytest.mark.parametrize("get_prob", [False, True])
def test_sample_multinomial(dtype: str, get_prob: bool) -> None:
    symbol = graph(
        "_sample_multinomial", ["x"], 1 + get_prob, shape=(5000,), get_prob=get_prob, dtype=dtype
    )
    theirs, *ours = engines(symbol, {"x": WEIGHTS})
    for outputs in ours:
        places = outputs[0]
        assert (places.shape, places.dtype) == (theirs[0].shape, theirs[0].dtype)
        for row, weights in zip(places.astype(int), WEIGHTS, strict=True):
            counts = np.bincount(row, minlength=3) / 5000
            np.testing.assert_allclose(counts, weights, atol=0.03)
        if get_prob:
            assert outputs[1].dtype == theirs[1].dtype
            odds = np.log(np.take_along_axis(WEIGHTS, places.astype(int), 1))
            np.testing.assert_allclose(outputs[1], odds, rtol=1e-6)


@pytest.mark.parametrize("get_prob", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), 4, (4, 5), (0,)])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("kind", DTYPES)
def test_shapes_of_sample_multinomial(
    kind: str, lead: tuple[int, ...], shape: Any, get_prob: bool
) -> None:
    weights = np.broadcast_to(WEIGHTS[0], (*lead, 3)).astype(kind)
    symbol = graph("_sample_multinomial", ["x"], 1 + get_prob, shape=shape, get_prob=get_prob)
    theirs, *ours = engines(symbol, {"x": weights})
    for outputs in ours:
        assert [(x.shape, x.dtype) for x in outputs] == [(x.shape, x.dtype) for x in theirs]


@pytest.mark.parametrize("shape", [(), 4, (4, 5)])
def test_sample_multinomial_of_an_open_number_of_rows(shape: Any) -> None:
    symbol = graph("_sample_multinomial", ["x"], 2, shape=shape, get_prob=True)
    model = serde.to_relay(symbol, input_shapes={"x": ("n", 3)})
    wanted = (2, *((shape,) if isinstance(shape, int) else shape))
    assert run(model.main, [WEIGHTS], mod=model.mod)[1].shape == wanted
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    assert [x.shape for x in run_onnx(proto.SerializeToString(), {"x": WEIGHTS})[1]] == [wanted] * 2


def test_sample_multinomial_goes_back() -> None:
    symbol = graph("_sample_multinomial", ["x"], shape=(4000,))
    again, _ = serde.import_model(symbol, input_shapes={"x": (2, 3)})
    assert '"op": "_sample_multinomial"' in again.tojson()
    (found,) = run_under(again, {"x": WEIGHTS}, numpy=False)
    for row, weights in zip(found, WEIGHTS, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, weights, atol=0.03)


@pytest.mark.parametrize(
    ("op", "spread"),
    [
        ("_random_uniform", {"low": 1.0, "high": 2.0}),
        ("_random_normal", {"loc": 1.0}),
        ("_random_gamma", {"alpha": 3.0}),
        ("_random_poisson", {"lam": 3.0}),
    ],
)
def test_draws_go_back_as_they_came(op: str, spread: dict[str, float]) -> None:
    symbol = graph(op, shape=(COUNT,), **spread)
    again, _ = serde.import_model(symbol)
    assert f'"op": "{op}"' in again.tojson()
    theirs, ours = (run_under(each, {}, numpy=False)[0] for each in (symbol, again))
    assert distance(ours, theirs) < 2.5 * np.sqrt(2 / COUNT)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (1, 4), (6, 1), (2, 2, 3)])
@pytest.mark.parametrize("kind", ["float32", "int32", "int64"])
def test_shuffle(shape: tuple[int, ...], kind: str) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    model = serde.to_relay(graph("_shuffle", ["x"]), input_shapes={"x": shape},
                           input_dtypes={"x": kind})  # fmt: skip
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    (theirs,) = run_onnx(proto.SerializeToString(), {"x": x})[1]
    for found in (run(model.main, [x], mod=model.mod), theirs):
        assert (found.shape, found.dtype) == (x.shape, x.dtype)
        order = found.reshape(len(x), -1)[:, :1].ravel().argsort()
        np.testing.assert_array_equal(found[order], x)


def test_every_order_is_as_likely() -> None:
    model = serde.to_relay(graph("_shuffle", ["x"]), input_shapes={"x": ("n",)})
    x = np.arange(5, dtype=np.float32)
    found = np.array([run(model.main, [x], mod=model.mod) for _ in range(2000)])
    for place in range(5):
        counts = np.bincount(found[:, place].astype(int), minlength=5)
        np.testing.assert_allclose(counts / 2000, 0.2, atol=0.05)


def test_shuffle_of_an_open_length() -> None:
    model = serde.to_relay(graph("_shuffle", ["x"]), input_shapes={"x": ("n", 2, 3)})
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    x = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    (found,) = run_onnx(proto.SerializeToString(), {"x": x})[1]
    np.testing.assert_array_equal(found[found[:, 0, 0].argsort()], x)
    assert (found != x).any()


@pytest.mark.parametrize(("range_max", "shape"), [(6, (3000, 2)), (50, (1000, 7)), (4, (2000, 4))])
def test_sample_unique_zipfian(range_max: int, shape: tuple[int, int]) -> None:
    symbol = graph("_sample_unique_zipfian", heads=2, range_max=range_max, shape=shape)
    theirs, *ours = engines(symbol, {})
    for outputs in ours:
        for found, expected in zip(outputs, theirs, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert all(len(set(row)) == shape[1] for row in outputs[0].tolist())
        for place in range(shape[1]):
            pair = outputs[0][:, place], theirs[0][:, place]
            assert distance(*pair) < 2.5 * np.sqrt(2 / shape[0])
        assert distance(outputs[1], theirs[1]) < 2.5 * np.sqrt(2 / shape[0])


@pytest.mark.parametrize("shape", [(2, 1), (2, 5)])
def test_few_zipfian_numbers(shape: tuple[int, int]) -> None:
    symbol = graph("_sample_unique_zipfian", heads=2, range_max=5, shape=shape)
    for found, expected in zip(*engines(symbol, {})[:2], strict=True):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("shape", [None, (3,), (2, 9)])
def test_zipfian_numbers_of_other_shapes_are_refused(shape: Any) -> None:
    attrs = {} if shape is None else {"shape": shape}
    with pytest.raises(UnsupportedModelError, match="rows of 1 to 6"):
        serde.to_relay(graph("_sample_unique_zipfian", range_max=6, **attrs))


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


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 3.0, shape)


DENSITIES = {
    "uniform": ([0.0, -2.0], [2.0, 3.5]),
    "normal": ([0.5, -2.0], [2.0, 3.5]),
    "exponential": ([0.5, 2.0],),
    "gamma": ([0.5, 2.0], [1.5, 3.0]),
    "poisson": ([0.5, 2.0],),
    "negative_binomial": ([1.5, 4.0], [0.3, 0.9]),
    "generalized_negative_binomial": ([1.5, 4.0], [0.3, 2.0]),
}
"""Parameters of two rows."""


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", DENSITIES)
def test_densities(name: str, kind: str, is_log: bool) -> None:
    params = [np.array(each, kind) for each in DENSITIES[name]]
    samples = drawn(1, 2, 7)
    if name in ("poisson", "negative_binomial", "generalized_negative_binomial"):
        samples = np.floor(samples * 3)
    feeds = dict(zip("xab", [samples.astype(kind), *params], strict=False))
    # MXNet rounds each step to float16, and has the root of 2 pi as a float32.
    narrow = 2e-8 if name == "normal" else 1e-11
    bound = {"float16": 1e-2, "float32": 5e-6, "float64": narrow}[kind]
    agree(graph(f"_random_pdf_{name}", list(feeds), is_log=is_log), feeds, tolerance=bound)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", DENSITIES)
def test_shapes_of_densities(name: str, shape: tuple[int, ...]) -> None:
    params = [drawn(place, 2, 3) / 4 + place for place in range(len(DENSITIES[name]))]
    if name == "negative_binomial":
        params[1] -= 1
    arrays = [drawn(3, *shape), *params]
    feeds = {key: value.astype("float32") for key, value in zip("xab", arrays, strict=False)}
    agree(graph(f"_random_pdf_{name}", list(feeds)), feeds, tolerance=5e-6)


OUTSIDE = {
    "uniform": ([-9.0, 9.0], 0.0, 1.0),
    "exponential": ([-1.0, 0.0], 2.0),
    "gamma": ([-1.0, 0.0], 0.5, 1.0),
    "poisson": ([-1.0, 3.0], 2.0),
    "negative_binomial": ([-1.0, 0.0], 2.0, 1.0),
    "generalized_negative_binomial": ([-1.0, 1.0], 2.0, 0.0),
}


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("name", OUTSIDE)
def test_densities_outside_of_their_range(name: str, is_log: bool) -> None:
    samples, *params = OUTSIDE[name]
    arrays = [np.array([samples], "f"), *(np.array([each], "f") for each in params)]
    feeds = dict(zip("xab", arrays, strict=False))
    agree(graph(f"_random_pdf_{name}", list(feeds), is_log=is_log), feeds, tolerance=5e-6)


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (2, 5, 6, 3)])
@pytest.mark.parametrize("kind", DTYPES)
def test_density_of_dirichlet(kind: str, shape: tuple[int, ...], is_log: bool) -> None:
    samples = drawn(2, *shape)
    samples /= samples.sum(-1, keepdims=True)
    lead = shape[:1] if len(shape) > 2 else ()
    feeds = {"x": samples.astype(kind), "a": drawn(5, *lead, 3).astype(kind)}
    bound = {"float16": 1e-2, "float32": 5e-6, "float64": 1e-11}[kind]
    agree(graph("_random_pdf_dirichlet", ["x", "a"], is_log=is_log), feeds, tolerance=bound)


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_of_an_open_number_of_samples(name: str) -> None:
    arrays = [drawn(4, 2, 5), *(np.array(each) for each in DENSITIES[name])]
    feeds = {key: value.astype("float32") for key, value in zip("xab", arrays, strict=False)}
    shapes = {key: (2, "n") if key == "x" else (2,) for key in feeds}
    model = serde.to_relay(graph(f"_random_pdf_{name}", list(feeds)), input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx")
    (expected,) = run_under(graph(f"_random_pdf_{name}", list(feeds)), feeds, numpy=False)
    (found,) = run_onnx(proto.SerializeToString(), feeds)[1]
    np.testing.assert_allclose(found, expected, rtol=5e-6)
