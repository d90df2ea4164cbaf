"""Short ways to infer types and run passes, for tests that were written with TVM.

Source: ``tvm.relay.testing``.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.ir.attrs": "TempOpAttr",
        "serde.relay.tvm.programs": "count_ops rand run_infer_type run_opt_pass",
    },
)
