"""Calls of operators that ONNX Runtime adds to ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Final

from serde.onnx.foreign import PLAIN
from serde.onnx.versions import RUNTIME_OPERATORS
from serde.relay.ir import Foreign, Span, TensorType
from serde.relay.ir.expr import Call, Expr

__all__ = ["DTYPES", "foreign"]

DTYPES: Final = ("float32", "float16")
"""What its kernels for processors take."""


def foreign(
    name: str,
    inputs: Sequence[Expr | None],
    results: Sequence[TensorType],
    span: Span | None,
    **attributes: AnyValue,
) -> Call:
    """Return a call of an operator of ONNX Runtime's."""
    absent = tuple(index for index, each in enumerate(inputs) if each is None)
    node = Foreign(
        framework="onnx", name=name,
        domain=PLAIN if name in RUNTIME_OPERATORS else "com.microsoft",
        version=1, attributes=attributes, absent=absent, results=tuple(results),
    )  # fmt: skip
    return node.build([each for each in inputs if each is not None], span)
