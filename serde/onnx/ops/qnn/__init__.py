"""Quantised tensors."""

from __future__ import annotations

from serde.onnx.ops.qnn import conv, linear, product, rescale, whole

__all__ = ["conv", "linear", "product", "rescale", "whole"]
