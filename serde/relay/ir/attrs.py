"""Attributes of calls, and of operators: facts that passes ask for, and that users may set.

Attributes of operators: functions and facts that passes ask for, and that users may set.
They are kept by the name of the operator and a key, as in TVM, and need no declaration there: an
attribute may be set for an operator before it is declared. Each is set at a level: a higher one
takes the place of a lower one.

Source: ``register_op_attr`` and ``Op.set_attr`` of TVM 0.18.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Any as AnyValue, Final

from serde.errors import RelayError

__all__ = [
    "Attrs", "OpAttributes", "TempOpAttr", "get_op_attr", "ops_with_attr", "register_op_attr",
    "registration", "reset_op_attr", "set_op_attr",
]  # fmt: skip


class Attrs(Mapping[str, AnyValue]):
    """The attributes of a call, in the order of their declaration, by key or by name."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, AnyValue] | None = None) -> None:
        object.__setattr__(self, "_values", dict(values or {}))

    def __getitem__(self, name: str) -> AnyValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> AnyValue:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"no attribute {name!r}") from None

    def __setattr__(self, name: str, value: AnyValue) -> None:
        raise AttributeError("attributes of a call do not change")

    def items(self) -> ItemsView[str, AnyValue]:
        """Return names and values."""
        return self._values.items()

    def get_int(self, name: str) -> int:
        """Return an attribute that is an integer."""
        return int(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a row of integers."""
        return tuple(int(each) for each in self[name])

    def get_str(self, name: str) -> str:
        """Return an attribute as text."""
        return str(self[name])

    def __repr__(self) -> str:
        return f"Attrs({self._values})"


DEFAULT_LEVEL: Final = 10

_VALUES: dict[str, dict[str, tuple[int, AnyValue]]] = {}
"""By key, then by name of the operator: the level and the value."""

_LISTS: Final = "serde.relay.tvm.passes."
_HOMES: dict[str, str] = {
    "FTVMLegalize": f"{_LISTS}legalizations",
    "FInferCorrectLayout": f"{_LISTS}layout.rules",
    "FTVMConvertOpLayout": f"{_LISTS}layout.conversions",
    "FTVMMixedPrecisionConversionType": f"{_LISTS}mixed_precision",
    "FTVMFakeQuantizationToInteger": f"{_LISTS}fake_quantization_to_integer",
    "FTVMOptionalFakeQuantizationToInteger": f"{_LISTS}fake_quantization_to_integer",
    "FTVMQnnLegalize": f"{_LISTS}qnn.legalizations",
    "FTVMQnnCanonicalize": f"{_LISTS}qnn.canonicalizations",
}
"""Modules that set what TVM sets of a key; each is loaded when the key is first asked for."""


def _values(key: str) -> dict[str, tuple[int, AnyValue]]:
    """Return what is set of a key, with what TVM sets."""
    home = _HOMES.pop(key, None)
    if home is not None:
        importlib.import_module(home)
    return _VALUES.setdefault(key, {})


def get_op_attr(op_name: str, key: str) -> AnyValue:
    """Return an attribute of an operator, or None where it has none of this key."""
    return _values(key).get(op_name, (0, None))[1]


def ops_with_attr(key: str) -> Iterator[str]:
    """Return the names of operators that have an attribute of this key."""
    return iter(tuple(_values(key)))


def set_op_attr(op_name: str, key: str, value: AnyValue, level: int = DEFAULT_LEVEL) -> None:
    """Set an attribute of an operator; one of a higher level stays.

    Args:
        op_name: Name of the operator.
        key: Name of the attribute.
        value: Anything.
        level: Its level, above 0.

    Raises:
        RelayError: The level is not above 0, or the attribute is set at this level.
    """
    if level <= 0:
        raise RelayError(f"{key} of {op_name}: expected a level above 0, found {level}")
    values = _values(key)
    found = values.get(op_name, (0, None))[0]
    if found == level:
        raise RelayError(f"{key} of {op_name} is set at level {level} already")
    if level > found:
        values[op_name] = (level, value)


def reset_op_attr(op_name: str, key: str) -> None:
    """Take an attribute from an operator, at whatever level it is set; nothing if it has none."""
    _values(key).pop(op_name, None)


def register_op_attr(
    op_name: str, attr_key: str, value: AnyValue = None, level: int = DEFAULT_LEVEL
) -> AnyValue:
    """Set an attribute of an operator, by a call or as a decorator of a function.

    Args:
        op_name: Name of the operator.
        attr_key: Name of the attribute, such as ``FTVMLegalize``.
        value: Anything; without it, a decorator is returned.
        level: A higher one takes the place of a lower one.

    Returns:
        The value, or the decorator.

    Raises:
        RelayError: The attribute is set at this level already.
    """

    def register(given: AnyValue) -> AnyValue:
        set_op_attr(op_name, attr_key, given, level)
        return given

    return register if value is None else register(value)


def registration(attr_key: str) -> Callable[..., AnyValue]:
    """Return a function that registers attributes of one key, as :func:`register_op_attr` does."""

    def register(op_name: str, func: AnyValue = None, level: int = DEFAULT_LEVEL) -> AnyValue:
        return register_op_attr(op_name, attr_key, func, level)

    register.__doc__ = f"Register ``{attr_key}`` of an operator, by a call or as a decorator."
    return register


class TempOpAttr:
    """Gives an operator another value of an attribute for a while; then the former one is back.

    ``with TempOpAttr("nn.conv2d", "FTVMLegalize", function): ...``

    Args:
        op_name: Name of the operator.
        attr_key: Name of the attribute.
        attr_value: The value, or None for no attribute.
    """

    def __init__(self, op_name: str, attr_key: str, attr_value: AnyValue) -> None:
        self._name = op_name
        self._key = attr_key
        self._value = attr_value
        self._before: tuple[int, AnyValue] | None = None

    def __enter__(self) -> TempOpAttr:
        self._before = _values(self._key).pop(self._name, None)
        if self._value is not None:
            set_op_attr(self._name, self._key, self._value)
        return self

    def __exit__(self, *_error: object) -> None:
        _values(self._key).pop(self._name, None)
        if self._before is not None:
            _values(self._key)[self._name] = self._before


class OpAttributes:
    """What an operator says of its attributes."""

    __slots__ = ()

    name: str

    def get_attr(self, attr_name: str) -> AnyValue:
        """Return an attribute, or None where it is not set."""
        return get_op_attr(self.name, attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Whether an attribute is set."""
        return self.name in _values(attr_name)

    def set_attr(self, attr_name: str, value: AnyValue, plevel: int = DEFAULT_LEVEL) -> None:
        """Set an attribute; see :func:`set_op_attr`."""
        set_op_attr(self.name, attr_name, value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        """Take an attribute away, at whatever level it is set."""
        reset_op_attr(self.name, attr_name)
