"""Products and convolutions of quantised numbers, which TVM sums as integers."""

from __future__ import annotations

from serde.relax.ops.table import OPS
from serde.relay.op.qnn.integer import body_of_convolution
from serde.relay.op.qnn.sums import body_of_sums

__all__: list[str] = []

for _name in ("qnn.batch_matmul", "qnn.conv2d", "qnn.conv2d_transpose", "qnn.dense"):
    OPS.expands(_name)(body_of_sums(_name, floats=False))

OPS.expands("serde.conv_integer")(body_of_convolution(floats=False))
