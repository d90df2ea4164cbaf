"""Windows and resizings as NNEF says them: what exporters choose, and what stays as it was.

Values of what is written are judged by the NumPy reading of the specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nnef_reference import run as run_reference
from support.nnef_written import compare, interpret, write

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.nnef.importer import to_relay
from serde.nnef.options import NnefImportOptions
from serde.relay.ir.expr import Expr, Function, TupleGetItem, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run as run_relay

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")


def model(build: Callable[..., Expr], *shapes: tuple[int, ...], dtype: str = "float32") -> Any:
    """A model of one expression over inputs of these shapes."""
    inputs = [Var(f"x{i}", TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    module = IRModule({"main": Function(inputs, build(*inputs))})
    names = tuple(each.name_hint for each in inputs)
    return RelayModel(relay.transform.InferType()(module), {}, ModelMeta(names, ("y",)))


def check(source: RelayModel, folder: Path) -> str:
    """Write a model, compare what it computes with what Relay does, and return its body."""
    generator = np.random.default_rng(5)
    values = {
        each.name_hint: generator.standard_normal(each.checked_type.concrete_shape).astype("f")
        for each in source.main.params
    }
    found = run_relay(source.main, list(values.values()))
    expected = list(found) if isinstance(found, (tuple, list)) else [found]
    native = write(source, folder).native
    graph = nnef.load_graph(str(folder), stdlib="", lowered=[])
    judged = run_reference(graph, values)
    judged = list(judged.values()) if isinstance(judged, dict) else list(judged)
    compare([np.asarray(each, "f") for each in judged], expected)
    compare(interpret(native, values), expected)
    return body(folder)


def body(folder: Path) -> str:
    """The assignments of a graph; what is not its result is called a, b and so on."""
    lines = (folder / "graph.nnef").read_text().splitlines()
    found = [line.strip() for line in lines if re.search(r" = (?!external)\w+\(", line)]
    text = "\n".join(found)
    names = [line.split(" = ")[0] for line in found if not line.startswith("y = ")]
    for name, letter in zip(names, "abcdefgh", strict=False):
        text = re.sub(rf"\b{name}\b(?! ?\()", letter, text)
    return text


def conv2d(**attrs: Any) -> Callable[..., Expr]:
    return lambda x, w, *b: (
        relay.nn.bias_add(relay.nn.conv2d(x, w, **attrs), b[0])
        if b
        else relay.nn.conv2d(x, w, **attrs)
    )


def pool(kind: str, ndim: int = 2, **attrs: Any) -> Callable[..., Expr]:
    return lambda x: getattr(relay.nn, f"{kind}_pool{ndim}d")(x, **attrs)


def padded(build: Callable[..., Expr], widths: Any, *given: Any) -> Callable[..., Expr]:
    return lambda x, *more: build(relay.nn.pad(x, widths, *given), *more)


def resize(size: Any, method: str, mode: str, **attrs: Any) -> Callable[..., Expr]:
    return lambda x: call(
        f"image.resize{len(size)}d",
        x,
        size=size,
        layout={1: "NCW", 2: "NCHW", 3: "NCDHW"}[len(size)],
        method=method,
        coordinate_transformation_mode=mode,
        **attrs,
    )


IMAGE, FILTER = (1, 4, 7, 8), (6, 4, 3, 3)
SPATIAL = [(0, 0), (0, 0), (1, 2), (0, 1)]
ZERO = "(0, 0), (0, 0)"

WRITTEN: dict[str, tuple[Callable[..., Expr], list[tuple[int, ...]], str]] = {
    "padding-is-told": (
        conv2d(),
        [IMAGE, FILTER],
        "y = conv(x0, x1, padding = [(0, 0), (0, 0)]);",
    ),
    "bias-is-a-row": (
        conv2d(padding=(1, 1)),
        [IMAGE, FILTER, (6,)],
        "a = reshape(x2, shape = [1, 6]);\n"
        "y = conv(x0, x1, a, padding = [(1, 1), (1, 1)]);",
    ),
    "uneven-padding-and-steps": (
        conv2d(padding=(0, 1, 2, 0), strides=(2, 1), dilation=(1, 2)),
        [IMAGE, FILTER],
        "y = conv(x0, x1, padding = [(0, 2), (1, 0)], stride = [2, 1], dilation = [1, 2]);",
    ),
    "depthwise-has-no-groups": (
        conv2d(groups=4),
        [IMAGE, (8, 1, 3, 3)],
        "y = conv(x0, x1, padding = [(0, 0), (0, 0)], groups = 0);",
    ),
    "groups": (
        conv2d(groups=2),
        [IMAGE, (6, 2, 3, 3)],
        "y = conv(x0, x1, padding = [(0, 0), (0, 0)], groups = 2);",
    ),
    "one-channel-is-one-group": (
        conv2d(groups=1),
        [(1, 1, 7, 8), (2, 1, 3, 3)],
        "y = conv(x0, x1, padding = [(0, 0), (0, 0)]);",
    ),
    "zeros-join-a-convolution": (
        padded(conv2d(padding=(1, 0)), SPATIAL),
        [IMAGE, FILTER],
        "y = conv(x0, x1, padding = [(2, 3), (0, 1)]);",
    ),
    "zeros-take-part-in-a-maximum": (
        padded(pool("max", pool_size=(3, 3)), SPATIAL),
        [IMAGE],
        f"y = max_pool(x0, size = [1, 1, 3, 3], padding = [{ZERO}, (1, 2), (0, 1)]);",
    ),
    "other-numbers-do-not-join": (
        padded(conv2d(), SPATIAL, 0.5),
        [IMAGE, FILTER],
        f"a = pad(x0, padding = [{ZERO}, (1, 2), (0, 1)], value = 0.5);\n"
        f"y = conv(a, x1, padding = [{ZERO}]);",
    ),
    "zeros-do-not-join-ignored-ones": (
        padded(pool("max", pool_size=(3, 3), padding=(1, 1)), SPATIAL),
        [IMAGE],
        f"a = pad(x0, padding = [{ZERO}, (1, 2), (0, 1)]);\n"
        "y = max_pool(a, size = [1, 1, 3, 3], border = 'ignore', "
        f"padding = [{ZERO}, (1, 1), (1, 1)]);",
    ),
    "edges-do-not-join": (
        padded(conv2d(), SPATIAL, 0.0, "edge"),
        [IMAGE, FILTER],
        f"a = pad(x0, padding = [{ZERO}, (1, 2), (0, 1)], border = 'replicate');\n"
        f"y = conv(a, x1, padding = [{ZERO}]);",
    ),
    "channels-do-not-join-a-convolution": (
        padded(conv2d(), [(0, 0), (1, 1), (0, 0), (0, 0)]),
        [(1, 2, 7, 8), FILTER],
        "a = pad(x0, padding = [(0, 0), (1, 1), (0, 0), (0, 0)]);\n"
        f"y = conv(a, x1, padding = [{ZERO}]);",
    ),
    "what-is-read-twice-does-not-join": (
        padded(
            lambda x: relay.add(relay.nn.max_pool2d(x, (3, 3), padding=(1, 1)), x), SPATIAL
        ),
        [IMAGE],
        f"a = pad(x0, padding = [{ZERO}, (1, 2), (0, 1)]);\n"
        "b = max_pool(a, size = [1, 1, 3, 3], border = 'ignore', "
        f"padding = [{ZERO}, (1, 1), (1, 1)]);\n"
        "y = add(b, a);",
    ),
    "deconv": (
        lambda x, w: relay.nn.conv2d_transpose(x, w, strides=(2, 2), padding=(1, 0, 0, 1)),
        [IMAGE, (4, 3, 3, 3)],
        "y = deconv(x0, x1, padding = [(1, 0), (0, 1)], stride = [2, 2]);",
    ),
    "deconv-with-a-shape": (
        lambda x, w: relay.nn.conv2d_transpose(x, w, strides=(2, 3), output_padding=(1, 0)),
        [IMAGE, (4, 3, 3, 3)],
        f"y = deconv(x0, x1, padding = [{ZERO}], stride = [2, 3], "
        "output_shape = [1, 3, 16, 24]);",
    ),
    "deconv-beyond-a-stride": (
        lambda x, w: relay.nn.conv2d_transpose(x, w, padding=(1, 0), output_padding=(2, 1)),
        [IMAGE, (4, 3, 3, 3)],
        f"a = deconv(x0, x1, padding = [(1, 0), (0, 0)]);\n"
        f"y = pad(a, padding = [{ZERO}, (0, 1), (0, 1)]);",
    ),
    "depthwise-deconv": (
        lambda x, w: relay.nn.conv1d_transpose(x, w, groups=4, strides=(2,)),
        [(2, 4, 5), (4, 1, 3)],
        "y = deconv(x0, x1, padding = [(0, 0)], stride = [2], groups = 0);",
    ),
    "deconv-of-many-filters-a-channel": (
        lambda x, w: relay.nn.conv1d_transpose(x, w, groups=4),
        [(2, 4, 5), (4, 2, 3)],
        "y = deconv(x0, x1, padding = [(0, 0)], groups = 4);",
    ),
    "no-padding-has-no-border": (
        pool("max", pool_size=(2, 2), strides=(2, 2)),
        [IMAGE],
        f"y = max_pool(x0, size = [1, 1, 2, 2], padding = [{ZERO}, {ZERO}], "
        "stride = [1, 1, 2, 2]);",
    ),
    "padding-is-ignored-in-a-maximum": (
        pool("max", 1, pool_size=(3,), padding=(1, 0), dilation=(2,)),
        [(2, 3, 9)],
        f"y = max_pool(x0, size = [1, 1, 3], border = 'ignore', padding = [{ZERO}, (1, 0)], "
        "dilation = [1, 1, 2]);",
    ),
    "lengths-rounded-up": (
        pool("max", pool_size=(3, 2), strides=(2, 3), ceil_mode=True),
        [(1, 2, 8, 8)],
        f"y = max_pool(x0, size = [1, 1, 3, 2], border = 'ignore', padding = [{ZERO}, (0, 1), "
        "(0, 0)], stride = [1, 1, 2, 3]);",
    ),
    "means-of-what-is-inside": (
        pool("avg", pool_size=(3, 3), padding=(1, 1)),
        [IMAGE],
        "y = avg_pool(x0, size = [1, 1, 3, 3], border = 'ignore', "
        f"padding = [{ZERO}, (1, 1), (1, 1)]);",
    ),
    "means-of-whole-windows": (
        pool("avg", pool_size=(3, 3), padding=(1, 1), count_include_pad=True),
        [IMAGE],
        f"y = avg_pool(x0, size = [1, 1, 3, 3], padding = [{ZERO}, (1, 1), (1, 1)]);",
    ),
    "means-of-whole-windows-rounded-up": (
        pool("avg", 3, pool_size=(2, 2, 2), strides=(2, 2, 2), ceil_mode=True,
             count_include_pad=True),
        [(1, 2, 5, 4, 3)],
        f"y = avg_pool(x0, size = [1, 1, 2, 2, 2], padding = [{ZERO}, (0, 1), (0, 0), (0, 1)], "
        "stride = [1, 1, 2, 2, 2]);",
    ),
    "nearest-is-a-block": (
        resize((21, 16), "nearest_neighbor", "asymmetric", rounding_method="floor"),
        [IMAGE],
        "y = nearest_upsample(x0, factor = [3, 2]);",
    ),
    "nearest-centre-is-a-block": (
        resize((14, 16), "nearest_neighbor", "half_pixel", rounding_method="round_prefer_floor"),
        [IMAGE],
        "y = nearest_upsample(x0, factor = [2, 2]);",
    ),
    "nearest-of-fewer": (
        resize((3, 8), "nearest_neighbor", "asymmetric", rounding_method="floor"),
        [(1, 4, 6, 8)],
        "y = nearest_downsample(x0, factor = [2, 1]);",
    ),
    "linear-centres": (
        resize((14, 24), "linear", "half_pixel"),
        [IMAGE],
        "y = multilinear_upsample(x0, factor = [2, 3]);",
    ),
    "linear-corners": (
        resize((10,), "linear", "align_corners"),
        [(2, 3, 5)],
        "y = multilinear_upsample(x0, factor = [2], method = 'aligned');",
    ),
    "linear-starts": (
        resize((4, 6, 2), "linear", "asymmetric"),
        [(1, 2, 2, 2, 2)],
        "y = multilinear_upsample(x0, factor = [2, 3, 1], method = 'asymmetric');",
    ),
    "linear-halves-are-means": (
        resize((3, 4), "linear", "half_pixel"),
        [(1, 4, 6, 8)],
        "y = area_downsample(x0, factor = [2, 2]);",
    ),
    "upsampling": (
        lambda x: relay.nn.upsampling(x, 2, 2, "NCHW", "bilinear", True),
        [IMAGE],
        "y = multilinear_upsample(x0, factor = [2, 2], method = 'aligned');",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_exporters_choose(name: str, tmp_path: Path) -> None:
    build, shapes, expected = WRITTEN[name]
    assert check(model(build, *shapes), tmp_path / "net") == expected


AGAIN: dict[str, tuple[Callable[..., Expr], list[tuple[int, ...]]]] = {
    name: WRITTEN[name][:2]
    for name in (
        "uneven-padding-and-steps",
        "depthwise-has-no-groups",
        "groups",
        "deconv",
        "deconv-with-a-shape",
        "no-padding-has-no-border",
        "padding-is-ignored-in-a-maximum",
        "means-of-what-is-inside",
        "means-of-whole-windows",
        "edges-do-not-join",
        "linear-corners",
        "linear-centres",
    )
}


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", AGAIN)
def test_windows_stay_whole(name: str, tmp_path: Path) -> None:
    """What is written and read is written the same again, and has the operators that it had."""
    build, shapes = AGAIN[name]
    source = model(build, *shapes)
    native = write(source, tmp_path / "first").native
    again = to_relay(native, NnefImportOptions(), Report())
    calls = r"= ?([\w.]+)\(|^ +([\w.]+)\("
    assert re.findall(calls, str(again.mod), re.M) == re.findall(calls, str(source.mod), re.M)
    write(again, tmp_path / "second")
    first, second = ((tmp_path / each / "graph.nnef").read_text() for each in ("first", "second"))
    assert second == first


LAYOUTS: dict[str, tuple[Callable[..., Expr], list[tuple[int, ...]]]] = {
    "conv-channels-last": (
        conv2d(data_layout="NHWC", kernel_layout="HWIO"), [(1, 7, 8, 4), (3, 3, 4, 6)],
    ),
    "conv-filters-of-a-channel": (conv2d(groups=4), [IMAGE, (4, 2, 3, 3)]),
    "deconv-channels-last": (
        lambda x, w: relay.nn.conv2d_transpose(
            x, w, strides=(2, 2), output_padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO"
        ),
        [(1, 5, 4, 3), (3, 3, 3, 2)],
    ),
    "pool-channels-last": (pool("max", pool_size=(3, 3), layout="NHWC"), [(1, 7, 8, 4)]),
    "adaptive": (lambda x: relay.nn.adaptive_avg_pool2d(x, (3, 4)), [(1, 2, 7, 8)]),
    "global": (lambda x: relay.nn.global_max_pool2d(x), [IMAGE]),
}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("name", LAYOUTS)
def test_other_forms_are_spelled_out(name: str, tmp_path: Path) -> None:
    build, shapes = LAYOUTS[name]
    check(model(build, *shapes), tmp_path / "net")


REFUSED: dict[str, tuple[str, str]] = {
    "a-filter-of-another-rank": (
        "x = external(shape = [1,2,5,5]); f = external(shape = [2,2,3]); y = conv(x, f);",
        "a convolution of",
    ),
    "a-bias-of-other-channels": (
        "x = external(shape = [1,2,5]); f = external(shape = [3,2,3]); "
        "b = external(shape = [1,2]); y = conv(x, f, b);",
        "for 3 channels",
    ),
    "padding-of-fewer-axes": (
        "x = external(shape = [1,2,5,5]); f = external(shape = [2,2,3,3]); "
        "y = conv(x, f, padding = [(1,1)]);",
        "expected 2 pairs, found 1",
    ),
    "a-stride-of-nothing": (
        "x = external(shape = [1,2,5]); y = max_pool(x, size = [1,1,2], stride = [1,1,0]);",
        "stride: expected 3 positive integers",
    ),
    "a-shape-that-does-not-fit": (
        "x = external(shape = [1,2,5]); f = external(shape = [2,2,3]); "
        "y = deconv(x, f, stride = [2], padding = [(0,0)], output_shape = [1,2,9]);",
        "does not come of",
    ),
    "a-window-that-does-not-fit": (
        "x = external(shape = [2,3]); y = max_pool(x, size = [1,4], padding = [(0,0),(0,0)]);",
        "does not fit",
    ),
    "a-mirror-image-longer-than-the-data": (
        "x = external(shape = [1,2,2]); "
        "y = avg_pool(x, size = [1,1,5], border = 'reflect', padding = [(0,0),(0,0),(2,2)]);",
        "mirrors more",
    ),
    "places-in-a-mirror-image": (
        "x = external(shape = [1,2,2]); i = external<integer>(shape = [1,2,2]); "
        "y = desample(x, i, size = [1,1,2], border = 'reflect');",
        "which no place tells",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_read(name: str, tmp_path: Path) -> None:
    body, reason = REFUSED[name]
    inputs = ", ".join(re.findall(r"(\w+) = external", body))
    path = tmp_path / "net.nnef"
    path.write_text(f"version 1.0; graph g({inputs}) -> (y) {{ {body} }}")
    with pytest.raises(UnsupportedModelError, match=re.escape(reason)):
        serde.to_relay(path)


@pytest.mark.parametrize(
    ("build", "shapes", "dtype"),
    [
        pytest.param(conv2d(), [IMAGE, FILTER], "int8", id="integers"),
        pytest.param(conv2d(out_dtype="float64"), [IMAGE, FILTER], "float32", id="wider-result"),
        pytest.param(pool("avg", pool_size=(2, 2)), [IMAGE], "int32", id="integer-means"),
        pytest.param(
            pool("avg", 1, pool_size=(1,), strides=(3,), ceil_mode=True),
            [(1, 2, 5)],
            "float32",
            id="means-of-nothing",
        ),
    ],
)
def test_refused_when_written(
    build: Callable[..., Expr], shapes: list[tuple[int, ...]], dtype: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedModelError):
        write(model(build, *shapes, dtype=dtype), tmp_path / "net")
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("strides", [(2, 2), (2, 3)], ids=["beside", "apart"])
def test_unpooling_takes_places_of_its_pooling(strides: tuple[int, int], tmp_path: Path) -> None:
    window = {"pool_size": (2, 2), "strides": strides, "padding": (1, 0, 0, 1)}

    def build(x: Expr) -> Expr:
        pooled = call("serde.max_pool_with_places", x, dilation=(1, 1), **window)
        most, places = TupleGetItem(pooled, 0), TupleGetItem(pooled, 1)
        doubled = relay.multiply(most, relay.const(2.0, "float32"))
        return call("serde.max_unpool", doubled, places, output_shape=(7, 8), **window)

    assert "y = desample(" in check(model(build, (2, 3, 7, 8)), tmp_path / "net")


def test_unpooling_where_windows_overlap_is_refused(tmp_path: Path) -> None:
    """An element that two windows take would be added twice."""
    window = {"pool_size": (2,), "strides": (1,), "padding": (0, 0)}

    def build(x: Expr) -> Expr:
        pooled = call("serde.max_pool_with_places", x, dilation=(1,), **window)
        return call("serde.max_unpool", *(TupleGetItem(pooled, i) for i in (0, 1)), **window)

    with pytest.raises(UnsupportedModelError, match="writes elements to places"):
        write(model(build, (1, 2, 5)), tmp_path / "net")


def test_maximum_of_bytes_is_found_among_scalars(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(-128, 128, (1, 2, 6, 6)).astype(np.int8)
    source = model(pool("max", pool_size=(3, 3), padding=(1, 1)), values.shape, dtype="int8")
    native = write(source, tmp_path / "net").native
    assert [each.op for each in native.operations] == ["external", "cast", "max_pool", "cast"]
    (found,) = interpret(native, {"x0": values})
    np.testing.assert_array_equal(found, run_relay(source.main, [values]))


@pytest.mark.parametrize(
    "call_text",
    [
        "box(x, size = [1, 1, 3, 2], border = 'constant', padding = [(0,0),(0,0),(1,1),(0,1)])",
        "box(x, size = [1, 1, 3, 3], border = 'ignore', stride = [1, 1, 2, 2])",
        "rms_pool(x, size = [1, 1, 3, 3], border = 'constant')",
        "rms_pool(x, size = [1, 1, 3, 3], border = 'ignore')",
    ],
)
def test_pools_of_sums_and_roots_stay_whole(call_text: str, tmp_path: Path) -> None:
    source = tmp_path / "net.nnef"
    source.write_text(
        f"version 1.0; graph g(x) -> (y) {{ x = external(shape = [1, 2, 6, 5]); y = {call_text}; }}"
    )
    serde.convert(source, tmp_path / "net_nnef")
    assert body(tmp_path / "net_nnef").startswith(f"y = {call_text.split('(')[0]}(x, size = ")
    values = {"x": np.random.default_rng(2).standard_normal((1, 2, 6, 5)).astype("f")}
    expected, found = (
        list(run_reference(nnef.load_graph(str(path)), values).values())
        for path in (source, tmp_path / "net_nnef")
    )
    compare([np.asarray(each, "f") for each in found], [np.asarray(each, "f") for each in expected])
