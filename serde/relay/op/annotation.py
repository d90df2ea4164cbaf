"""Annotations: marks on edges of a graph that passes set and read, and that change no value."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relay.ir import Call, Expr, SameType, Type, builder, call, relay_op, sample

__all__ = ["compiler_begin", "compiler_end"]


def _keep_type(data: Type, *, compiler: str) -> Type:
    return data


def _take_mark_off(data: Expr, *, compiler: str) -> Expr:
    return data


_SAMPLES = [sample((2, 3), compiler="chip")]


@relay_op(
    "annotation.compiler_begin",
    infer=_keep_type,
    samples=_SAMPLES,
    traits=[SameType],
    decompose=_take_mark_off,
    meta_class="relay.attrs.CompilerAttrs",
)
def _compiler_begin(data: AnyValue, *, compiler: str) -> AnyValue:
    """Mark an edge on which a region of an external compiler begins: ``y = x``."""
    return data


@relay_op(
    "annotation.compiler_end",
    infer=_keep_type,
    samples=_SAMPLES,
    traits=[SameType],
    decompose=_take_mark_off,
    meta_class="relay.attrs.CompilerAttrs",
)
def _compiler_end(data: AnyValue, *, compiler: str) -> AnyValue:
    """Mark an edge on which a region of an external compiler ends: ``y = x``."""
    return data


@builder("annotation.compiler_begin")
def compiler_begin(data: Expr, compiler: str) -> Call:
    """Return `data` as it enters a region that `compiler` runs.

    Args:
        data: Any value, tuples included.
        compiler: The name of the target, or ``"default"`` for what no external compiler runs.
    """
    return call("annotation.compiler_begin", data, compiler=compiler)


@builder("annotation.compiler_end")
def compiler_end(data: Expr, compiler: str) -> Call:
    """Return `data` as it leaves a region that `compiler` runs.

    Args:
        data: Any value, tuples included.
        compiler: The name of the target, or ``"default"`` for what no external compiler runs.
    """
    return call("annotation.compiler_end", data, compiler=compiler)


def _its_type(data: Type) -> Type:
    return data


def _itself(data: Expr) -> Expr:
    return data


@relay_op(
    "annotation.stop_fusion",
    infer=_its_type,
    samples=[sample((2, 3))],
    traits=[SameType],
    decompose=_itself,
)
def _stop_fusion(data: AnyValue) -> AnyValue:
    """Keep what comes before and after in functions of their own when fusing: ``y = x``."""
    return data


@relay_op(
    "annotation.checkpoint",
    infer=_its_type,
    samples=[sample((2, 3))],
    traits=[SameType],
    decompose=_itself,
)
def _checkpoint(data: AnyValue) -> AnyValue:
    """Mark what is computed again rather than kept when gradients are taken: ``y = x``."""
    return data
