"""Arrays and devices, where ``tvm.nd`` and ``tvm.runtime`` have them. Everything runs on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue, Final, NamedTuple

import numpy as np

from serde.compat.backend import load_param_dict, save_param_dict
from serde.core import allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir.ndarray import NDArray

__all__ = [
    "DataType", "Device", "NDArray", "Object", "String", "array", "convert", "cpu", "cuda",
    "device", "empty", "enabled", "ext_dev", "gpu", "load_param_dict", "metal", "nd", "ndarray",
    "opencl", "rocm", "save_param_dict", "vulkan",
]  # fmt: skip

__path__: list[str] = []  # Such as `tvm.runtime.ndarray`.

DataType = String = str
Object = object
nd = ndarray = sys.modules[__name__]

_KINDS: Final = {
    "cpu": 1, "llvm": 1, "c": 1, "cuda": 2, "gpu": 2, "opencl": 4, "vulkan": 7, "metal": 8,
    "rocm": 10, "ext_dev": 12,
}  # fmt: skip


class Device(NamedTuple):
    """A device by name; programs run on the CPU whatever it is.

    Attributes:
        device_type: Number of its kind.
        device_id: Number of the device.
    """

    device_type: int
    device_id: int = 0

    @property
    def exist(self) -> bool:
        """Whether programs can run there."""
        return self.device_type == _KINDS["cpu"]


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """Return a device by the name of a target or a kind, or by the number of its kind.

    Raises:
        ValueError: No kind is called so.
    """
    kind = dev_type.split()[0] if isinstance(dev_type, str) else dev_type
    number = _KINDS.get(kind) if isinstance(kind, str) else kind
    if number is None:
        raise ValueError(f"no kind of device is called {kind}")
    return Device(number, dev_id)


cpu, cuda, ext_dev, gpu, metal, opencl, rocm, vulkan = (
    partial(device, kind)
    for kind in ("cpu", "cuda", "ext_dev", "gpu", "metal", "opencl", "rocm", "vulkan")
)


def enabled(target: str) -> bool:
    """Whether programs run for a target."""
    return device(target).exist


def array(arr: AnyValue, device: Device | None = None, mem_scope: str | None = None) -> NDArray:
    """Return a copy of an array, which has TVM's ``numpy()`` as well."""
    return np.array(arr).view(NDArray)


def empty(
    shape: Sequence[int],
    dtype: str = "float32",
    device: Device | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """Return an array that is to be written; it holds zeros."""
    return allocation.zeros(tuple(shape), numpy_dtype(dtype)).view(NDArray)


def convert(value: AnyValue) -> AnyValue:
    """Return a value as it is, but for a list, which becomes a tuple."""
    return tuple(map(convert, value)) if isinstance(value, list) else value
