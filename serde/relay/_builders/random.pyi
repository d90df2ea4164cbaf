"""Builders below ``relay.random``; generated from the declarations."""

from collections.abc import Sequence

from serde.relay._builders._types import DType
from serde.relay.ir.expr import Constant, Expr, TupleWrapper

def multinomial(key: Expr, probs: Expr, num_samples: int) -> TupleWrapper:
    """The key to use next, and indices of the last axis, each drawn as often as `probs` says."""

def normal(
    key: Expr,
    shape: Sequence[int],
    dtype: DType = "float32",
    mean: Expr | float | Sequence[float] = 0.0,
    scale: Expr | float | Sequence[float] = 1.0,
) -> TupleWrapper:
    """Return the next key and normal numbers of `shape`; mean and deviation may be numbers."""

def threefry_generate(key: Expr, shape: int | Sequence[int]) -> TupleWrapper:
    """The key to use next, and random bits."""

def threefry_key(seed: int) -> Constant:
    """Return a new key, a constant of ten uint64."""

def threefry_split(key: Expr) -> TupleWrapper:
    """Two keys, whose numbers have nothing to do with each other."""

def uniform(
    key: Expr,
    shape: Sequence[int],
    dtype: DType = "float32",
    low: Expr | float | Sequence[float] = 0.0,
    high: Expr | float | Sequence[float] = 1.0,
) -> TupleWrapper:
    """Return the next key and evenly spread numbers of `shape`; bounds may be numbers."""
