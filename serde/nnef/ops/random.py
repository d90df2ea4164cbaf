"""Why nothing is drawn."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

OPS.refuses_calls(
    "random.multinomial", "random.normal", "random.threefry_generate", "random.threefry_split",
    "random.uniform", "serde.bernoulli", "serde.multinomial", "serde.random_gamma",
    "serde.random_normal", "serde.random_poisson", "serde.random_uniform",
    reason="NNEF draws no random numbers",
)  # fmt: skip
