"""Names of TVM 0.18 for scripts around its Relay: ``import serde.compat.tvm`` installs them.

Where no TVM is installed, ``import tvm`` finds this package from then on, and ``from tvm import
relay`` finds :mod:`serde.relay`. A TVM without Relay is completed by what it lacks, once Relay is
asked of it; a TVM with a Relay of its own is left as it is. ``from serde.compat import tvm`` has
the names of this package whatever is installed.
"""

from __future__ import annotations

from serde.compat.tvm.absent import find_absent
from serde.compat.tvm.imports import install
from serde.core.lazy import lazy_names

__version__ = "0.18.0+serde"

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay": "IRModule relay",
        "serde.relay.text.parser": "parser",
        "serde.relay.transform": "instrument transform",
        "serde.compat.tvm.error": "TVMError error",
        "serde.compat.tvm.runtime": (
            "DataType Object convert cpu cuda device gpu metal nd opencl rocm runtime vulkan"
        ),
        **{f"serde.compat.tvm.{name}": name for name in ("ir", "target", "testing")},
    },
    find_absent,
)

install()
