"""What random graphs found, one small graph each, judged by what the format belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.differential_judges import JUDGES

import serde
import serde.relay as relay
from serde.core.limits import spending
from serde.core.optional import is_installed
from serde.core.weights import ArrayWeight
from serde.errors import TypeInferenceError, UnsupportedModelError
from serde.mxnet.params import write_params
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call
from serde.relay.transform import InferType

NUMBERS = np.array([0.25, -0.5, 0.75], np.float32)


def run(
    form: str,
    body: Expr,
    feeds: dict[Var, np.ndarray],
    folder: Path,
    weights: dict[Var, np.ndarray] | None = None,
    names: tuple[str, ...] = ("y",),
) -> list[Any]:
    """Return what a graph gives that is written in a format."""
    if not is_installed(JUDGES[form].package):
        pytest.skip(f"{JUDGES[form].package} is not installed")
    held = weights or {}
    mod = InferType()(relay.IRModule.from_expr(relay.Function([*feeds, *held], body)))
    params = {variable.name_hint: ArrayWeight(value) for variable, value in held.items()}
    meta = ModelMeta(tuple(each.name_hint for each in feeds), names)
    model = RelayModel(mod, params, meta)
    path = JUDGES[form].write(model, folder)
    return JUDGES[form].run(path, model, list(feeds.values()))


def test_mxnet_loads_parameters_with_a_scalar_among_them(tmp_path: Path) -> None:
    from serde.compat import import_mxnet

    mx = import_mxnet()
    path = tmp_path / "net.params"
    write_params({"arg:a": ArrayWeight(NUMBERS), "arg:b": ArrayWeight(np.float32(2))}, path)
    with mx.util.np_shape(True):
        found = mx.nd.load(str(path))
        assert found["arg:a"].asnumpy().tolist() == NUMBERS.tolist()
        assert found["arg:b"].asnumpy() == 2


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (relay.serde.elu, 0.75),
        (lambda x: relay.nn.leaky_relu(x, 0.5), 0.75),
        (relay.serde.selu, 0.75 * 1.0507009873554805),
    ],
    ids=["elu", "leaky_relu", "selu"],
)
def test_mxnet_computes_leaky_units_of_scalars(build: Any, expected: float, tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,))
    (found,) = run("mxnet", build(relay.max(x)), {x: NUMBERS}, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_mxnet_stacks_scalars(tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,))
    body = relay.stack([relay.max(x), relay.min(x)], axis=0)
    (found,) = run("mxnet", body, {x: NUMBERS}, tmp_path)
    np.testing.assert_array_equal(found, np.float32([0.75, -0.5]))


@pytest.mark.parametrize("places", [3, (1, 2)])
def test_mxnet_splits_bools(places: Any, tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 3), dtype="bool")
    given = np.array([[True, False, True], [False, False, True]])
    (found,) = run("mxnet", relay.split(x, places, axis=1)[2], {x: given}, tmp_path)
    np.testing.assert_array_equal(found, [[True], [True]])


def test_mxnet_sums_over_no_axis_of_open_length(tmp_path: Path) -> None:
    """An axis of three that is open is not one to be summed over because three is wanted."""
    x = relay.var("x", shape=(relay.Any(), 3))
    with pytest.raises(UnsupportedModelError, match="strided_slice"):
        run(
            "mxnet",
            relay.collapse_sum_to(x, relay.const(np.array([3, 1]))),
            {x: np.ones((3, 3), np.float32)},
            tmp_path,
        )


@pytest.mark.wide
def test_programs_hold_integers_of_16_bits_where_core_ml_reads_them(tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,))
    table = relay.const(np.array([300, -7, 5], np.int16))
    body = relay.add(x, relay.cast(relay.take(table, relay.cast(x, "int32"), 0), "float32"))
    feeds = {x: np.array([2, 0, 1], np.float32)}
    (found,) = run("coreml", body, feeds, tmp_path)
    np.testing.assert_array_equal(found, np.float32([7, 300, -6]))


@pytest.mark.wide
@pytest.mark.parametrize("form", ["coreml", "mlmodel"])
def test_an_output_that_a_format_has_no_dtype_for_is_refused(form: str, tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,))
    four = relay.serde.quantize_linear(
        relay.const(NUMBERS), relay.const(np.float32(0.25)), None, out_dtype="int4"
    )
    with pytest.raises(UnsupportedModelError, match="int4"):
        run(form, relay.Tuple([relay.tanh(x), four]), {x: NUMBERS}, tmp_path)


def _normalized(x: Expr, *operands: Expr) -> Expr:
    return relay.nn.batch_norm(x, *operands)[0]


@pytest.mark.wide
def test_pytorch_takes_statistics_that_are_shared_or_computed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    x, mean = relay.var("x", shape=(2, 4)), relay.var("mean", shape=(4,))
    w, b = (relay.var(name, shape=(4,)) for name in ("w", "b"))
    scale, shift = np.float32([1, 2, 3, 4]), np.float32([0, 1, 0, 1])
    weights = {w: scale, b: shift}
    for center, given in ((mean, np.float32([1, 1, 2, 2])), (b, None)):
        feeds = {x: data, **({mean: given} if given is not None else {})}
        body = _normalized(x, w, b, center, w)
        (found,) = run("torch", body, feeds, tmp_path, weights)
        at = shift if given is None else given
        expected = (data - at) / np.sqrt(scale + 1e-5) * scale + shift
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.wide
def test_pytorch_pools_windows_longer_than_an_axis(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    x = relay.var("x", shape=(1, 1, 2, 1, 2))
    data = np.float32([[[[[1, 2]], [[3, 4]]]]])
    body = relay.nn.avg_pool3d(x, (1, 3, 1), padding=(0, 1, 0))
    (found,) = run("torch", body, {x: data}, tmp_path)
    np.testing.assert_allclose(found, data)


def test_a_zero_point_makes_no_matrix_longer() -> None:
    a, b = (relay.var(n, shape=s, dtype="uint8") for n, s in (("a", (1, 4)), ("b", (4, 2))))
    point = relay.var("p", shape=(3, 1), dtype="uint8")
    with pytest.raises(TypeInferenceError, match="does not fit"):
        relay.serde.matmul_integer(a, b, point, None)


def test_a_bare_reason_is_told_as_a_refusal(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2,), dtype="bfloat16")
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], relay.add(x, x))))
    with pytest.raises(UnsupportedModelError):
        serde.from_relay(mod, format="mxnet", path=tmp_path / "net-symbol.json")


@pytest.mark.parametrize(
    ("shape", "reps"),
    [((2, 3, 3), (2, 2, 2)), ((3,), (2, 2, 2, 2)), ((2, 1, 2, 3), (1, 2, 2, 2))],
    ids=["three_axes", "new_axes", "behind_a_kept_one"],
)
def test_mxnet_tiles_many_axes(
    shape: tuple[int, ...], reps: tuple[int, ...], tmp_path: Path
) -> None:
    """MXNet itself refuses the first and the last in one step, and gives the second wrongly."""
    x = relay.var("x", shape=shape)
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (found,) = run("mxnet", relay.tile(x, reps), {x: given}, tmp_path)
    np.testing.assert_array_equal(found, np.tile(given, reps))


@pytest.mark.parametrize(
    ("have", "wanted"),
    [((1, 2, 1, 2, 1, 2), (2,) * 6), ((1,) * 7 + (3,), (2, 1, 2, 1, 2, 1, 2, 3))],
    ids=["alternating", "lengths_of_one_between"],
)
def test_mxnet_broadcasts_many_axes(
    have: tuple[int, ...], wanted: tuple[int, ...], tmp_path: Path
) -> None:
    x, like = relay.var("x", shape=have), relay.var("like", shape=wanted)
    given, other = np.arange(np.prod(have), dtype=np.float32).reshape(have), np.ones(wanted, "f")
    body = relay.Tuple([relay.broadcast_to(x, wanted), relay.broadcast_to_like(x, like)])
    for found in run("mxnet", body, {x: given, like: other}, tmp_path, names=("y", "z")):
        np.testing.assert_array_equal(found, np.broadcast_to(given, wanted))


def test_mxnet_computes_over_six_axes_in_turn(tmp_path: Path) -> None:
    left, right = (2, 1, 2, 1, 2, 1), (1, 3, 1, 3, 1, 3)
    a, b = relay.var("a", shape=left), relay.var("b", shape=right)
    total = relay.add(a, b)
    chosen = relay.where(relay.less(a, b), a, b)
    body = relay.Tuple([total, chosen, relay.sum(total, (0, 2, 4)), relay.max(total, (1, 3, 5))])
    one = np.arange(8, dtype=np.float32).reshape(left)
    two = np.arange(27, dtype=np.float32).reshape(right) / 4
    found = run("mxnet", body, {a: one, b: two}, tmp_path, names=("t", "u", "v", "w"))
    np.testing.assert_array_equal(found[0], one + two)
    np.testing.assert_array_equal(found[1], np.where(one < two, one, two))
    np.testing.assert_allclose(found[2], (one + two).sum((0, 2, 4)), rtol=1e-6)
    np.testing.assert_array_equal(found[3], (one + two).max((1, 3, 5)))


@pytest.mark.parametrize(
    "scalar",
    [
        pytest.param(False, id="mxnet_shapes", marks=pytest.mark.wide),
        pytest.param(True, id="numpy_shapes"),
    ],
)
@pytest.mark.wide
def test_mxnet_goes_on_behind_lengths_that_values_decide(scalar: bool, tmp_path: Path) -> None:
    """Executors of MXNet's refuse the sum, or take all to be empty; what runs Gluon does not."""
    x = relay.var("x", shape=(3, 2))
    places = relay.cast(relay.argwhere(x), "float32")
    outputs = [relay.add(places, relay.const([[0.5, 0.25]]))]
    if scalar:
        outputs.append(relay.sum(x))
    given = np.float32([[0, 1], [0, 0], [2, 3]])
    names = ("y", "z")[: len(outputs)]
    found, *_ = run("mxnet", relay.Tuple(outputs), {x: given}, tmp_path, names=names)
    np.testing.assert_array_equal(found, np.argwhere(given) + np.float32([0.5, 0.25]))
    source, target = tmp_path / "mxnet-symbol.json", tmp_path / "net.relay"
    report = serde.convert(source, target, input_shapes={"x": (3, 2)}, check=True)
    assert "mxnet" in report.engines[0]


@pytest.mark.parametrize("backwards", [False, True])
def test_mxnet_walks_along_vectors_among_scalars(backwards: bool, tmp_path: Path) -> None:
    """To MXNet, a slice of a vector has an axis, and so has what is stacked to one."""
    x = relay.var("x", shape=(3,))
    state, part = relay.var("state", shape=()), relay.var("part", shape=())
    total = relay.add(state, part)
    step = relay.Function([state, part], relay.Tuple([total, total, relay.negative(part)]))
    ways = {"reverse": (backwards,), "out_reverse": (backwards, False)}
    found = call("serde.scan", [relay.max(x)], [x], [], body=step, axes=(0,), **ways)
    body = relay.Tuple([relay.TupleGetItem(found, place) for place in range(3)])
    last, sums, turned = run("mxnet", body, {x: NUMBERS}, tmp_path, names=("a", "b", "c"))
    walked = NUMBERS[::-1] if backwards else NUMBERS
    wanted = walked.cumsum() + NUMBERS.max()
    assert last == wanted[-1]
    np.testing.assert_array_equal(sums, wanted[::-1] if backwards else wanted)
    np.testing.assert_array_equal(turned, -walked)


def test_mxnet_repeats_scalars(tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,))
    number, state = relay.var("i", shape=(), dtype="int64"), relay.var("state", shape=())
    following = relay.add(state, relay.cast(number, "float32"))
    step = relay.Function([number, state], relay.Tuple([relay.const(True), following, following]))
    found = call("serde.loop", relay.const(3, "int64"), None, [relay.max(x)], [], body=step)
    body = relay.Tuple([relay.TupleGetItem(found, place) for place in range(2)])
    last, stacked = run("mxnet", body, {x: NUMBERS}, tmp_path, names=("a", "b"))
    assert last == 3.75
    np.testing.assert_array_equal(stacked, [0.75, 1.75, 3.75])


@pytest.mark.parametrize("activation", [relay.abs, relay.exp, relay.nn.relu, relay.sigmoid])
@pytest.mark.parametrize("layer", ["dense", "conv"])
def test_mxnet_keeps_results_beside_those_of_their_activations(
    layer: str, activation: Any, tmp_path: Path
) -> None:
    """Its executors fuse the two, and then give one of them in the place of both."""
    shape = {"dense": (2, 3), "conv": (1, 3, 4, 4)}[layer]
    weight_shape = {"dense": (4, 3), "conv": (4, 3, 1, 1)}[layer]
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight_shape)
    generator = np.random.default_rng(5)
    given = generator.normal(size=shape).astype(np.float32)
    weight = generator.normal(size=weight_shape).astype(np.float32)
    one = relay.nn.dense(x, w) if layer == "dense" else relay.nn.conv2d(x, w)
    body = relay.Tuple([one, activation(one)])
    names = ("y", "z")
    found, other = run("mxnet", body, {x: given}, tmp_path, {w: weight}, names=names)
    wanted = np.einsum("ij...,kj->ik...", given, weight.reshape(4, 3))
    functions = {"abs": np.abs, "exp": np.exp, "relu": lambda a: np.maximum(a, 0)}
    name = activation.__name__
    function = functions.get(name, lambda a: 1 / (1 + np.exp(-a)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other, function(wanted), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kept", ["conv norm", "norm conv", "clip norm", "norm clip", "conv conv norm", "clip norm conv"]
)
def test_mxnet_keeps_results_beside_those_of_their_normalisation(kept: str, tmp_path: Path) -> None:
    """Its executors fuse a convolution with its normalisation, and these with a bound."""
    x, w = relay.var("x", shape=(1, 3, 4, 4)), relay.var("w", shape=(4, 3, 1, 1))
    scales = [relay.var(name, shape=(4,)) for name in ("gamma", "beta", "mean", "variance")]
    generator = np.random.default_rng(5)
    given = generator.normal(size=(1, 3, 4, 4)).astype(np.float32)
    weight = generator.normal(size=(4, 3, 1, 1)).astype(np.float32)
    gamma, beta, mean, variance = generator.uniform(0.5, 2, (4, 4, 1, 1)).astype(np.float32)
    held = map(np.ravel, (gamma, beta, mean, variance))
    conv = relay.nn.conv2d(x, w)
    norm = relay.nn.batch_norm(conv, *scales)[0]
    nodes = {"conv": conv, "norm": norm, "clip": relay.clip(norm, 0.0, 1.0)}
    body = relay.Tuple([nodes[each] for each in kept.split()])
    weights = {w: weight, **dict(zip(scales, held, strict=True))}
    names = tuple("abc"[: len(kept.split())])
    found = run("mxnet", body, {x: given}, tmp_path, weights, names=names)
    product = np.einsum("ijhw,kj->ikhw", given, weight.reshape(4, 3))
    normal = (product - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    wanted = {"conv": product, "norm": normal, "clip": normal.clip(0, 1)}
    for result, name in zip(found, kept.split(), strict=True):
        np.testing.assert_allclose(result, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("place", ["behind", "in a branch", "in a loop"])
def test_mxnet_runs_bodies_beside_what_has_no_gradient(place: str, tmp_path: Path) -> None:
    """Gluon, which runs branches and loops, asks for gradients of everything."""
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(2, 3))
    begin, end, strides = (relay.const([each], "int64") for each in (0, 1, 1))

    def fill(data: Expr) -> Expr:
        ones = relay.const(np.ones((1, *data.type.shape[1:]), np.float32))
        return relay.strided_set(data, ones, begin, end, strides)

    positive = relay.greater(relay.max(x), relay.const(0.0))
    if place == "in a loop":
        row = relay.var("row", shape=(3,))
        step = relay.Function([row], relay.Tuple([fill(row)]))
        body = relay.TupleGetItem(call("serde.scan", (), (y,), (), body=step), 0)
    else:
        outside, inside = (fill, relay.exp) if place == "behind" else (relay.exp, fill)
        body = outside(relay.If(positive, inside(y), relay.negative(y)))
    rows = np.stack([NUMBERS, NUMBERS])
    (found,) = run("mxnet", body, {x: NUMBERS, y: rows}, tmp_path)
    wanted = {
        "behind": [[1, 1, 1], np.exp(NUMBERS)],
        "in a branch": np.exp([[1, 1, 1], NUMBERS]),
        "in a loop": [[1, -0.5, 0.75], [1, -0.5, 0.75]],
    }
    np.testing.assert_allclose(found, wanted[place], rtol=1e-5)


def test_networks_bound_a_product_of_truths(tmp_path: Path) -> None:
    """A weight of bool stands for its int32, as both are held as floats."""
    x, held = relay.var("x", shape=(3,)), relay.var("held", shape=(1,), dtype="bool")
    axis = relay.clip(relay.cumprod(held, dtype="int32"), 1.0, 1.0)
    rows = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    squeezed = call("dyn.squeeze", relay.const(rows), relay.cast(axis, "int64"))
    body = relay.Tuple([squeezed, relay.exp(x)])
    weights = {held: np.zeros(1, np.bool_)}
    found, _ = run("mlmodel", body, {x: NUMBERS}, tmp_path, weights, names=("y", "z"))
    np.testing.assert_array_equal(found, rows[:, 0])


def test_coreml_counts_windows_apart_from_what_is_in_front_of_them(tmp_path: Path) -> None:
    """Those of each block cost no more nodes than those of the first."""
    x = relay.var("x", shape=(1, 4, 6, 5))
    body: Expr = x
    for _ in range(20):
        body = relay.reshape(relay.abs(body), [1, 2, 2, 3, 2, 5])
        body = relay.reshape(relay.transpose(body, [0, 2, 4, 1, 3, 5]), [1, 4, 6, 5])
    given = np.random.default_rng(5).normal(size=(1, 4, 6, 5)).astype(np.float32)
    with spending({"nodes": 400}):
        (found,) = run("coreml", body, {x: given}, tmp_path)
    wanted = np.abs(given)
    for _ in range(20):
        wanted = wanted.reshape(1, 2, 2, 3, 2, 5).transpose(0, 2, 4, 1, 3, 5).reshape(1, 4, 6, 5)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("reduce", [np.sum, np.prod])
def test_mxnet_reduces_axes_without_elements(reduce: Any, tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 3, 0))
    body = relay.Tuple([getattr(relay, reduce.__name__)(x, axis=(2,)), relay.negative(x)])
    given = np.zeros((2, 3, 0), np.float32)
    found, _ = run("mxnet", body, {x: given}, tmp_path, names=("y", "z"))
    np.testing.assert_array_equal(found, reduce(given, 2))


def test_mxnet_finds_nothing(tmp_path: Path) -> None:
    """MXNet's own shapes have no length 0."""
    x = relay.var("x", shape=(3, 2))
    body = relay.cast(relay.argwhere(x), "float32")
    (found,) = run("mxnet", body, {x: np.zeros((3, 2), np.float32)}, tmp_path)
    assert found.shape == (0, 2)


def _regions(kind: str, x: Expr, rois: Expr, scale: float) -> Expr:
    if kind == "rotated":
        attrs = {"pooled_size": (2, 2), "spatial_scale": scale, "sample_ratio": 2}
        return call("serde.roi_align_rotated", x, rois, **attrs)
    if kind == "align":
        return relay.vision.roi_align(x, rois, (2, 2), scale, 2)
    return relay.vision.roi_pool(x, rois, (2, 2), scale)


@pytest.mark.parametrize("kind", ["rotated", "align", "pool"])
def test_mxnet_pools_regions_of_any_scale(kind: str, tmp_path: Path) -> None:
    """Its scales are from 0 to 1: regions of twice the lengths have half the scale."""
    x = relay.var("x", shape=(1, 2, 8, 8))
    columns = 6 if kind == "rotated" else 5
    rois = relay.var("rois", shape=(1, columns))
    body = relay.Tuple([_regions(kind, x, rois, 1.25), _regions(kind, x, rois, 0.625)])
    data = np.random.default_rng(3).normal(size=(1, 2, 8, 8)).astype(np.float32)
    region = np.float32([[0, 2, 2, 4, 5, 30][:columns]])
    feeds = {x: data, rois: region}
    large, _ = run("mxnet", body, feeds, tmp_path, names=("y", "z"))
    region[:, 1:5] *= 2
    _, wanted = run("mxnet", body, feeds, tmp_path, names=("y", "z"))
    np.testing.assert_allclose(large, wanted, rtol=1e-6)


def test_mxnet_keeps_what_is_empty_through_activations(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 3))
    nothing = relay.strided_slice(x, [2], [1], [1], axes=[1])
    body = relay.Tuple([relay.nn.relu(nothing), relay.negative(x)])
    given = np.ones((2, 3), np.float32)
    found, _ = run("mxnet", body, {x: given}, tmp_path, names=("y", "z"))
    assert found.shape == (2, 0)


def test_onnx_takes_results_that_are_longer_by_a_stride(tmp_path: Path) -> None:
    """What ONNX cannot add to the end of a transposed convolution, less padding leaves there."""
    x = relay.var("x", shape=(1, 1, 5))
    data, kernel = np.arange(5, dtype=np.float32), np.array([2, -1, 3], np.float32)
    weight = relay.Constant(kernel.reshape(1, 1, 3))

    def longer(padding: int) -> Expr:
        return relay.nn.conv1d_transpose(x, weight, padding=padding, output_padding=1)

    feeds = {x: data.reshape(1, 1, 5)}
    (found,) = run("onnx", longer(1), feeds, tmp_path)
    np.testing.assert_allclose(found[0, 0], np.convolve(data, kernel)[1:], rtol=1e-6)
    with pytest.raises(UnsupportedModelError, match=r"output_padding \[1\] beyond the strides"):
        run("onnx", longer(0), feeds, tmp_path)


def test_mxnet_folds_back_what_is_image_and_filter_in_one(tmp_path: Path) -> None:
    x = relay.var("x", shape=(96,))
    values = np.sin(np.arange(96, dtype=np.float32))
    both = relay.tanh(x)
    image, filters = (relay.reshape(both, shape) for shape in ((2, 4, 3, 4), (4, 2, 3, 4)))
    (found,) = run("mxnet", relay.nn.conv2d_transpose(image, filters), {x: values}, tmp_path)
    expected = np.zeros((2, 2, 5, 7))
    image_values, filter_values = (np.tanh(values).reshape(s) for s in ((2, 4, 3, 4), (4, 2, 3, 4)))
    for row in range(3):
        for column in range(4):
            spread = np.einsum("nc,cfhw->nfhw", image_values[:, :, row, column], filter_values)
            expected[:, :, row : row + 3, column : column + 4] += spread
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 3])
def test_mxnet_sums_up_what_lies_before_along_an_open_length(length: int, tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, "n"))
    values = np.arange(2 * length, dtype=np.float32).reshape(2, length) + 0.5
    (found,) = run("mxnet", relay.cumsum(x, axis=1, exclusive=True), {x: values}, tmp_path)
    np.testing.assert_array_equal(found, np.cumsum(values, axis=1) - values)


def test_mxnet_takes_no_unknown_length_for_another(tmp_path: Path) -> None:
    """Of a slice by an open length nothing is known but which axis it is of."""
    x = relay.var("x", shape=("a", "b", "c"))
    values = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    rolled = call("serde.roll", x, shift=(-1, 7), axes=(0, -2))
    (found,) = run("mxnet", rolled, {x: values}, tmp_path)
    np.testing.assert_array_equal(found, np.roll(values, (-1, 7), (0, -2)))


def _no_rows(x: Expr) -> Expr:
    return relay.strided_slice(x, [1], [1], [1], axes=[0])


def _is_positive(x: Expr) -> Expr:
    return relay.greater(x, relay.const(np.float32(0)))


def _one_hot_of_none(x: Expr) -> Expr:
    indices = relay.cast(relay.nn.relu(_no_rows(x)), "int32")
    return relay.one_hot(indices, relay.max(x), relay.min(x), 5, -1, "float32")


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (
            lambda x: relay.where(
                _is_positive(relay.max(x)), relay.tanh(_no_rows(x)), relay.exp(_no_rows(x))
            ),
            (0, 3),
        ),
        (lambda x: relay.where(_is_positive(_no_rows(x)), x, relay.max(x)), (0, 3)),
        (
            lambda x: relay.If(
                _is_positive(relay.max(x)), relay.tanh(_no_rows(x)), relay.exp(_no_rows(x))
            ),
            (0, 3),
        ),
        (_one_hot_of_none, (0, 3, 5)),
    ],
    ids=["condition", "values", "branches", "one_hot"],
)
def test_mxnet_chooses_between_no_elements(
    build: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """MXNet writes past its memory where it would spread operands over no elements."""
    x = relay.var("x", shape=(1, 3))
    (found,) = run("mxnet", build(x), {x: NUMBERS.reshape(1, 3)}, tmp_path)
    assert found.shape == shape


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_onnx_takes_the_empty_mode_of_blocks_for_depth_first(layout: str, tmp_path: Path) -> None:
    """TVM's frontends leave the mode empty; ONNX Runtime loads no node with such a one."""
    data = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)
    given = data if layout == "NCHW" else data.transpose(0, 2, 3, 1)
    x = relay.var("x", shape=given.shape)
    body = call("nn.depth_to_space", x, block_size=2, layout=layout, mode="")
    (found,) = run("onnx", body, {x: given}, tmp_path)
    planar = found if layout == "NCHW" else found.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(planar[0], [[[0, 2], [4, 6]], [[1, 3], [5, 7]]])


SEVEN = (2, 3, 2, 1, 3, 2, 4)
WRITTEN = np.float32([0.5, 0.25]).reshape(1, 2, 1, 1, 1, 1, 1)


def _moved(x: Expr) -> Expr:
    like = relay.ones((2, 2, 1, 1, 3, 2, 1), "float32")
    ends = (relay.const(np.array(each)) for each in ([0, 2], [1, 0], [1, -1]))
    return relay.Tuple(
        [
            relay.strided_slice(x, [1, 2], [3, -5], [1, -2], axes=[1, -1]),
            relay.slice_like(x, like, (1, 2, -1)),
            relay.strided_set(x, relay.Constant(WRITTEN), *ends),
            relay.concatenate([x, relay.negative(x)], 1),
            relay.split(x, [1], axis=4)[1],
            relay.greater(relay.reverse(x, 6), x),
            relay.add(relay.reshape(relay.reshape(x, (6, 48)), SEVEN), x),
            relay.gather(x, 1, relay.const(np.full((2, 1, 2, 1, 3, 2, 4), 2))),
            relay.gather(x, 1, relay.cast(relay.sign(x), "int64")),
        ]
    )


def test_mxnet_moves_seven_axes(tmp_path: Path) -> None:
    """MXNet slices no more than five axes, and has oneDNN join and reshape no more than six."""
    x = relay.var("x", shape=SEVEN)
    values = np.arange(288, dtype=np.float32).reshape(SEVEN)
    values[:, ::2] *= -1
    names = tuple("abcdefghi")
    found = run("mxnet", _moved(x), {x: values}, tmp_path, names=names)
    changed = values.copy()
    changed[:1, 2:0:-1] = WRITTEN
    expected = [
        values[:, 1:3, ..., 2::-2],
        values[:, :2, :1, ..., :1],
        changed,
        np.concatenate([values, -values], 1),
        values[:, :, :, :, 1:],
        values[..., ::-1] > values,
        values + values,
        values[:, 2:],
        np.take_along_axis(values, np.sign(values).astype(np.int64), 1),
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
