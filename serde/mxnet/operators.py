"""The operators of MXNet 1.9.1, less their second names, which are in :mod:`serde.mxnet.aliases`.

From its registry (``MXListAllOpNames``). Those of gradients, all that have ``backward`` in their
name and ``_grad_add``, are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from serde.mxnet.aliases import canonical_name

if TYPE_CHECKING:
    from serde.mxnet.model import Graph

__all__ = ["BESIDE", "DYNAMIC", "FORWARD", "OPTIMIZERS", "VERSION", "is_dynamic"]

VERSION: Final = "1.9.1"

_FACTS: Final = json.loads(Path(__file__).with_name("operators.json").read_text("utf-8"))

FORWARD: Final = frozenset(_FACTS["forward"])
"""Operators of which a net may consist."""

OPTIMIZERS: Final = frozenset(_FACTS["optimizers"])
"""Operators that a step of training consists of, behind the gradients."""

DYNAMIC: Final = frozenset({
    "_cond", "_contrib_boolean_mask", "_npi_bincount", "_npi_delete", "_npi_unique", "_npx_nonzero",
    "_while_loop",
})  # fmt: skip
"""Operators whose results have shapes that MXNet knows no sooner than it has computed them.

Its executors (``bind``, ``Module``) fail at sums and products that follow them, and with NumPy's
shapes take what follows to be empty; ``CachedOp``, which runs Gluon's blocks, computes all.
"""

BESIDE: Final = frozenset({
    "_contrib_sldwin_atten_context", "_contrib_sldwin_atten_mask_like",
    "_contrib_sldwin_atten_score", "_grad_add",
})  # fmt: skip
"""Operators that nets have besides: sliding windows of attention, which came with MXNet 2.0, and
the sum that gradients are added by."""


def is_dynamic(graph: Graph) -> bool:
    """Whether MXNet knows some shape of a graph no sooner than it has computed it."""
    return any(canonical_name(node.op) in DYNAMIC for node in graph.nodes)
