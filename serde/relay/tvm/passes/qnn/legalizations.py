"""Quantised operators in the form that suits every target.

What is registered here as ``FTVMQnnLegalize`` is what
:class:`~serde.relay.tvm.passes.qnn.Legalize` writes. Functions of one number become tables,
and a transposed convolution one of differences; the others stay, as with TVM 0.18.
"""

from __future__ import annotations

from serde.relay.ir import get, registration
from serde.relay.op.qnn.lookup import FUNCTIONS
from serde.relay.tvm.passes.qnn.plain import plain_form

__all__ = ["register_qnn_legalize"]

register_qnn_legalize = registration("FTVMQnnLegalize")

for _name in ("conv2d_transpose", *FUNCTIONS):
    register_qnn_legalize(f"qnn.{_name}", plain_form(get(f"qnn.{_name}")))
