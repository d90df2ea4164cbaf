"""Ways to keep working with other packages that have stood still.

``import_mxnet`` imports the archived MXNet 1.9.1 beside a NumPy and a Python
that it was never built for.
"""

from typing import TYPE_CHECKING

from serde.compat.mxnet_import import import_mxnet

__all__ = ["import_mxnet"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # pyserde has a module of this name. Its `__init__`, where it overwrote that of this
        # package, first asks here for `SerdeError`.
        from serde.core.installation import CLASH, lies_beside_pyserde

        if lies_beside_pyserde():
            raise ImportError(CLASH)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
