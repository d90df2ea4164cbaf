"""Quantised tensors."""

from __future__ import annotations

from serde.onnx.ops.qnn import conv, integer, linear, product, rescale, whole

__all__ = ["conv", "integer", "linear", "product", "rescale", "whole"]
