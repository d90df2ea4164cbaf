"""Importers of PyTorch's operators against PyTorch's own schemas: names, order, defaults."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed")  # It has operators of its own.

from serde.relay.ir.schema import REQUIRED  # noqa: E402
from serde.torch.ops.table import OPS  # noqa: E402


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    """Return PyTorch's schemas by operator and overload."""
    found: dict[str, dict[str, Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        found.setdefault(schema.name, {})[schema.overload_name] = schema
    return found


@cache
def _imported() -> list[str]:
    return [name for name, _ in OPS.imported()]


@cache
def _names() -> list[str]:
    """Return importers of operators that PyTorch has, and that serve overloads."""
    known = [each for each in _imported() if each.partition(".")[0] in _schemas()]
    return [each for each in known if _covered(each)]


def _covered(name: str) -> list[Any]:
    """Return the schemas that an importer serves: those without an importer of their own."""
    base, _, overload = name.partition(".")
    schemas = _schemas()[base]
    if not any(map(_is_functional, schemas.values())):
        schemas = _schemas().get(f"{base}_", schemas)
    if overload:
        return [schemas[overload]]
    own = {each.partition(".")[2] for each in _imported() if each.startswith(f"{base}.")}
    rest = [schema for each, schema in schemas.items() if each not in own]
    rest = [schema for schema in rest if _full_name(schema) not in REFUSED]
    rest = [schema for schema in rest if not any(map(_is_written, schema.arguments))]
    return [each for each in rest if _is_functional(each)] or list(filter(_has_no_lists, rest))


def _is_written(argument: Any) -> bool:
    return bool(argument.is_out or argument.name == "out")


def _full_name(schema: Any) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def _is_functional(schema: Any) -> bool:
    """Whether an overload gives tensors, and is none of lists."""
    tensors = any("Tensor" in str(each.type) for each in schema.returns)
    return tensors and _has_no_lists(schema)


def _has_no_lists(schema: Any) -> bool:
    """Whether an overload is one of tensors, not of lists and dicts, and names no axes."""
    text = str(schema)
    lists = "Dict(" in text or re.search(r"\bt\[\]", text) is not None
    return "Tensor" in text and not lists and "Dimname" not in text


REFUSED = {
    "aten::_scaled_dot_product_flash_attention.quantized",
    "aten::addmm.dtype",
    "aten::baddbmm.dtype",
    "aten::bmm.dtype",
    "aten::einsum.sublist",
    "aten::mm.dtype",
    "aten::dequantize.list",
    "aten::dequantize.tensor",
    "aten::dequantize.tensors",
    "aten::quantize_per_tensor.tensors",
    "aten::tensor.complex",
    "quantized::conv2d",
    "quantized::conv2d_relu",
    "quantized::conv3d",
    "quantized::conv3d_relu",
}
"""Overloads with arguments that the importer refuses by name."""


def test_importers_have_names_of_operators() -> None:
    own = ("aten::", "prims::")
    bases = [each.partition(".")[0] for each in _imported()]
    unknown = [each for each in bases if each not in _schemas() and f"{each}_" not in _schemas()]
    assert not [each for each in unknown if each.startswith(own)]


@pytest.mark.parametrize("name", _names())
def test_parameters_are_those_of_the_schema(name: str) -> None:
    converter = OPS.importer(name, 1)
    schemas = _covered(name)
    for schema in schemas:
        given = [each.name for each in schema.arguments]
        taken = {*converter.operands, *converter.attributes, *converter.ignored}
        assert not [each for each in given if each not in taken], schema
        missing = [each for each in _required(converter) if each not in given]
        assert not missing, f"{schema} lacks what the importer must have"
        if converter.accepted is not None:
            order = [each for each in given if each in converter.operands]
            assert order == [each for each in converter.operands if each in given], schema


def _required(converter: Any) -> list[str]:
    attributes = converter.attributes.items()
    required = [each for each, parameter in attributes if parameter.default is REQUIRED]
    return [*converter.operands[: converter.required], *required]


def _defaults() -> list[Any]:
    """Return each default of a schema, with the importer that must have it."""
    found = []
    for name in _names():
        known = OPS.importer(name, 1).attributes
        for schema in _covered(name):
            for argument in schema.arguments:
                given = argument.name in known and argument.has_default_value()
                if given and argument.name != "dtype":
                    case = (name, argument.name, argument.default_value)
                    found.append(pytest.param(*case, id=f"{_full_name(schema)}-{argument.name}"))
    return found


@pytest.mark.parametrize(("name", "argument", "default"), _defaults())
def test_defaults_are_those_of_the_schema(name: str, argument: str, default: Any) -> None:
    found = OPS.importer(name, 1).attributes[argument].default
    assert found is not REQUIRED
    assert _as_list(found) == _as_list(default)


def _as_list(value: Any) -> list[Any]:
    """Return a default as a list without repetitions; no axes, and none named, are all of them.

    A padding called "valid" is none.
    """
    if value is None:
        return []
    if value == "valid":
        return [0]
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    return [round(each, 15) if isinstance(each, float) else each for each in dict.fromkeys(items)]
