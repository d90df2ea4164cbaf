"""Builders below ``relay.annotation``; generated from the declarations."""

from typing import Any as AnyValue

from serde.relay.ir.expr import Call, Expr

def checkpoint(data: Expr) -> Expr:
    """Mark what is computed again rather than kept when gradients are taken: ``y = x``."""

def compiler_begin(data: Expr, compiler: str) -> Call:
    """Return `data`, tuples included, as it enters a region that `compiler` runs."""

def compiler_end(data: Expr, compiler: str) -> Call:
    """Return `data`, tuples included, as it leaves a region that `compiler` runs."""

def on_device(
    body: Expr, device: AnyValue, constrain_result: bool = False, constrain_body: bool = True
) -> Call:
    """Return `body` as what a device, or one of that kind or target, computes."""

def stop_fusion(data: Expr) -> Expr:
    """Keep what comes before and after in functions of their own when fusing: ``y = x``."""
