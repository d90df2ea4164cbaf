"""What :class:`ConvertLayout` makes of operators that have a layout.

Source: ``FTVMConvertOpLayout`` of TVM 0.18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir import Expr, TensorType
from serde.relay.ir.attrs import register_op_attr
from serde.relay.ir.builders import lookup_builder
from serde.relay.ir.layout import TensorLayout, change_layout_of_shape
from serde.relay.tvm.passes.layout.passes import LayoutConfig

Attributes = Mapping[str, AnyValue]
Operands = Sequence[Expr]
Types = Sequence[TensorType]
Conversion = Callable[[Attributes, Operands, Types, Sequence[str]], AnyValue]

_USUAL_KERNELS: Final[dict[str, dict[str, str]]] = {
    "nn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"},
    "nn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWOI"},
    "nn.deformable_conv2d": {"NCHW": "OIHW", "NHWC": "HWIO"},
    "qnn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO"},
    "qnn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
}
"""For each layout of the data, the layout of the weight that ``"default"`` stands for."""

_BLOCKS: Final = re.compile(r"NCHW\d+c")


def _build(name: str, inputs: Operands, attrs: Attributes) -> AnyValue:
    path = name.replace("qnn.", "qnn.op.", 1) if name.startswith("qnn.") else name
    return lookup_builder(path)(*inputs, **attrs)


def _two_layouts(name: str, desired: Sequence[str]) -> tuple[str, str]:
    if len(desired) != 2:
        raise RelayError(f"{name}: expected a layout of the data and one of the other operand")
    data, other = map(str, desired)
    if data == "default":
        raise RelayError(f"{name}: the layout of the data cannot be 'default'")
    return data, other


def _is_depthwise(attrs: Attributes, types: Types) -> bool:
    """Whether each channel of the data has one filter of its own."""
    data = change_layout_of_shape(types[0].shape, attrs["data_layout"], "NCHW")
    weight = change_layout_of_shape(types[1].shape, attrs["kernel_layout"], "OIHW")
    return bool(data[1] == weight[0] == attrs["groups"])


def _layer(name: str, *, skips: bool = False) -> Conversion:
    """Return the conversion of a layer with a weight.

    Args:
        name: Its operator.
        skips: Whether it counts for a :class:`LayoutConfig`.
    """

    def convert(
        attrs: Attributes, inputs: Operands, tinfos: Types, desired_layouts: Sequence[str]
    ) -> AnyValue:
        config = LayoutConfig.current()
        if skips and config is not None and config.check_skip():
            return _build(name, inputs, attrs)
        data_layout, kernel_layout = _two_layouts(name, desired_layouts)
        blocks = _BLOCKS.fullmatch(data_layout) if name == "nn.conv2d" else None
        if blocks is not None:
            return _in_blocks(attrs, inputs, tinfos, data_layout, kernel_layout)
        if kernel_layout == "default":
            found = _USUAL_KERNELS[name].get(data_layout)
            if found is None:
                raise RelayError(f"{name}: layout {data_layout} has no usual layout of weights")
            depthwise = name in ("nn.conv2d", "qnn.conv2d") and data_layout == "NHWC"
            kernel_layout = "HWOI" if depthwise and _is_depthwise(attrs, tinfos) else found
        new = {**attrs, "data_layout": data_layout, "kernel_layout": kernel_layout}
        return _build(name, inputs, new)

    return convert


def _in_blocks(
    attrs: Attributes, inputs: Operands, tinfos: Types, data_layout: str, kernel_layout: str
) -> AnyValue:
    """Return a convolution in blocks, if all channels divide into them."""
    if kernel_layout == "default":
        raise RelayError("nn.conv2d: a layout in blocks needs a layout of the weight")
    whole = _divides(tinfos[0], attrs["data_layout"], data_layout)
    if not whole or not _divides(tinfos[1], attrs["kernel_layout"], kernel_layout):
        return _build("nn.conv2d", inputs, attrs)
    new = {**attrs, "data_layout": data_layout, "kernel_layout": kernel_layout}
    return lookup_builder("nn.contrib_conv2d_nchwc")(*inputs, **new)


def _divides(type_: TensorType, layout: str, blocks: str) -> bool:
    """Whether all axes of a tensor divide into the blocks of a layout."""
    target = TensorLayout(blocks)
    pairs = zip(TensorLayout(layout), type_.shape, strict=True)
    factors = [(max(target.factor_of(letter), 1), length) for letter, length in pairs]
    return all(size == 1 or type(n) is not int or n % size == 0 for size, n in factors)


def _pooling(name: str, allowed: Iterable[str] = ()) -> Conversion:
    """Return the conversion of a pooling, whose result has the layout of its data."""

    def convert(
        attrs: Attributes, inputs: Operands, tinfos: Types, desired_layouts: Sequence[str]
    ) -> AnyValue:
        layout = str(desired_layouts[0])
        if allowed and layout not in allowed:
            raise RelayError(f"{name}: expected one of {', '.join(allowed)}, found {layout}")
        return _build(name, inputs, {**attrs, "layout": layout, "out_layout": layout})

    return convert


def _image(name: str) -> Conversion:
    def convert(
        attrs: Attributes, inputs: Operands, tinfos: Types, desired_layouts: Sequence[str]
    ) -> AnyValue:
        if len(desired_layouts) != 1 or str(desired_layouts[0]) == "default":
            raise RelayError(f"{name}: expected one layout, found {list(desired_layouts)}")
        return _build(name, inputs, {**attrs, "layout": str(desired_layouts[0])})

    return convert


def _regions(name: str) -> Conversion:
    def convert(
        attrs: Attributes, inputs: Operands, tinfos: Types, desired_layouts: Sequence[str]
    ) -> AnyValue:
        data_layout, regions = _two_layouts(name, desired_layouts)
        if regions != "default" or data_layout not in ("NCHW", "NHWC"):
            raise RelayError(
                f"{name}: expected NCHW or NHWC and 'default', found {desired_layouts}"
            )
        return _build(name, inputs, {**attrs, "layout": data_layout})

    return convert


_CONVERSIONS: Final[dict[str, Conversion]] = {
    **{
        name: _layer(name, skips=name in ("nn.conv2d", "nn.deformable_conv2d"))
        for name in _USUAL_KERNELS
    },
    **{
        name: _pooling(name)
        for name in (
            "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d", "nn.max_pool2d",
        )
    },
    "qnn.avg_pool2d": _pooling("qnn.avg_pool2d", ("NCHW", "NHWC")),
    **{name: _image(name) for name in ("image.resize1d", "image.resize2d")},
    **{name: _regions(name) for name in ("vision.roi_align", "vision.roi_pool")},
}  # fmt: skip

for _name, _conversion in _CONVERSIONS.items():
    register_op_attr(_name, "FTVMConvertOpLayout", _conversion)
