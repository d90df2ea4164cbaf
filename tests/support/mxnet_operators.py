"""Single operators run by MXNet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.compat import import_mxnet
from serde.errors import MissingDependency


def run_mxnet_operator(path: str, *inputs: np.ndarray, **attrs: Any) -> np.ndarray:
    """Return the first output of the operator at `path` below ``mxnet.nd``; skip without MXNet."""
    try:
        mx = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    operator = mx.nd
    for name in path.split("."):
        operator = getattr(operator, name)
    result = operator(*map(mx.nd.array, inputs), **attrs)
    return (result[0] if isinstance(result, (list, tuple)) else result).asnumpy()
