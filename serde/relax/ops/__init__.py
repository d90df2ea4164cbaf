"""Converters of Relax, in the categories of :mod:`serde.relay.op`.

The table loads the modules, by ``index.json``.
"""

from __future__ import annotations

from serde.relax.ops.table import OPS as TABLE

__all__ = ["TABLE"]
