"""Importers that return modules of Relax, under the names that TVM's proposal for NNEF gives them.

``tvm.relax.frontend`` has those of ONNX, PyTorch, TFLite and StableHLO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core.lazy import lazy_names

if TYPE_CHECKING:
    from serde.relax.frontend import nnef as nnef

__getattr__, __dir__, __all__ = lazy_names(__name__, {"serde.relax.frontend.nnef": "nnef"})
