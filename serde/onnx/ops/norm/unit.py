"""Normalisations to unit length or variance."""

from __future__ import annotations

from serde.onnx.ops.table import OPS
from serde.walk.pairs import pair
from serde.walk.takes import Takes, dtypes

OPS.pairs(
    # The function that defines it has constants of float32.
    pair(
        "MeanVarianceNormalization",
        "serde.mean_variance_normalization",
        since=(9, 13),
        target=1,
        axes=(0, 2, 3),
        takes=Takes(data=dtypes("float32")),
    ),
    pair("LpNormalization", "serde.lp_normalization", since=(1, 22), axis=-1, p=2),
)
