"""Layers, images and quantised operators of the tests' executor, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.mil_executor import run_kernel

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F = torch.nn.functional

RNG = np.random.default_rng(2)


def draw(*shape: int) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def t(array: np.ndarray) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array))


IMAGE, VOLUME, LINE = draw(2, 4, 7, 9), draw(2, 4, 5, 6, 4), draw(2, 4, 11)
FILTERS, DEEP, ROW = draw(6, 2, 3, 2), draw(6, 4, 2, 3, 2), draw(6, 4, 3)
TURNED = draw(4, 3, 3, 4)
BIAS, SCALE, SHIFT = draw(6), draw(4), draw(4)
MEAN, SPREAD = draw(4), np.abs(draw(4)) + 0.5
BYTES = RNG.integers(-128, 128, (3, 4, 5)).astype(np.int8)
STEPS, SHIFTS = np.abs(draw(4)) + 0.1, RNG.integers(-5, 6, 4).astype(np.int8)
PLACES = draw(2, 5, 6, 2) * 0.6
COUNTS = np.array([4, 7], np.int32)
BATCHES = draw(8, 2, 3, 4)


def _pool(kind: str, **more: Any) -> tuple[str, dict[str, Any]]:
    given = {"x": IMAGE, "kernel_sizes": [3, 2], "strides": [2, 1], "pad_type": "custom"}
    return kind, {**given, "pad": [1, 1, 0, 0], **more}


def _gates(count: int, order: list[int]) -> tuple[Any, dict[str, np.ndarray]]:
    """A layer of PyTorch, and its weights with their gates in MIL's order."""
    kind = {4: torch.nn.LSTM, 3: torch.nn.GRU, 1: torch.nn.RNN}[count]
    torch.manual_seed(0)
    layer = kind(5, 6)
    names = {"weight_ih_l0": "weight_ih", "weight_hh_l0": "weight_hh"}

    def turned(name: str) -> np.ndarray:
        parts = np.split(getattr(layer, name).detach().numpy(), count)
        return np.concatenate([parts[i] for i in order])

    found = {mil: turned(name) for name, mil in names.items()}
    return layer, found | {"bias_ih": turned("bias_ih_l0"), "bias_hh": turned("bias_hh_l0")}


SEQUENCE, STATE, CELL = draw(3, 2, 5), draw(2, 6), draw(2, 6)


def _lstm() -> tuple[dict[str, Any], Callable[[], Any]]:
    layer, weights = _gates(4, [0, 1, 3, 2])
    bias = weights.pop("bias_ih") + weights.pop("bias_hh")
    given = {"x": SEQUENCE, "initial_h": STATE, "initial_c": CELL, "output_sequence": True}
    return {**given, **weights, "bias": bias}, lambda: layer(
        t(SEQUENCE), (t(STATE)[None], t(CELL)[None])
    )[0]


def _gru() -> tuple[dict[str, Any], Callable[[], Any]]:
    """PyTorch's gates are reset, update and new; MIL's reset, output and update."""
    layer, weights = _gates(3, [0, 2, 1])
    inward, bias = weights.pop("bias_ih"), weights.pop("bias_hh")
    given = {"x": SEQUENCE, "initial_h": STATE, "output_sequence": True, "reset_after": True}
    given |= {"input_bias": inward, "bias": bias}
    return {**given, **weights}, lambda: layer(t(SEQUENCE), t(STATE)[None])[0]


def _rnn() -> tuple[dict[str, Any], Callable[[], Any]]:
    layer, weights = _gates(1, [0])
    bias = weights.pop("bias_ih") + weights.pop("bias_hh")
    given = {"x": SEQUENCE, "initial_h": STATE, "output_sequence": True, "bias": bias}
    return {**given, **weights}, lambda: layer(t(SEQUENCE), t(STATE)[None])[0]


def _blocks(x: np.ndarray) -> Any:
    """Every second row and column as an image of its own."""
    padded = F.pad(t(x), (2, 1, 1, 0))
    n, c, h, w = padded.shape
    apart = padded.reshape(n, c, h // 2, 2, w // 2, 2)
    return apart.permute(3, 5, 0, 1, 2, 4).reshape(4 * n, c, h // 2, w // 2)


def _together(x: np.ndarray) -> Any:
    n, c, h, w = x.shape
    apart = t(x).reshape(2, 2, n // 4, c, h, w)
    return apart.permute(2, 3, 4, 0, 5, 1).reshape(n // 4, c, 2 * h, 2 * w)[:, :, 1:, :-1]


BOXES = np.array([[1.0, 2.0, 5.0, 7.0], [0.0, 0.0, 6.0, 3.0]], np.float32)
OF_IMAGES = np.array([1, 0], np.int32)


def _cut() -> Any:
    """Corners of boxes are pixels of the grid's corners, y before x."""
    found = []
    for box, image in zip(BOXES, OF_IMAGES, strict=True):
        rows, columns = torch.linspace(box[0], box[2], 4), torch.linspace(box[1], box[3], 3)
        y, x = torch.meshgrid(rows / 6 * 2 - 1, columns / 8 * 2 - 1, indexing="ij")
        grid = torch.stack([x, y], -1)[None].float()
        found.append(F.grid_sample(t(IMAGE[image : image + 1]), grid, align_corners=True)[0])
    return torch.stack(found)


def _reversed() -> Any:
    rows = zip(t(IMAGE), COUNTS.tolist(), strict=True)
    return torch.stack([torch.cat([x[:, :n].flip(1), x[:, n:]], 1) for x, n in rows])


CASES: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {
    "conv": (
        "conv",
        {"x": IMAGE, "weight": FILTERS, "bias": BIAS, "strides": [2, 1], "pad_type": "custom",
         "pad": [1, 2, 0, 1], "dilations": [1, 3], "groups": 2},
        lambda: F.conv2d(
            F.pad(t(IMAGE), (0, 1, 1, 2)), t(FILTERS), t(BIAS), (2, 1), 0, (1, 3), 2
        ),
    ),
    "conv_same": (
        "conv",
        {"x": LINE, "weight": ROW, "pad_type": "same"},
        lambda: F.conv1d(t(LINE), t(ROW), padding="same"),
    ),
    "conv_of_three_axes": (
        "conv",
        {"x": VOLUME, "weight": DEEP, "pad_type": "valid", "strides": [1, 2, 1]},
        lambda: F.conv3d(t(VOLUME), t(DEEP), stride=(1, 2, 1)),
    ),
    "conv_transpose": (
        "conv_transpose",
        {"x": IMAGE, "weight": TURNED, "strides": [2, 3], "pad_type": "custom",
         "pad": [1, 1, 2, 2], "dilations": [2, 1], "groups": 2},
        lambda: F.conv_transpose2d(
            t(IMAGE), t(TURNED), None, (2, 3), (1, 2), 0, 2, (2, 1)
        ),
    ),
    "max_pool": (*_pool("max_pool"), lambda: F.max_pool2d(t(IMAGE), (3, 2), (2, 1), (1, 0))),
    "max_pool_ceil": (
        *_pool("max_pool", strides=[3, 2], ceil_mode=True, pad=[1, 1, 1, 1]),
        lambda: F.max_pool2d(t(IMAGE), (3, 2), (3, 2), (1, 1), ceil_mode=True),
    ),
    "avg_pool": (*_pool("avg_pool"), lambda: F.avg_pool2d(t(IMAGE), (3, 2), (2, 1), (1, 0))),
    "avg_pool_exclusive": (
        *_pool("avg_pool", exclude_padding_from_average=True),
        lambda: F.avg_pool2d(t(IMAGE), (3, 2), (2, 1), (1, 0), count_include_pad=False),
    ),
    "avg_pool_ceil": (
        *_pool("avg_pool", strides=[3, 2], ceil_mode=True, pad=[1, 1, 1, 1]),
        lambda: F.avg_pool2d(t(IMAGE), (3, 2), (3, 2), (1, 1), ceil_mode=True),
    ),
    "avg_pool_of_a_volume": (
        "avg_pool",
        {"x": VOLUME, "kernel_sizes": [2, 3, 2], "pad_type": "valid"},
        lambda: F.avg_pool3d(t(VOLUME), (2, 3, 2), 1),
    ),
    "l2_pool": (
        *_pool("l2_pool", pad_type="valid"),
        lambda: F.lp_pool2d(t(IMAGE), 2, (3, 2), (2, 1)),
    ),
    "batch_norm": (
        "batch_norm",
        {"x": IMAGE, "mean": MEAN, "variance": SPREAD, "gamma": SCALE, "beta": SHIFT,
         "epsilon": np.float32(1e-3)},
        lambda: F.batch_norm(t(IMAGE), t(MEAN), t(SPREAD), t(SCALE), t(SHIFT), eps=1e-3),
    ),
    "instance_norm": (
        "instance_norm",
        {"x": IMAGE, "gamma": SCALE, "beta": SHIFT, "epsilon": np.float32(1e-3)},
        lambda: F.instance_norm(t(IMAGE), None, None, t(SCALE), t(SHIFT), eps=1e-3),
    ),
    "local_response_norm": (
        "local_response_norm",
        {"x": IMAGE, "size": 3, "alpha": 0.5, "beta": 0.6, "k": 1.5},
        lambda: F.local_response_norm(t(IMAGE), 3, 0.5, 0.6, 1.5),
    ),
    "lstm": ("lstm", *_lstm()),
    "gru": ("gru", *_gru()),
    "rnn": ("rnn", *_rnn()),
    **{
        f"resize_bilinear_{mode}": (
            "resize_bilinear",
            {"x": IMAGE, "target_size_height": 11, "target_size_width": 4, "sampling_mode": mode},
            lambda corners=corners: F.interpolate(
                t(IMAGE), (11, 4), mode="bilinear", align_corners=corners
            ),
        )
        for mode, corners in (("STRICT_ALIGN_CORNERS", True), ("UNALIGN_CORNERS", False))
    },
    "resize_nearest_neighbor": (
        "resize_nearest_neighbor",
        {"x": IMAGE, "target_size_height": 11, "target_size_width": 4},
        lambda: F.interpolate(t(IMAGE), (11, 4), mode="nearest-exact"),
    ),
    "upsample_nearest_neighbor": (
        "upsample_nearest_neighbor",
        {"x": IMAGE, "scale_factor_height": 2, "scale_factor_width": 3},
        lambda: F.interpolate(t(IMAGE), scale_factor=(2, 3), mode="nearest"),
    ),
    **{
        f"upsample_bilinear_{corners}": (
            "upsample_bilinear",
            {"x": IMAGE, "scale_factor_height": 2, "scale_factor_width": 3,
             "align_corners": corners},
            lambda corners=corners: F.interpolate(
                t(IMAGE), scale_factor=(2, 3), mode="bilinear", align_corners=corners
            ),
        )
        for corners in (True, False)
    },
    **{
        f"resample_{sampling}_{padding}_{corners}": (
            "resample",
            {"x": IMAGE, "coordinates": PLACES, "sampling_mode": sampling, "padding_mode": padding,
             "padding_value": 0.0, "coordinates_mode": "normalized_minus_one_to_one",
             "align_corners": corners},
            lambda s=sampling, p=padding, c=corners: F.grid_sample(
                t(IMAGE), t(PLACES), s,
                {"constant": "zeros", "border": "border"}.get(p, "reflection"), c,
            ),
        )
        for sampling in ("bilinear", "nearest")
        for padding, corners in (
            ("constant", True), ("border", False), ("reflection", True), ("symmetric", False),
        )
    },
    "crop_resize": (
        "crop_resize",
        {"x": IMAGE, "boxes": BOXES, "box_indices": OF_IMAGES, "target_height": 4,
         "target_width": 3, "sampling_mode": "ALIGN_CORNERS"},
        _cut,
    ),
    "reverse_sequence": (
        "reverse_sequence",
        {"x": IMAGE, "lengths": COUNTS, "seq_axis": 2, "batch_axis": 0},
        _reversed,
    ),
    "space_to_batch": (
        "space_to_batch",
        {"x": IMAGE, "block_shape": np.array([2, 2]), "paddings": np.array([[1, 0], [2, 1]])},
        lambda: _blocks(IMAGE),
    ),
    "batch_to_space": (
        "batch_to_space",
        {"x": BATCHES, "block_shape": np.array([2, 2]), "crops": np.array([[1, 0], [0, 1]])},
        lambda: _together(BATCHES),
    ),
    "dequantize": (
        "dequantize",
        {"input": BYTES, "scale": np.float32(0.25), "zero_point": np.int8(-7)},
        lambda: torch._make_per_tensor_quantized_tensor(t(BYTES), 0.25, -7).dequantize(),
    ),
    "dequantize_channels": (
        "dequantize",
        {"input": BYTES, "scale": STEPS, "zero_point": SHIFTS, "axis": 1},
        lambda: torch._make_per_channel_quantized_tensor(
            t(BYTES), t(STEPS).double(), t(SHIFTS).long(), 1
        ).dequantize(),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")  # PyTorch's, of its old tensors
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, record_property: Callable[[str, object], None]) -> None:
    op, inputs, wanted = CASES[name]
    found = run_kernel(op, inputs)
    found = found[0] if isinstance(found, tuple) else found
    expected = wanted().detach().numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    record_property("mil_judged", [op])
