"""Arrays and devices, where ``tvm.nd`` and ``tvm.runtime`` have them; all runs on the CPU."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any as AnyValue, Final, NamedTuple

import numpy as np

from serde.compat.backend import load_param_dict, save_param_dict
from serde.relay.ir.ndarray import NDArray

__all__ = [
    "DataType", "Device", "NDArray", "Object", "String", "array", "convert", "cpu", "cuda",
    "device", "gpu", "load_param_dict", "metal", "nd", "ndarray", "opencl", "rocm",
    "save_param_dict", "vulkan",
]  # fmt: skip

__path__: list[str] = []  # Such as `tvm.runtime.ndarray`, which is this module.

DataType, String, Object = str, str, object
nd = ndarray = sys.modules[__name__]

_KINDS: Final = dict(cpu=1, cuda=2, gpu=2, opencl=4, vulkan=7, metal=8, rocm=10, llvm=1, c=1)


class Device(NamedTuple):
    """Number of a kind of device, and of one of that kind; programs run on the CPU all the same."""

    device_type: int
    device_id: int = 0


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """Return a device by the name of a target or a kind, or by the number of its kind."""
    number = _KINDS.get(dev_type.partition(" ")[0]) if isinstance(dev_type, str) else dev_type
    if number is None:
        raise ValueError(f"no kind of device is called {dev_type}")
    return Device(number, dev_id)


cpu, cuda, gpu, opencl, vulkan, metal, rocm = (partial(device, kind) for kind in list(_KINDS)[:7])


def array(arr: AnyValue, device: AnyValue = None) -> NDArray:
    """Return a copy of an array, which has TVM's ``numpy()`` as well."""
    return np.array(arr).view(NDArray)


def convert(value: AnyValue) -> AnyValue:
    """Return a value as it is, but for a list, which becomes a tuple."""
    return tuple(map(convert, value)) if isinstance(value, list) else value
