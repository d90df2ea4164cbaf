"""Devices, which TVM places values on; a program is the same on any, and none is asked for here."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["KINDS", "Device", "device"]

KINDS: Final = dict(cpu=1, cuda=2, gpu=2, opencl=4, vulkan=7, metal=8, rocm=10, llvm=1, c=1)
"""Numbers of kinds of devices, as DLPack has them, and of targets that run there."""


class Device(NamedTuple):
    """A device, or what TVM calls a virtual one, of which -1 says that any will do.

    Attributes:
        device_type: The number of its kind.
        device_id: Which one of that kind.
        memory_scope: What memory of it, empty for any.
    """

    device_type: int = -1
    device_id: int = -1
    memory_scope: str = ""

    def __str__(self) -> str:
        scope = f", memory_scope='{self.memory_scope}'" if self.memory_scope else ""
        kind, number = self.device_type, self.device_id
        return f"VirtualDevice(device_type={kind}, virtual_device_id={number}{scope})"


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """Return a device by the name of a target or a kind, or by the number of its kind."""
    number = KINDS.get(dev_type.partition(" ")[0]) if isinstance(dev_type, str) else dev_type
    if number is None:
        raise ValueError(f"no kind of device is called {dev_type}")
    return Device(number, dev_id)
