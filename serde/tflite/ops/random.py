"""Random numbers, which are LiteRT's own."""

from __future__ import annotations

from serde.tflite.ops.table import OPS

OPS.refuses(
    "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR",
    reason="LiteRT draws other numbers in every run, whose generator is no part of the model",
)  # fmt: skip
