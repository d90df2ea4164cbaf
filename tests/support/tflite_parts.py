"""What models of one TFLite operator are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.tflite_models import T

__all__ = ["ANY", "FLOAT", "NUMBERS", "Case", "ints", "seeded"]

Case = tuple[str, bytes]

FLOAT = ("float32",)
NUMBERS = ("float32", "int32", "int64")
ANY = ("float32", "int32", "int64", "int8", "uint8", "int16", "bool")


def seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(sum(name.encode()))


def ints(values: Any, dtype: str = "int32") -> T:
    array = np.asarray(values, dtype)
    return T(array.shape, dtype, data=array)
