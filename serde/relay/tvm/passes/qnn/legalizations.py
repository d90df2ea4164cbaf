"""Quantised operators in the form that suits every target.

What is registered here as ``FTVMQnnLegalize`` is what
:class:`~serde.relay.tvm.passes.qnn.Legalize` writes. Functions of one number become tables,
and a transposed convolution one of differences; the others stay.

Source: the functions registered under that name in TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Callable

from serde.relay.ir import Array, Expr, Type, call, registration
from serde.relay.op.qnn.lookup import FUNCTIONS
from serde.relay.tvm.passes.qnn.canonicalizations import create_integer_lookup_op
from serde.relay.tvm.passes.qnn.rescaling import Attributes, cast, require_tensor

__all__ = ["register_qnn_legalize"]

Types = list[Type | None]
Legalization = Callable[[Attributes, list[Expr], Types], Expr | None]

register_qnn_legalize = registration("FTVMQnnLegalize")


def _as_table(function: Callable[[Array], Array]) -> Legalization:
    def legalize(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr:
        dtype = require_tensor(types[0]).dtype
        scale, zero, out_scale, out_zero = inputs[1:5]
        parameters = (scale, zero, out_scale, out_zero)
        return create_integer_lookup_op(
            inputs[0], function, *parameters, in_dtype=dtype, out_dtype=dtype
        )

    return legalize


for _name, (_function, _doc) in FUNCTIONS.items():
    register_qnn_legalize(f"qnn.{_name}", _as_table(_function))


def legalize_conv2d_transpose(attrs: Attributes, inputs: list[Expr], types: Types) -> Expr:
    """Return a transposed convolution of differences in int16.

    TVM subtracts a zero point for each channel along the second axis of the weight, wherever its
    filters lie; here it is the axis of the outputs.
    """
    data, weight, data_zero, weight_zero = inputs[:4]
    level = call("subtract", cast(data, "int16"), _scalar(cast(data_zero, "int16"), types[2]))
    zero = cast(weight_zero, "int16")
    if require_tensor(types[3]).rank == 0:
        kernel = call("subtract", cast(weight, "int16"), zero)
    else:
        axis = attrs["kernel_layout"].index(_filter_axis(attrs, types))
        kernel = call("nn.bias_add", cast(weight, "int16"), call("negative", zero), axis=axis)
    return call("nn.conv2d_transpose", level, kernel, **attrs)


def _filter_axis(attrs: Attributes, types: Types) -> str:
    """Return the axis of the weight that has a zero point for each index."""
    weight, zero = require_tensor(types[1]), require_tensor(types[3])
    outputs = weight.shape[attrs["kernel_layout"].index("O")]
    return "O" if zero.shape[0] in (outputs, 1) else "I"


def _scalar(x: Expr, type_: Type | None) -> Expr:
    """Return a zero point, which may be a vector of one number, as a scalar."""
    return call("squeeze", x, axis=(0,)) if require_tensor(type_).rank else x


register_qnn_legalize("qnn.conv2d_transpose", legalize_conv2d_transpose)
