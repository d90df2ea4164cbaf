"""Random operators of MXNet: exact densities, and draws judged by shape, dtype, range and moments.

ONNX Runtime 1.32 has none of the random operators of version 22, so models go to version 21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.mxnet_check import agree, run_under
from support.mxnet_draws import COUNT, DTYPES, OPSET, alike, distance, engines, graph
from support.runtime import run_onnx

import serde
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

pytestmark = pytest.mark.wide

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


@pytest.mark.parametrize("seed", [1, 11, 22])
@pytest.mark.parametrize("lam", [12.0, 60.0])
def test_what_decides_on_a_candidate_is_no_function_of_it(lam: float, seed: int) -> None:
    """The numbers of two nodes of ONNX Runtime have for these seeds a simple ratio."""
    model = serde.to_relay(graph("_random_poisson", lam=lam, shape=(COUNT,)))
    proto = serde.from_relay(model, format="onnx", opset=OPSET)
    onnxruntime.set_seed(seed)
    found = run_onnx(proto.SerializeToString(), {})[1][0]
    expected = np.random.default_rng(15).poisson(lam, COUNT)
    assert distance(found, expected) < 2.5 * np.sqrt(2 / COUNT)


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
