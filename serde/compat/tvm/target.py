"""Targets: they are kept and printed; nothing is compiled for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any as AnyValue

from serde.relay.ir.device import Device

__all__ = ["Target", "VirtualDevice"]


class Target(str):
    """What a program is compiled for, as ``"llvm -mcpu=core-avx2"``; a host is not looked at."""

    def __new__(cls, target: AnyValue, host: AnyValue = None) -> Target:
        """Take its text, or of its options the kind."""
        return super().__new__(cls, target["kind"] if isinstance(target, dict) else target)

    @property
    def kind(self) -> SimpleNamespace:
        """Its kind, which has a name."""
        return SimpleNamespace(name=self.partition(" ")[0])

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_error: object) -> None:
        """Do nothing: where a target holds does not matter here."""


def VirtualDevice(  # noqa: N802 - TVM's name.
    device: Device | None = None, target: AnyValue = None, memory_scope: str = ""
) -> Device:
    """Return a device with a scope of memory; its target is not kept."""
    return (device or Device())._replace(memory_scope=memory_scope)
