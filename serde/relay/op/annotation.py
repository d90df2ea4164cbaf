"""Annotations: marks on edges of a graph that passes set and read, and that change no value."""

from __future__ import annotations

import importlib
from typing import Any as AnyValue

from serde.relay.ir import Call, Expr, SameType, Type, builder, call, relay_op, sample
from serde.relay.ir.device import Device

__all__ = ["compiler_begin", "compiler_end", "device_copy", "on_device"]


def _its_type(data: Type, **_where: AnyValue) -> Type:
    return data


def _itself(data: Expr, **_where: AnyValue) -> Expr:
    return data


for _name, _does in {"begin": "begins", "end": "ends"}.items():

    def _mark(data: AnyValue, *, compiler: str) -> AnyValue:
        return data

    _mark.__doc__ = f"Mark an edge on which a region of an external compiler {_does}: ``y = x``."
    relay_op(
        f"annotation.compiler_{_name}",
        infer=_its_type,
        samples=[sample((2, 3), compiler="chip")],
        traits=[SameType],
        decompose=_itself,
        meta_class="relay.attrs.CompilerAttrs",
    )(_mark)

for _name, _does in {
    "stop_fusion": "Keep what comes before and after in functions of their own when fusing",
    "checkpoint": "Mark what is computed again rather than kept when gradients are taken",
}.items():

    def _note(data: AnyValue) -> AnyValue:
        return data

    _note.__doc__ = f"{_does}: ``y = x``."
    relay_op(
        f"annotation.{_name}",
        infer=_its_type,
        samples=[sample((2, 3))],
        traits=[SameType],
        decompose=_itself,
    )(_note)


@relay_op(
    "on_device",
    infer=_its_type,
    samples=[sample((2, 3), virtual_device="cpu"), sample((2,), virtual_device=(2, 1, "global"))],
    traits=[SameType],
    decompose=_itself,
)
def _on_device(
    body: AnyValue,
    *,
    virtual_device: Device | None = None,
    constrain_result: bool = False,
    constrain_body: bool = True,
) -> AnyValue:
    """State the device that computes a value, and with `constrain_result` keeps it: ``y = x``."""
    return body


@relay_op(
    "device_copy",
    infer=_its_type,
    samples=[sample((2, 3), src_virtual_device="cpu", dst_virtual_device="cuda")],
    traits=[SameType],
    decompose=_itself,
)
def _device_copy(
    data: AnyValue, *, src_virtual_device: Device, dst_virtual_device: Device
) -> AnyValue:
    """Copy a value from one device to another: ``y = x``."""
    return data


@builder("annotation.compiler_begin")
def compiler_begin(data: Expr, compiler: str) -> Call:
    """Return `data`, tuples included, as it enters a region that `compiler` runs."""
    return call("annotation.compiler_begin", data, compiler=compiler)


@builder("annotation.compiler_end")
def compiler_end(data: Expr, compiler: str) -> Call:
    """Return `data`, tuples included, as it leaves a region that `compiler` runs."""
    return call("annotation.compiler_end", data, compiler=compiler)


@builder("annotation.on_device")
def on_device(
    body: Expr, device: AnyValue, constrain_result: bool = False, constrain_body: bool = True
) -> Call:
    """Return `body` as what a device, or one of that kind or target, computes."""
    where = {"virtual_device": device, "constrain_result": constrain_result}
    return call("on_device", body, constrain_body=constrain_body, **where)


@builder("device_copy")
def device_copy(data: Expr, src_device: AnyValue, dst_device: AnyValue) -> Call:
    """Return `data` as it comes from one device to another, given as to ``on_device``."""
    return call("device_copy", data, src_virtual_device=src_device, dst_virtual_device=dst_device)


def __getattr__(name: str) -> AnyValue:
    """Return a builder, as ``tvm.relay.op.annotation`` has it."""
    return importlib.import_module("serde.relay.ir.op_paths").find_below("annotation", name)
