"""Attributes of operators for a while, where ``tvm.relay.testing.temp_op_attr`` has them."""

from __future__ import annotations

from serde.relay.ir.attrs import TempOpAttr

__all__ = ["TempOpAttr"]
