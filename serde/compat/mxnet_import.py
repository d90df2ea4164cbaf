"""MXNet 1.9.1 beside a NumPy and a Python of today."""

from __future__ import annotations

from typing import Any

from serde.core.optional import require

__all__ = ["import_mxnet"]


def import_mxnet() -> Any:
    """Imports MXNet, also where a plain ``import mxnet`` fails, and returns it.

    The archived wheel mxnet 1.9.1 asks NumPy for names that were removed in NumPy
    1.24 and 2. While it is imported those names are answered, and MXNet's own
    modules keep a namespace that still has them; ``numpy`` itself, its warnings
    and every other package see no change. On Python 3.12 and later ``setuptools``
    must be installed, for MXNet also asks for ``distutils``.

    After one call ``import mxnet`` works anywhere in the process::

        from serde.compat import import_mxnet

        mx = import_mxnet()

    Returns:
        The module ``mxnet``; the one already there if it was imported before.

    Raises:
        MissingDependency: MXNet or something that it needs is not installed.
    """
    return require("mxnet")
