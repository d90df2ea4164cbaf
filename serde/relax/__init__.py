"""Relax, the graph IR of today's TVM: modules in and out, compiled and run.

Releases 0.22 to 0.27 of TVM are known; tests run the newest. A model is a ``tvm.IRModule`` whose
``main`` takes the inputs and, behind them, the weights.

Known deviations, all of TVM's own code for its operators: of a number and what is none, maximum,
minimum, clip and relu give either, and the sign of what is none is zero; tanh, atanh and sigmoid
are exact to float rounding of results near one, not of those near zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core.lazy import lazy_names

if TYPE_CHECKING:
    from serde.relax import frontend as frontend

__getattr__, __dir__, __all__ = lazy_names(__name__, {"serde.relax.frontend": "frontend"})
