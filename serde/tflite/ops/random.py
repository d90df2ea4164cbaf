"""Random numbers, which are LiteRT's own, and tables that are no part of the graph."""

from __future__ import annotations

from serde.tflite.ops.table import OPS

OPS.refuses(
    "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR",
    reason="LiteRT draws other numbers in every run, whose generator is no part of the model",
)  # fmt: skip
OPS.refuses(
    "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_LOOKUP", "HASHTABLE_SIZE",
    reason="a table that is looked up by keys, which are texts as a rule",
)  # fmt: skip
