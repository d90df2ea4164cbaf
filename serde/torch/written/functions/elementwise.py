"""Functions of single elements."""

from __future__ import annotations

import torch
from torch import Tensor


def round_half_away(x: Tensor) -> Tensor:
    """Round to the nearest integer, halves away from zero."""
    whole = torch.trunc(x)
    return torch.where(torch.abs(x - whole) >= 0.5, whole + torch.sign(x), whole)


def sign(x: Tensor) -> Tensor:
    """Return the sign; NaN of NaN."""
    return torch.where(torch.isnan(x), x, torch.sign(x))


def gamma(x: Tensor) -> Tensor:
    """Return the gamma function; NaN at the negative integers."""
    size = torch.exp(torch.lgamma(x))
    negative = (x < 0) & (torch.floor(x) % 2 != 0)
    found = torch.where(negative, -size, size)
    found = torch.where(
        (x < 0) & (torch.floor(x) == x), torch.full_like(x, float("nan")), found
    )
    return torch.where(x == 0, 1 / x, found)


def to_float8(x: Tensor) -> Tensor:
    """Round to float8_e4m3fn, what is beyond its range to NaN."""
    wide = x.float()
    nan = torch.full_like(wide, float("nan"))
    return torch.where(wide.abs() > 464, nan, wide).to(torch.float8_e4m3fn)


def shift_right_unsigned(x: Tensor, bits: Tensor) -> Tensor:
    """Shift 64 bits to the right, zeros coming in."""
    once = (x >> 1) & ((1 << 62) - 1 + (1 << 62))
    return torch.where(bits == 0, x, once >> (bits - 1).clamp(min=0))
