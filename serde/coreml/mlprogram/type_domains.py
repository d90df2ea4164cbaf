"""The dtypes that operators of MIL take, and values in those that stand for others."""

from __future__ import annotations

from collections.abc import Mapping

from serde.coreml.mlprogram.export_context import ExportContext
from serde.coreml.value import HELD_AS, Argument, Value
from serde.errors import Unsupported
from serde.relay.ir.types import TensorType
from serde.walk.takes import dtypes

__all__ = [
    "FLOATS",
    "GATHER_DTYPES",
    "HALVES",
    "MOVE_DTYPES",
    "NUMBERS",
    "NUMBERS_OR_BOOL",
    "cast_to",
    "compute_dtype",
    "emit_in",
]

Domain = Mapping[int, frozenset[str]]
"""dtypes by the version of iOS from which on they are taken."""

_FLOATS = frozenset({"float16", "float32"})
_NUMBERS = _FLOATS | {"int32"}
_NARROW = frozenset({"int8", "int16", "uint8", "uint16"})

HALVES = dtypes("float16", "float32")
"""The floats of MIL."""

FLOATS: Domain = {1: _FLOATS}
NUMBERS: Domain = {1: _NUMBERS}
NUMBERS_OR_BOOL: Domain = {1: _NUMBERS | {"bool"}}
GATHER_DTYPES: Domain = {1: _NUMBERS, 17: _NUMBERS | _NARROW}
MOVE_DTYPES: Domain = {1: _NUMBERS | {"bool"}, 17: _NUMBERS | {"bool"} | _NARROW}


def compute_dtype(ctx: ExportContext, dtype: str, domain: Domain) -> str:
    """Return the dtype in which an operator is to compute: the same, or int32 for what it lacks.

    Raises:
        Unsupported: The operator has no integers.
    """
    known = domain[max(since for since in domain if since <= ctx.version)]
    if HELD_AS.get(dtype, dtype) in known:
        return dtype
    if "int32" not in known:
        raise Unsupported(f"no operator of MIL does this with {dtype}")
    return "int32"


def cast_to(ctx: ExportContext, x: Value, dtype: str) -> Value:
    """Return a value in another dtype."""
    return x if ctx.type(x).dtype == dtype else ctx.cast(x, dtype)


def emit_in(
    ctx: ExportContext,
    domain: Domain,
    op: str,
    tensors: Mapping[str, Value],
    **inputs: Argument,
) -> Value:
    """Append an operation that gives the node's result, in dtypes that it takes.

    Args:
        ctx: The context of the converter.
        domain: Dtypes that the operator takes.
        op: The operator.
        tensors: Inputs of the one dtype that the operator computes in.
        inputs: Its other inputs.
    """
    dtype = ctx.type(next(iter(tensors.values()))).dtype
    work = compute_dtype(ctx, dtype, domain)
    given: dict[str, Argument] = {name: cast_to(ctx, x, work) for name, x in tensors.items()}
    result = ctx.result_type()
    found = ctx.emit(op, TensorType(result.shape, work), **given, **inputs)
    return cast_to(ctx, found, result.dtype)
