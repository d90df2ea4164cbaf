"""Layouts: their text, what they say of axes, and the numbers of tensors that change theirs."""

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import symbol
from serde.relay.ir.layout import (
    SCALAR,
    LayoutPlan,
    TensorLayout,
    change_layout,
    change_layout_of_shape,
    is_blocked,
    layout_rank,
    parse_layout,
    spatial_axes,
)
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType
from serde.relay.tvm.passes.layout.inference import transform_like

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("name", "rank", "length"),
    [("NCHW", 4, 4), ("NCHW16c", 4, 5), ("OIHW4i8o", 4, 6), ("C", 1, 1), ("OIHW4i16o4i", 4, 7)],
)
def test_a_layout_knows_its_axes(name: str, rank: int, length: int) -> None:
    layout = TensorLayout(name)
    assert (layout.rank, len(layout), layout_rank(name)) == (rank, length, length)
    assert (str(layout), layout) == (name, TensorLayout(name))
    assert hash(layout) == hash(parse_layout(name))
    assert [layout.index_of(each) for each in list(layout)[:rank]] == list(range(rank))
    assert is_blocked(name) == (rank != length)


@pytest.mark.parametrize(
    "name", ["N1C", "NCHWc", "NCHW4", "NNCHW", "NHW4c", "N-C", "NCHW0c", "NC 4c", "_", "4c", "ÄB"]
)
def test_what_is_no_layout_is_refused(name: str) -> None:
    with pytest.raises(TypeInferenceError):
        TensorLayout(name)


def test_no_text_is_a_layout_that_is_not_known() -> None:
    assert parse_layout("") is None
    assert len(SCALAR) == 0
    assert TensorLayout("NC") != "NC"


@pytest.mark.parametrize(
    ("name", "letter", "factor"),
    [("NCHW16c", "C", 16), ("NCHW16c", "c", 16), ("NCHW", "C", -1), ("OIHW4i8o2i", "I", 8)],
)
def test_factors_of_an_axis_multiply(name: str, letter: str, factor: int) -> None:
    assert TensorLayout(name).factor_of(letter) == factor


def test_parts_of_a_layout() -> None:
    layout = TensorLayout("NCHW4c")
    assert str(layout.part(2, 2)) == "HW"
    assert layout.part(6, 1) is None
    assert layout.part(-1, 1) is None
    assert str(TensorLayout("HW").expand(layout)) == "NCHW"
    assert layout.converts_to(TensorLayout("NHWC"))
    assert not layout.converts_to(TensorLayout("NHW"))
    assert not SCALAR.converts_to(SCALAR)


SHAPES = [
    ((2, 8, 3, 5), "NCHW", "NHWC", (2, 3, 5, 8)),
    ((2, 8, 3, 5), "NCHW", "HWNC", (3, 5, 2, 8)),
    ((2, 8, 3, 5), "NCHW", "NCHW4c", (2, 2, 3, 5, 4)),
    ((2, 8, 3, 5), "NCHW", "NHWC8c", (2, 3, 5, 1, 8)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW", (2, 8, 3, 5)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW2c", (2, 4, 3, 5, 2)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NHWC", (2, 3, 5, 8)),
    ((8, 4, 3, 3), "OIHW", "OIHW2i4o", (2, 2, 3, 3, 2, 4)),
    ((8, 16, 3, 3), "OIHW", "OIHW2i4o4i", (2, 2, 3, 3, 2, 4, 4)),
    ((2, 2, 3, 3, 2, 4), "OIHW2i4o", "HWIO", (3, 3, 4, 8)),
    ((3, 3, 4, 8), "HWIO", "OIHW4i4o", (2, 1, 3, 3, 4, 4)),
    ((6, 4), "NC", "CN2n", (4, 3, 2)),
    ((2, 6, 4), "NCW", "NCW3c", (2, 2, 4, 3)),
    ((1, 4, 2, 3, 5), "NCDHW", "NCDHW2c", (1, 2, 2, 3, 5, 2)),
    ((4, 6), "NC", "NC2n3c", (2, 2, 2, 3)),
    # Blocks that the axis does not fill.
    ((1, 6, 2, 2), "NCHW", "NCHW4c", (1, 2, 2, 2, 4)),
    ((3, 5), "NC", "NC2n4c", (2, 2, 2, 4)),
    ((5, 3, 1, 1), "OIHW", "OIHW4i4o", (2, 1, 1, 1, 4, 4)),
]


def _reference(data: np.ndarray, source: str, target: str) -> np.ndarray:
    """Move one element at a time."""
    src, dst = TensorLayout(source), TensorLayout(target)
    result = np.zeros(change_layout_of_shape(data.shape, source, target), data.dtype)

    def pieces(layout: TensorLayout, letter: str) -> list[int]:
        own = [i for i, each in enumerate(layout) if each.upper() == letter]
        return sorted(own, key=lambda i: (layout[i].islower(), i))

    for index in np.ndindex(*data.shape):
        place = [0] * len(dst)
        for letter in {each.upper() for each in src}:
            value = 0
            for axis in pieces(src, letter):
                value = value * (src.axes[axis].factor or 1) + index[axis]
            for axis in reversed(pieces(dst, letter)):
                factor = dst.axes[axis].factor
                place[axis] = value if factor is None else value % factor
                value = value // (factor or 1)
        result[tuple(place)] = data[index]
    return result


@pytest.mark.thin(2)
@pytest.mark.parametrize(("shape", "source", "target", "wanted"), SHAPES)
def test_numbers_and_shapes_change_layout(
    shape: tuple[int, ...], source: str, target: str, wanted: tuple[int, ...]
) -> None:
    data = RNG.normal(size=shape).astype("float32")
    found = change_layout(data, source, target)
    assert found.shape == wanted == change_layout_of_shape(shape, source, target)
    np.testing.assert_array_equal(found, _reference(data, source, target))
    x = relay.var("x", shape=shape)
    moved = relay.layout_transform(x, src_layout=source, dst_layout=target)
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], moved)))
    assert mod["main"].body.checked_type.concrete_shape == wanted
    np.testing.assert_array_equal(run(mod["main"], [data]), found)


@pytest.mark.parametrize(("shape", "source", "target", "wanted"), SHAPES[:15])
def test_a_layout_and_back(
    shape: tuple[int, ...], source: str, target: str, wanted: tuple[int, ...]
) -> None:
    data = RNG.normal(size=shape)
    back = change_layout(change_layout(data, source, target), target, source)
    np.testing.assert_array_equal(back, data)
    assert LayoutPlan(wanted, target, source).shape == list(shape)


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [
        ((1, 2, 3), "NCHW", "NHWC"),
        ((1, 2, 3, 4), "NCHW", "NHW"),
        ((1, 2, 3, 4), "NCHW", "NCDH"),
        ((1, 2, 3, 4, 8), "NCHW4c", "NCHW"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(
    shape: tuple[int, ...], source: str, target: str
) -> None:
    with pytest.raises(TypeInferenceError):
        change_layout_of_shape(shape, source, target)
    x = relay.var("x", shape=shape)
    with pytest.raises(TypeInferenceError):
        relay.layout_transform(x, src_layout=source, dst_layout=target)


def test_a_plan_fills_blocks_only_if_asked() -> None:
    with pytest.raises(TypeInferenceError):
        LayoutPlan((1, 6, 2, 2), "NCHW", "NCHW4c")
    assert LayoutPlan((1, 6, 2, 2), "NCHW", "NCHW4c", filled=True).padding == [2, 0, 0, 0]


def test_symbols_stay() -> None:
    batch = symbol("n")
    assert change_layout_of_shape((batch, 8, 2, 2), "NCHW", "NHWC4c")[0] == batch


@pytest.mark.parametrize(
    ("layout", "wanted", "found"),
    [
        ("NCHW", "NCHW", (2, 3)), ("NHWC", "NCHW", (1, 2)), ("NCHW8c", "NCHW", (2, 3)),
        ("NHWC8c", "NCHW", (1, 2)), ("NCW4c", "NCW", (2,)), ("NCDHW4c", "NCDHW", (2, 3, 4)),
    ],
)  # fmt: skip
def test_axes_of_an_image(layout: str, wanted: str, found: tuple[int, ...]) -> None:
    assert spatial_axes(layout, wanted) == found


@pytest.mark.parametrize(("layout", "wanted"), [("NCHW2w", "NCHW"), ("NCD4c", "NCW")])
def test_an_image_in_blocks_is_refused(layout: str, wanted: str) -> None:
    with pytest.raises(TypeInferenceError):
        spatial_axes(layout, wanted)


@pytest.mark.parametrize(
    ("layout", "reference", "target", "wanted"),
    [
        ("C", "NHWC", "NHWC4c", "NHWC4c"),
        ("O", "NHWC", "NCHW", "NOHW"),
        ("NHWC", "NHWC", "NCHW", "NCHW"),
        ("ABCD", "NHWC", "NCHW", "ADBC"),
        ("CHW", "NCHW", "NCHW", "NCHW"),
        ("HW", "NCHW", "NCHW4c", "NCHW4c"),
        ("", "NCHW", "NHWC", ""),
        ("NC", "NCHW", "NHWC", "BNCA"),
        ("HWC", "NCHW2h", "NCHW", None),
    ],
)
def test_a_layout_changes_as_another(
    layout: str, reference: str, target: str, wanted: str | None
) -> None:
    names = [TensorLayout(each) if each else SCALAR for each in (layout, reference, target)]
    found = transform_like(*names)
    assert (None if found is None else str(found)) == wanted


POOLS = {
    "max_pool2d": {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1)},
    "avg_pool2d": {"pool_size": (2, 3), "strides": (1, 2), "count_include_pad": True},
    "global_avg_pool2d": {},
    "global_max_pool2d": {},
    "adaptive_avg_pool2d": {"output_size": (3, 2)},
    "adaptive_max_pool2d": {"output_size": (2, 4)},
    "upsampling": {"scale_h": 2.0, "scale_w": 3.0},
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("layout", ["NCHW4c", "NCHW2c", "NHWC4c", "NHWC"])
def test_windows_slide_over_blocks(name: str, layout: str) -> None:
    if name == "upsampling" and layout == "NHWC4c":
        layout = "NCHW8c"
    x = relay.var("x", shape=(2, 8, 6, 7))
    build = getattr(relay.nn, name)
    moved = relay.layout_transform(x, src_layout="NCHW", dst_layout=layout)
    inner = build(moved, layout=layout, **POOLS[name])
    back = relay.layout_transform(inner, src_layout=layout, dst_layout="NCHW")
    data = RNG.normal(size=(2, 8, 6, 7)).astype("float32")
    _assert_equal(x, build(x, **POOLS[name]), back, data)


def _assert_equal(x: relay.Var, want: relay.Expr, found: relay.Expr, data: np.ndarray) -> None:
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], relay.Tuple([want, found]))))
    a, b = run(mod["main"], [data])
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block", [1, 2, 4, 8])
@pytest.mark.parametrize("out", [2, 4])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_a_convolution_in_blocks_is_the_plain_one(
    block: int, out: int, strides: tuple[int, int]
) -> None:
    x = relay.var("x", shape=(2, 8, 6, 5))
    weight = relay.const(RNG.normal(size=(4, 8, 3, 3)).astype("float32"))
    attrs = {"channels": 4, "kernel_size": (3, 3), "padding": (1, 1), "strides": strides}
    want = relay.nn.conv2d(x, weight, **attrs)
    layouts = (f"NCHW{block}c", f"OIHW{block}i{out}o", f"NCHW{out}c")
    data = relay.layout_transform(x, src_layout="NCHW", dst_layout=layouts[0])
    kernel = relay.layout_transform(weight, src_layout="OIHW", dst_layout=layouts[1])
    found = relay.nn.contrib_conv2d_nchwc(
        data, kernel, data_layout=layouts[0], kernel_layout=layouts[1], out_layout=layouts[2],
        **attrs,
    )  # fmt: skip
    back = relay.layout_transform(found, src_layout=layouts[2], dst_layout="NCHW")
    _assert_equal(x, want, back, RNG.normal(size=(2, 8, 6, 5)).astype("float32"))


@pytest.mark.parametrize("block", [1, 2, 4])
def test_a_depthwise_convolution_in_blocks_is_the_plain_one(block: int) -> None:
    x = relay.var("x", shape=(1, 4, 6, 5))
    weight = relay.const(RNG.normal(size=(4, 1, 3, 3)).astype("float32"))
    attrs = {"channels": 4, "kernel_size": (3, 3), "padding": (1, 1), "groups": 4}
    layout, kernels = f"NCHW{block}c", f"OIHW1i{block}o"
    data = relay.layout_transform(x, src_layout="NCHW", dst_layout=layout)
    kernel = relay.layout_transform(weight, src_layout="OIHW", dst_layout=kernels)
    found = relay.nn.contrib_depthwise_conv2d_nchwc(
        data, kernel, data_layout=layout, kernel_layout=kernels, out_layout=layout, **attrs
    )
    back = relay.layout_transform(found, src_layout=layout, dst_layout="NCHW")
    values = RNG.normal(size=(1, 4, 6, 5)).astype("float32")
    _assert_equal(x, relay.nn.conv2d(x, weight, **attrs), back, values)


@pytest.mark.parametrize("layout", ["NC2n", "NC4n", "NC8n"])
def test_a_packed_weight_of_dense_is_the_plain_one(layout: str) -> None:
    x = relay.var("x", shape=(3, 6))
    weight = relay.const(RNG.normal(size=(8, 6)).astype("float32"))
    packed = relay.layout_transform(weight, src_layout="NC", dst_layout=layout)
    found = relay.nn.contrib_dense_pack(x, packed, weight_layout=layout, units=8)
    _assert_equal(x, relay.nn.dense(x, weight), found, RNG.normal(size=(3, 6)).astype("float32"))
