"""NNEF to Relax, as ``tvm.relax.frontend.nnef`` is proposed to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serde.core.lazy import lazy_names

if TYPE_CHECKING:
    from serde.compat.relax_frontend import from_nnef as from_nnef

__getattr__, __dir__, __all__ = lazy_names(__name__, {"serde.compat.relax_frontend": "from_nnef"})
