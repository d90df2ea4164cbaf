"""Ways to keep working with other packages that have stood still.

``import_mxnet`` imports the archived MXNet 1.9.1 beside a NumPy and a Python
that it was never built for.
"""

from serde.compat.mxnet_import import import_mxnet

__all__ = ["import_mxnet"]
