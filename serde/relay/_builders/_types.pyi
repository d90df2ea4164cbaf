"""Types that the builders of all namespaces share."""

from typing import Any as AnyValue, TypeAlias

import numpy as np

DType: TypeAlias = str | np.dtype[AnyValue] | type[AnyValue]
"""A name of a dtype such as ``"float16"``, or NumPy's own objects."""
