"""Arrays and devices, where ``tvm.nd`` and ``tvm.runtime`` have them; all runs on the CPU."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.compat.backend import load_param_dict, save_param_dict
from serde.relay.ir.device import KINDS, Device, device
from serde.relay.ir.ndarray import NDArray

__all__ = [
    "ADT", "DataType", "Device", "NDArray", "Object", "String", "array", "container", "convert",
    "cpu", "cuda", "device", "gpu", "load_param_dict", "metal", "nd", "ndarray", "opencl", "rocm",
    "save_param_dict", "vulkan",
]  # fmt: skip

__path__: list[str] = []  # Such as `tvm.runtime.ndarray`, which is this module.

ADT, DataType, String, Object = tuple, str, str, object
nd = ndarray = container = sys.modules[__name__]

cpu, cuda, gpu, opencl, vulkan, metal, rocm = (partial(device, kind) for kind in list(KINDS)[:7])


def array(arr: AnyValue, device: AnyValue = None) -> NDArray:
    """Return a copy of an array, which has TVM's ``numpy()`` as well."""
    return np.array(arr).view(NDArray)


def convert(value: AnyValue) -> AnyValue:
    """Return a value as it is, but for a list, which becomes a tuple."""
    return tuple(map(convert, value)) if isinstance(value, list) else value
