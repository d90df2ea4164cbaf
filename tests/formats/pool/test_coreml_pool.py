"""MIL's poolings in Relay, against ONNX Runtime and PyTorch's rule spelled out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import evaluate
from support.coreml_models import tools
from support.coreml_networks import message_of
from support.mil import check_import
from support.mil_executor import execute
from support.nn_layers import evaluate_network
from support.one_node import onnx_values

import serde
import serde.relay as relay

pytestmark = pytest.mark.wide

AUTO = {"same": "SAME_UPPER", "same_lower": "SAME_LOWER", "valid": "VALID"}


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "line": ((2, 3, 9), {"kernel_sizes": [3], "strides": [2]}),
    "image": ((1, 2, 9, 8), {"kernel_sizes": [3, 2], "strides": [2, 3]}),
    "volume": ((1, 2, 5, 6, 4), {"kernel_sizes": [2, 3, 2], "strides": [1, 2, 2]}),
    "by_one": ((1, 2, 6, 5), {"kernel_sizes": [2, 3]}),
}


def judged(op: str, x: np.ndarray, attrs: dict[str, Any], **own: Any) -> np.ndarray:
    """What ONNX Runtime makes of a window: the norm by way of the mean of squares."""
    given = {"kernel_shape": attrs["kernel_sizes"], **own}
    if "strides" in attrs:
        given["strides"] = attrs["strides"]
    if op == "max_pool":
        return onnx_values("MaxPool", x, **given)
    if op == "l2_pool":
        means = onnx_values("AveragePool", x * x, count_include_pad=1, **given)
        return np.sqrt(means * np.prod(attrs["kernel_sizes"]))
    exclude = attrs.get("exclude_padding_from_average", False)
    return onnx_values("AveragePool", x, count_include_pad=int(not exclude), **given)


def cases() -> list[Any]:
    found = []
    for op, name in itertools.product(["max_pool", "avg_pool", "l2_pool"], WINDOWS):
        if op == "l2_pool" and name == "volume":
            continue
        for exclude in (False, True) if op == "avg_pool" else (False,):
            extra = {"exclude_padding_from_average": True} if exclude else {}
            found.append(pytest.param(op, name, extra, id=f"{op}-{name}-{exclude}"))
    return found


@pytest.mark.parametrize(("op", "name", "extra"), cases())
@pytest.mark.parametrize("pad_type", ["valid", "same", "same_lower"])
def test_pool(op: str, name: str, extra: dict[str, Any], pad_type: str) -> None:
    shape, attrs = WINDOWS[name]
    x, attrs = draw(*shape), attrs | extra
    wanted = judged(op, x, attrs, auto_pad=AUTO[pad_type])
    check_import(op, {"x": x}, {**attrs, "pad_type": pad_type}, target="iOS16", expected=[wanted])


@pytest.mark.parametrize(("op", "name", "extra"), cases())
def test_pool_of_padded_data(op: str, name: str, extra: dict[str, Any]) -> None:
    shape, attrs = WINDOWS[name]
    x, attrs = draw(*shape), attrs | extra
    rank = len(shape) - 2
    pad = [[1, 0], [0, 1], [1, 1]][:rank]
    before, after = zip(*pad, strict=True)
    wanted = judged(op, x, attrs, pads=[*before, *after])
    given = {**attrs, "pad_type": "custom", "pad": [each for pair in pad for each in pair]}
    check_import(op, {"x": x}, given, expected=[wanted])


def rounded_up(op: str, x: np.ndarray, size: int, stride: int, pad: int, exclude: bool) -> Any:
    """PyTorch's rule along one axis: none begins behind the data, no count behind the padding."""
    length = x.shape[-1]
    count = -(-(length + 2 * pad - size) // stride) + 1
    if (count - 1) * stride >= length + pad:
        count -= 1
    columns = []
    for index in range(count):
        start = index * stride - pad
        end = min(start + size, length + pad)
        inside = x[..., max(start, 0) : min(end, length)]
        if op == "max_pool":
            columns.append(inside.max(-1))
        elif op == "l2_pool":
            columns.append(np.sqrt((inside * inside).sum(-1)))
        else:
            columns.append(inside.sum(-1) / (inside.shape[-1] if exclude else end - start))
    return np.stack(columns, -1).astype(np.float32)


@pytest.mark.parametrize(("size", "stride", "pad"), [(3, 2, 0), (3, 2, 1), (2, 2, 1), (4, 3, 2)])
@pytest.mark.parametrize("length", [7, 8])
@pytest.mark.parametrize(
    ("op", "exclude"),
    [("max_pool", False), ("avg_pool", False), ("avg_pool", True), ("l2_pool", False)],
)
def test_pool_that_rounds_up(
    op: str, exclude: bool, length: int, size: int, stride: int, pad: int
) -> None:
    x = draw(2, 3, length)
    attrs: dict[str, Any] = {"kernel_sizes": [size], "strides": [stride], "ceil_mode": True}
    attrs |= {"pad_type": "custom", "pad": [pad, pad]}
    if op == "avg_pool":
        attrs["exclude_padding_from_average"] = exclude
    wanted = rounded_up(op, x, size, stride, pad, exclude)
    check_import(op, {"x": x}, attrs, expected=[wanted])


@pytest.mark.parametrize(
    ("size", "stride", "pad"), [(2, 2, 0), (3, 2, 0), (3, 2, 1), (3, 2, 2), (2, 2, 1), (4, 3, 2)]
)
@pytest.mark.parametrize(
    ("op", "exclude"),
    [("max_pool", False), ("avg_pool", False), ("avg_pool", True), ("l2_pool", False)],
)
def test_pool_that_rounds_up_along_an_open_length(
    op: str, exclude: bool, size: int, stride: int, pad: int
) -> None:
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import get_new_symbol

    attrs: dict[str, Any] = {"kernel_sizes": [size], "strides": [stride], "ceil_mode": True}
    attrs |= {"pad_type": "custom", "pad": [pad, pad]}
    if op == "avg_pool":
        attrs["exclude_padding_from_average"] = exclude
    spec = Builder.TensorSpec(shape=(2, 3, get_new_symbol()))

    @Builder.program(input_specs=[spec], opset_version=ct.target.iOS15)
    def program(x: Any) -> Any:
        return getattr(Builder, op)(x=x, **attrs)

    made = ct.convert(
        program,
        inputs=[ct.TensorType(name="x", shape=(2, 3, ct.RangeDim(5, 20, 9)))],
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
        skip_model_load=True,
    )
    if op == "avg_pool" and not exclude and size < stride + pad:
        with pytest.raises(serde.SerdeError, match="counts padding and is rounded up along open"):
            serde.to_relay(made)
        return
    model = serde.to_relay(made)
    for length in (5, 6, 7, 8, 9, 10):
        x = draw(2, 3, length)
        wanted = rounded_up(op, x, size, stride, pad, exclude)
        (found,) = evaluate(model, {"x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_windows_apart_along_an_open_length_are_refused() -> None:
    """Rounded up, the last one may begin beyond the data."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import get_new_symbol

    spec = Builder.TensorSpec(shape=(2, 3, get_new_symbol()))

    @Builder.program(input_specs=[spec], opset_version=ct.target.iOS15)
    def program(x: Any) -> Any:
        return Builder.max_pool(
            x=x, kernel_sizes=[2], strides=[3], pad_type="valid", ceil_mode=True
        )

    made = ct.convert(
        program,
        inputs=[ct.TensorType(name="x", shape=(2, 3, ct.RangeDim(5, 20, 9)))],
        convert_to="mlprogram",
        skip_model_load=True,
    )
    with pytest.raises(serde.SerdeError, match="windows of 2 at every 3"):
        serde.to_relay(made)


@pytest.mark.parametrize("target", ["iOS15", "iOS14"])
@pytest.mark.parametrize(
    "attrs",
    [
        {"pool_size": (3, 2), "strides": (2, 3), "padding": (1, 0, 1, 1), "ceil_mode": True},
        {"pool_size": (2, 1), "strides": (1, 2), "padding": (2, 0, 0, 1)},
    ],
)
def test_means_of_no_data_are_zero(attrs: dict[str, Any], target: str, tmp_path: Path) -> None:
    """MIL divides by the number of elements, and makes NaN of none."""
    data = draw(1, 2, 9, 8)
    x = relay.var("x", shape=data.shape)
    body = relay.nn.avg_pool2d(x, count_include_pad=False, **attrs)
    path = serde.from_relay(
        relay.IRModule.from_expr(relay.Function([x], body)),
        format="coreml", path=tmp_path / ("m.mlmodel" if target == "iOS14" else "m.mlpackage"),
        minimum_deployment_target=target, compute_precision="float32",
    )  # fmt: skip
    if target == "iOS14":
        (found,) = evaluate_network(message_of(path), {"x": data}).values()
    else:
        (found,) = execute(path, {"x": data})
    (height, width), (down, right) = attrs["pool_size"], attrs["strides"]
    top, left, *_ = attrs["padding"]
    assert not found.all()
    for row, column in np.ndindex(found.shape[2:]):
        y, z = row * down - top, column * right - left
        part = data[:, :, max(y, 0) : max(y + height, 0), max(z, 0) : max(z + width, 0)]
        wanted = part.mean((2, 3)) if part.size else np.zeros((1, 2))
        np.testing.assert_allclose(found[:, :, row, column], wanted, rtol=1e-5, atol=1e-6)
