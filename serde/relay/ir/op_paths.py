"""What stands below ``relay.op``, where TVM has it.

``relay.op.transform.reshape`` is ``relay.reshape``, and ``relay.op.nn.conv2d`` is
``relay.nn.conv2d``; what TVM keeps in the module ``relay.op.op`` is found as well.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any as AnyValue, Final

from serde.core.texts import near_names
from serde.relay.ir.builders import Namespace, builder_names, lookup_builder

__all__ = ["find_below", "find_op_path", "names_below_op"]

_ROOT: Final = ("algorithm", "reduce", "tensor", "transform")
"""Modules of TVM whose builders stand in ``relay`` itself."""

_ATTRIBUTES: Final = "serde.relay.ir.attrs"
_HOMES: Final = {
    "Op": ("serde.relay.ir.expr", "Op"),
    "OpPattern": ("serde.relay.ir.traits", "FusionPattern"),
    "get": ("serde.relay.ir.registry", "get"),
    "register": ("serde.relay.ir.custom_ops", "register"),
    "register_op_attr": (_ATTRIBUTES, "register_op_attr"),
}
"""What TVM keeps in its module ``relay.op.op``, and where it is."""

_INNER: Final = {
    "image": ("image",),
    "random": ("kernel",),
    "vision": ("multibox", "nms", "rcnn", "yolo"),
}
"""Modules of TVM inside others, whose builders stand in the outer one too."""

_REGISTRATIONS: Final = {
    "register_alter_op_layout": "FTVMAlterOpLayout",
    "register_convert_op_layout": "FTVMConvertOpLayout",
    "register_fake_quantization_to_integer": "FTVMFakeQuantizationToInteger",
    "register_infer_correct_layout": "FInferCorrectLayout",
    "register_legalize": "FTVMLegalize",
    "register_mixed_precision_conversion": "FTVMMixedPrecisionConversionType",
    "register_optional_fake_quantization_to_integer": "FTVMOptionalFakeQuantizationToInteger",
    "register_pattern": "TOpPattern",
    "register_stateful": "TOpIsStateful",
}
"""Functions that set one attribute of an operator, and the attribute."""


class _Root(Namespace):
    """Builders of ``relay`` itself, under the name of a module of TVM."""

    def __init__(self, name: str) -> None:
        super().__init__("op")
        self._name = name

    def __getattr__(self, name: str) -> AnyValue:
        return find_below(self._name, name)

    def __dir__(self) -> list[str]:
        return builder_names()

    def __repr__(self) -> str:
        return f"<operators of relay.op.{self._name}>"


def find_below(module: str, name: str) -> AnyValue:
    """Return the builder that TVM has under `name` in a module of ``relay.op``.

    Raises:
        AttributeError: There is none.
    """
    found = None
    if name in _INNER.get(module, ()):
        return Namespace(module)
    if not name.startswith("_"):
        found = lookup_builder(name if module in _ROOT else f"{module}.{name}")
    if found is None:
        near = near_names(name, builder_names("" if module in _ROOT else f"{module}."))
        raise AttributeError(f"relay.op.{module} has no operator {name}.{near}")
    return found


def find_op_path(name: str) -> AnyValue:
    """Return what is called `name` below ``relay.op``, or None."""
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(module), attribute)
    if name in _REGISTRATIONS:
        return importlib.import_module(_ATTRIBUTES).registration(_REGISTRATIONS[name])
    if name == "contrib" or name in _INNER:
        return importlib.import_module(f"serde.relay.op.{name}")
    if name == "op":
        names = (*_HOMES, *_REGISTRATIONS)
        return SimpleNamespace(**{each: find_op_path(each) for each in names})
    return _Root(name) if name in _ROOT else lookup_builder(name)


def names_below_op() -> list[str]:
    """Return all names below ``relay.op``."""
    return sorted({*_HOMES, *_REGISTRATIONS, *_ROOT, "contrib", "op", *builder_names()})
