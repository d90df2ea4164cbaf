"""Why elements are neither ordered nor written to places that are computed."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

__all__: list[str] = []


OPS.refuses_calls(
    "argsort",
    "dyn.topk",
    "invert_permutation",
    "searchsorted",
    "sort",
    reason="NNEF has no fragment that orders elements",
)


OPS.refuses_calls(
    "argwhere",
    "serde.compress",
    "serde.nonzero",
    "serde.unique",
    "unique",
    reason="the length of the result depends on values, and NNEF has fixed shapes only",
)


OPS.refuses_calls(
    "serde.sparse_to_dense",
    reason="NNEF has no fragment that writes elements to places that are computed",
)
