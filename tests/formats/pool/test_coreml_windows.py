"""Convolutions, pooling, resizing and recurrent layers of NeuralNetworks, spelled out in NumPy."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import check_layers

F32 = np.float32


def draw(name: str, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Values that are the same each time."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.uniform(low, high, shape).astype(F32)


def same(length: int, size: int, stride: int, heavy: str) -> tuple[int, int]:
    """Padding that gives as many windows as strides fit in."""
    total = max(0, (-(-length // stride) - 1) * stride + size - length)
    small, large = total // 2, total - total // 2
    return (small, large) if heavy == "BOTTOM_RIGHT_HEAVY" else (large, small)


def convolved(
    x: np.ndarray, w: np.ndarray, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> np.ndarray:
    """A convolution of an image that is padded already."""
    count, per_group, kh, kw = w.shape
    high = (x.shape[1] - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    wide = (x.shape[2] - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    out = np.zeros((count, high, wide))
    for o, i, j in itertools.product(range(count), range(high), range(wide)):
        first = o // (count // groups) * per_group
        top, left = i * stride[0], j * stride[1]
        patch = x[
            first : first + per_group,
            top : top + kh * dilation[0] : dilation[0],
            left : left + kw * dilation[1] : dilation[1],
        ][:, :kh, :kw]
        out[o, i, j] = (patch * w[o]).sum()
    return out.astype(F32)


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"bias": True},
    "stride": {"stride": (2, 3)},
    "dilation": {"dilation": (2, 1)},
    "groups": {"groups": 2},
    "depthwise": {"groups": 4, "bias": True},
    "padded": {"pad": (1, 2, 0, 3)},
    "same": {"mode": "same"},
    "same_stride": {"mode": "same", "stride": (2, 2)},
    "same_top_left": {"mode": "same", "stride": (2, 2), "heavy": "TOP_LEFT_HEAVY"},
    "same_dilation": {"mode": "same", "stride": (2, 1), "dilation": (2, 2)},
}


@pytest.mark.parametrize("leading", [(1, 1), (3, 2)])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, leading: tuple[int, int]) -> None:
    case = CONVOLUTIONS[name]
    groups = case.get("groups", 1)
    stride, dilation = case.get("stride", (1, 1)), case.get("dilation", (1, 1))
    pad, heavy = case.get("pad", (0, 0, 0, 0)), case.get("heavy", "BOTTOM_RIGHT_HEAVY")
    mode = case.get("mode", "valid")
    x = draw("cx", *leading, 4, 9, 8)
    w = draw("cw", 8, 4 // groups, 3, 2)
    bias = draw("cb", 8) if case.get("bias") else None
    around = [pad[:2], pad[2:]]
    if mode == "same":
        sizes = [(w.shape[2 + i] - 1) * dilation[i] + 1 for i in range(2)]
        around = [same(x.shape[3 + i], sizes[i], stride[i], heavy) for i in range(2)]
    padded = np.pad(x, ((0, 0), (0, 0), (0, 0), *around))
    images = padded.reshape(-1, *padded.shape[2:])
    expected = np.stack([convolved(each, w, stride, dilation, groups) for each in images])
    expected = expected.reshape(*leading, *expected.shape[1:])
    if bias is not None:
        expected += bias.reshape(-1, 1, 1)
    check_layers(
        lambda b: b.add_convolution(
            "l", 4 // groups, 8, 3, 2, *stride, mode, groups, w.transpose(2, 3, 1, 0), bias,
            bias is not None, input_name="x", output_name="y", dilation_factors=list(dilation),
            padding_top=pad[0], padding_bottom=pad[1], padding_left=pad[2], padding_right=pad[3],
            same_padding_asymmetry_mode=heavy,
        ),
        {"x": x},
        expected,
    )  # fmt: skip


def spread(x: np.ndarray, w: np.ndarray, stride: Sequence[int], groups: int) -> np.ndarray:
    """A deconvolution of an image, nothing of it left out; the weight has the input first."""
    channels, per_group, kh, kw = w.shape
    high = (x.shape[1] - 1) * stride[0] + kh
    wide = (x.shape[2] - 1) * stride[1] + kw
    out = np.zeros((per_group * groups, high, wide))
    for c, i, j in itertools.product(range(channels), range(x.shape[1]), range(x.shape[2])):
        first = c // (channels // groups) * per_group
        top, left = i * stride[0], j * stride[1]
        out[first : first + per_group, top : top + kh, left : left + kw] += w[c] * x[c, i, j]
    return out.astype(F32)


DECONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stride": {"stride": (2, 3)},
    "groups": {"groups": 2, "stride": (2, 2)},
    "cropped": {"pad": (1, 0, 1, 1), "stride": (2, 2)},
    "same": {"mode": "same", "stride": (2, 2), "crop": ((0, 1), (0, 0))},
    "shape": {"stride": (2, 2), "shape": (9, 9), "crop": ((0, 0), (0, 1))},
}


@pytest.mark.parametrize("name", DECONVOLUTIONS)
def test_deconvolution(name: str) -> None:
    case = DECONVOLUTIONS[name]
    groups, stride = case.get("groups", 1), case.get("stride", (1, 1))
    pad = case.get("pad", (0, 0, 0, 0))
    x = draw("dx", 4, 4, 5)
    w = draw("dw", 4, 6 // groups, 3, 2)
    whole = spread(x, w, stride, groups)
    (top, bottom), (left, right) = case.get("crop", (pad[:2], pad[2:]))
    height, width = case.get("shape", (whole.shape[1], whole.shape[2]))
    expected = whole[:, top : whole.shape[1] - bottom, left : whole.shape[2] - right]
    if "shape" in case:
        expected = np.zeros((6, height, width), F32)
        expected[:, :, :] = whole[:, :height, :width]
    check_layers(
        lambda b: b.add_convolution(
            "l", 4, 6, 3, 2, *stride, case.get("mode", "valid"), groups,
            w.transpose(2, 3, 0, 1), None, False, is_deconv=True,
            output_shape=case.get("shape"), input_name="x", output_name="y",
            padding_top=pad[0], padding_bottom=pad[1], padding_left=pad[2], padding_right=pad[3],
        ),
        {"x": x},
        expected[None, None],
    )  # fmt: skip


def pooled(
    x: np.ndarray,
    kind: str,
    size: Sequence[int],
    stride: Sequence[int],
    counts: Sequence[int],
    pad: Sequence[int],
    *,
    excludes: bool,
    within: Sequence[int] | None = None,
) -> np.ndarray:
    """Pooling of an image; a window counts what is in the padding, or in the image only."""
    out = np.zeros((x.shape[0], *counts))
    lengths = x.shape[1:]
    for i, j in itertools.product(*map(range, counts)):
        start = [i * stride[0] - pad[0], j * stride[1] - pad[1]]
        stop = [start[0] + size[0], start[1] + size[1]]
        area = np.prod(size)
        if within is not None:
            area = np.prod([min(stop[d], lengths[d] + within[d]) - start[d] for d in range(2)])
        low = [max(0, each) for each in start]
        high = [min(stop[d], lengths[d]) for d in range(2)]
        patch = x[:, low[0] : high[0], low[1] : high[1]].reshape(x.shape[0], -1)
        if kind == "MAX":
            out[:, i, j] = patch.max(1)
        elif kind == "L2":
            out[:, i, j] = np.sqrt(np.square(patch).sum(1))
        else:
            out[:, i, j] = patch.sum(1) / (patch.shape[1] if excludes else area)
    return out.astype(F32)


@pytest.mark.parametrize("excludes", [False, True])
@pytest.mark.parametrize("kind", ["MAX", "AVERAGE", "L2"])
@pytest.mark.parametrize("mode", ["VALID", "SAME", "INCLUDE_LAST_PIXEL", "INCLUDE_LAST_UNPADDED"])
def test_pooling(kind: str, mode: str, excludes: bool) -> None:
    x, size, stride = draw("px", 3, 8, 9), (3, 2), (2, 3 if mode != "INCLUDE_LAST_UNPADDED" else 2)
    within = None
    pad = (1, 0)
    if mode == "VALID":
        counts = [(8 + 2 - 3) // 2 + 1, (9 + 0 - 2) // 3 + 1]
    elif mode == "SAME":
        counts, pad = [4, 3], (0, 0)
    else:
        pad = within = (0, 0) if mode == "INCLUDE_LAST_UNPADDED" else (1, 1)
        counts = []
        for d in range(2):
            count = -(-(x.shape[1 + d] + 2 * pad[d] - size[d]) // stride[d]) + 1
            if any(pad) and (count - 1) * stride[d] >= x.shape[1 + d] + pad[d]:
                count -= 1
            counts.append(count)
    sides = {"VALID": (1, 1, 0, 0), "SAME": (0,) * 4}.get(mode, (pad[0], pad[0], pad[1], pad[1]))
    expected = pooled(x, kind, size, stride, counts, pad, excludes=excludes, within=within)
    written = "INCLUDE_LAST_PIXEL" if mode.startswith("INCLUDE") else mode
    check_layers(
        lambda b: b.add_pooling(
            "l", *size, *stride, kind, written, "x", "y", excludes,
            padding_top=sides[0], padding_bottom=sides[1],
            padding_left=sides[2], padding_right=sides[3],
        ),
        {"x": x},
        expected[None, None],
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["MAX", "AVERAGE", "L2"])
def test_global_pooling(kind: str) -> None:
    x = draw("gx", 3, 4, 5)
    expected = pooled(x, kind, (4, 5), (1, 1), (1, 1), (0, 0), excludes=True)
    check_layers(
        lambda b: b.add_pooling("l", 1, 1, 1, 1, kind, "VALID", "x", "y", is_global=True),
        {"x": x},
        expected[None, None],
    )


def interpolated(x: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    """Elements between the entries of an axis."""
    last = x.shape[axis] - 1
    places = np.clip(places, 0, last)
    low = np.floor(places).astype(int)
    rest = (places - low).reshape([-1 if each == axis else 1 for each in range(x.ndim)])
    first, second = x.take(low, axis), x.take(np.minimum(low + 1, last), axis)
    return (first * (1 - rest) + second * rest).astype(F32)


def sampled(method: str, length: int, count: int) -> np.ndarray:
    """Places between pixels."""
    if method == "UPSAMPLE_MODE":
        return np.linspace(0, length - length / count, count)
    if method == "ROI_ALIGN_MODE":
        spacing = max(1, length - 1) / count
        return np.linspace(0.5 * spacing, 0.5 * spacing + (count - 1) * spacing, count)
    if method == "ALIGN_ENDPOINTS_MODE" and count == 1:
        return np.array([(length - 1) / 2])
    return np.linspace(0, length - 1, count)


@pytest.mark.parametrize("size", [(7, 10), (3, 2), (1, 4)])
@pytest.mark.parametrize(
    "method",
    ["STRICT_ALIGN_ENDPOINTS_MODE", "ALIGN_ENDPOINTS_MODE", "UPSAMPLE_MODE", "ROI_ALIGN_MODE"],
)
def test_resize_bilinear(method: str, size: tuple[int, int]) -> None:
    x = draw("rx", 2, 4, 5)
    expected = interpolated(x, 1, sampled(method, 4, size[0]))
    expected = interpolated(expected, 2, sampled(method, 5, size[1]))
    check_layers(
        lambda b: b.add_resize_bilinear("l", "x", "y", *size, method),
        {"x": x},
        expected[None, None],
    )


ORDERS = {
    "CORNERS_HEIGHT_FIRST": lambda t, le, b, r: (t, le, b, r),
    "CORNERS_WIDTH_FIRST": lambda t, le, b, r: (le, t, r, b),
    "CENTER_SIZE_HEIGHT_FIRST": lambda t, le, b, r: ((t + b) / 2, (le + r) / 2, b - t, r - le),
    "CENTER_SIZE_WIDTH_FIRST": lambda t, le, b, r: ((le + r) / 2, (t + b) / 2, r - le, b - t),
}


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "method", ["STRICT_ALIGN_ENDPOINTS_MODE", "ALIGN_ENDPOINTS_MODE", "ROI_ALIGN_MODE"]
)
def test_crop_resize(method: str, order: str, normalized: bool, numbered: bool) -> None:
    x = draw("crop", 1, 2, 3, 7, 9)
    corners = [(1.0, 2.0, 5.0, 6.5), (0.0, 0.5, 6.0, 8.0), (2.0, 1.0, 4.5, 3.0)]
    owners = [1, 0, 1]
    rows, cuts = [], []
    for (top, left, bottom, right), owner in zip(corners, owners, strict=True):
        of = [owner] if numbered else [0, 1]
        picked = x[0, of]
        for axis, first, last, count in ((2, top, bottom, 3), (3, left, right, 1)):
            places = first + sampled(method, last - first + 1, count)
            picked = interpolated(picked, axis, places)
        cuts.append(picked)
        row = ORDERS[order](top, left, bottom, right)
        if normalized:
            box = ORDERS[order](top / 6, left / 8, bottom / 6, right / 8)
            row = box
        rows.append([owner, *row] if numbered else row)
    boxes = np.array(rows, F32).reshape(3, 1, -1, 1, 1)
    check_layers(
        lambda b: b.add_crop_resize("l", ["x", "r"], "y", 3, 1, method, normalized, order, 1.0),
        {"x": x, "r": boxes},
        np.stack(cuts),
        tolerance=1e-4,
    )


CORNERS = {
    "DEFAULT": lambda n, m: np.arange(m) * ((n - n / m) / (m - 1)),
    "ALIGN_CORNERS_TRUE": lambda n, m: np.arange(m) * ((n - 1) / (m - 1)),
    "ALIGN_CORNERS_FALSE": lambda n, m: (np.arange(m) + 0.5) * (n / m) - 0.5,
}


@pytest.mark.parametrize("factors", [(2, 3), (1.5, 2.5)])
@pytest.mark.parametrize("corners", CORNERS)
def test_upsample_bilinear(corners: str, factors: tuple[float, float]) -> None:
    if corners == "DEFAULT" and factors != (2, 3):
        factors = (3, 2)
    x = draw("ux", 2, 4, 5)
    expected = x
    for axis, factor in zip((1, 2), factors, strict=True):
        length = x.shape[axis]
        expected = interpolated(expected, axis, CORNERS[corners](length, int(length * factor)))
    check_layers(
        lambda b: b.add_upsample("l", *factors, "x", "y", "BILINEAR", corners),
        {"x": x},
        expected[None, None],
    )


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def clipped(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -50, 50)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("activation", ["TANH", "SCALED_TANH", "RELU"])
@pytest.mark.parametrize("before", [(1, 2, 5, 1, 1), (2, 5, 1, 1, 1)])
def test_simple_recurrent(
    before: tuple[int, ...], activation: str, every: bool, reverse: bool
) -> None:
    """The state has the batch as its second axis, or as its first, where coremltools puts it."""
    function = {
        "TANH": np.tanh,
        "SCALED_TANH": lambda x: 1.7159 * np.tanh(2 / 3 * x),
        "RELU": lambda x: np.maximum(x, 0),
    }[activation]
    x, h = draw("sx", 4, 2, 3), draw("sh", 1, 2, 5)
    w, r, bias = draw("sw", 5, 3), draw("sr", 5, 5), draw("sb", 5)
    state, results = h[0], [None] * 4
    for t in reversed(range(4)) if reverse else range(4):
        state = function(clipped(x[t] @ w.T + state @ r.T + bias))
        results[t] = state
    expected = np.stack(results) if every else state[None]
    check_layers(
        lambda b: b.add_simple_rnn(
            "l", r, w, bias, 5, 3, activation, ["x", "h"], ["y0", "y1"], every, reverse
        ),
        {"x": x[..., None, None], "h": h.reshape(before)},
        [expected[..., None, None], state[None, :, :, None, None]],
        tolerance=1e-4,
    )


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("bias", "inner"), [(False, "SIGMOID"), (True, "SIGMOID_HARD")])
def test_gru(bias: bool, inner: str, reverse: bool, every: bool) -> None:
    gate = {"SIGMOID": sigmoid, "SIGMOID_HARD": lambda x: np.clip(0.2 * x + 0.5, 0, 1)}[inner]
    x, h = draw("gx", 4, 2, 3), draw("gh", 1, 2, 5)
    w = [draw(f"gw{i}", 5, 3) for i in range(3)]
    r = [draw(f"gr{i}", 5, 5) for i in range(3)]
    shift = [draw(f"gb{i}", 5) if bias else np.zeros(5, F32) for i in range(3)]
    state, results = h[0], [None] * 4
    for t in reversed(range(4)) if reverse else range(4):
        z, reset = (gate(clipped(x[t] @ w[i].T + state @ r[i].T + shift[i])) for i in range(2))
        o = np.tanh(clipped(x[t] @ w[2].T + (state * reset) @ r[2].T + shift[2]))
        state = (1 - z) * o + z * state
        results[t] = state
    expected = np.stack(results) if every else state[None]
    check_layers(
        lambda b: b.add_gru(
            "l", r, w, shift if bias else None, 5, 3, ["x", "h"], ["y0", "y1"],
            output_all=every, reverse_input=reverse, inner_activation=inner,
        ),
        {"x": x[..., None, None], "h": h[..., None, None]},
        [expected[..., None, None], state[None, :, :, None, None]],
        tolerance=1e-4,
    )  # fmt: skip


def lstm(
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    name: str,
    *,
    bias: bool,
    holes: bool,
    reverse: bool,
    options: dict[str, Any],
) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
    """Parameters in the builder's order of gates (i, f, o, g), outputs and last states."""
    w, r = (
        [draw(f"{name}w{i}", 5, 3) for i in range(4)],
        [draw(f"{name}r{i}", 5, 5) for i in range(4)],
    )
    b = [draw(f"{name}b{i}", 5) if bias else np.zeros(5, F32) for i in range(4)]
    p = [draw(f"{name}p{i}", 5) if holes else np.zeros(5, F32) for i in range(3)]
    results: list[Any] = [None] * len(x)
    limit = options.get("cell_clip_threshold", 50)
    extra = 1 if options.get("forget_bias") else 0
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        gate = [x[t] @ w[i].T + h @ r[i].T + b[i] for i in range(4)]
        i = sigmoid(clipped(gate[0] + p[0] * c))
        f = sigmoid(clipped(gate[1] + p[1] * c + extra))
        if options.get("coupled_input_forget_gate"):
            f = 1 - i
        z = np.tanh(clipped(gate[3]))
        c = np.clip(c * f + i * z, -limit, limit)
        o = sigmoid(clipped(gate[2] + p[2] * c))
        h = np.tanh(c) * o
        results[t] = h
    return [w, r, b if bias else None, p if holes else None], np.stack(results), h, c


LSTMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "forget": {"forget_bias": True},
    "coupled": {"coupled_input_forget_gate": True},
    "clipped": {"cell_clip_threshold": 0.25},
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize(("bias", "holes"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("name", LSTMS)
def test_lstm(name: str, bias: bool, holes: bool, every: bool, reverse: bool) -> None:
    options = LSTMS[name]
    x, h, c = draw("lx", 4, 2, 3), draw("lh", 2, 5), draw("lc", 2, 5)
    (w, r, b, p), results, last, cell = lstm(
        x, h, c, "l", bias=bias, holes=holes, reverse=reverse, options=options
    )
    expected = results if every else last[None]
    check_layers(
        lambda builder: builder.add_unilstm(
            "l", r, w, b, 5, 3, ["x", "h", "c"], ["y0", "y1", "y2"], peep=p,
            output_all=every, reverse_input=reverse, **options,
        ),
        {name: each.reshape(-1, 2, each.shape[-1], 1, 1) for name, each in
         {"x": x, "h": h, "c": c}.items()},
        [each.reshape(-1, 2, 5, 1, 1) for each in (expected, last, cell)],
        tolerance=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("every", [False, True])
def test_lstm_of_both_directions(every: bool) -> None:
    x = draw("lx", 4, 2, 3)
    states = [draw(f"bs{i}", 2, 5) for i in range(4)]
    kinds: dict[str, Any] = {"bias": True, "holes": False, "options": {}}
    one, forth, h, c = lstm(x, states[0], states[1], "l", reverse=False, **kinds)
    other, back, hb, cb = lstm(x, states[2], states[3], "b", reverse=True, **kinds)
    expected = np.concatenate([forth, back] if every else [h[None], hb[None]], axis=2)
    names = ["x", "h", "c", "hb", "cb"]
    arrays = dict(zip(names, [x, *states], strict=True))
    check_layers(
        lambda builder: builder.add_bidirlstm(
            "l", one[1], one[0], one[2], other[1], other[0], other[2], 5, 3, names,
            [f"y{i}" for i in range(5)], output_all=every,
        ),
        {name: each.reshape(-1, 2, each.shape[-1], 1, 1) for name, each in arrays.items()},
        [expected[..., None, None], *(each.reshape(1, 2, 5, 1, 1) for each in (h, c, hb, cb))],
        tolerance=1e-4,
    )  # fmt: skip
