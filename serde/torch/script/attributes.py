"""Attributes of script modules: weights, numbers, submodules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.core import Weight, require
from serde.core.allocation import allow_growth
from serde.errors import FormatError
from serde.torch.model import Argument, Node, Ref
from serde.torch.script.packed import unpack_params, unpack_tensor
from serde.torch.strided import span
from serde.torch.tensors import tensor_weight

__all__ = ["Attributes", "Path"]

Path = tuple[str, ...]
"""Where an attribute is, from the outermost module on."""


class Attributes:
    """The values of a module's attributes, each tensor once.

    Args:
        root: The module of PyTorch's C++ side; None for a function.
        fresh: Makes a name for a value.

    Attributes:
        weights: Weights by their names in the state dictionary.
        values: Names of values that are weights, by these.
        nodes: Nodes that make what is no tensor or number.
    """

    def __init__(self, root: AnyValue, fresh: Callable[[str], str]) -> None:
        self.weights: dict[str, Weight] = {}
        self.values: dict[str, str] = {}
        self.nodes: list[Node] = []
        self._root = root
        self._fresh = fresh
        self._found: dict[Path, AnyValue] = {(): root}
        self._arguments: dict[Path, Argument] = {}
        self._tensors: dict[AnyValue, Ref] = {}
        self._torch = require("torch")

    def object_at(self, path: Path) -> AnyValue:
        """Return what PyTorch has as an attribute."""
        if path not in self._found:
            owner = self.object_at(path[:-1])
            try:
                self._found[path] = owner.getattr(path[-1])
            except (AttributeError, RuntimeError) as error:
                raise FormatError(f"there is no attribute {'.'.join(path)}") from error
        return self._found[path]

    def is_module(self, path: Path) -> bool:
        """Whether an attribute is a module."""
        return isinstance(self.object_at(path), self._torch._C.ScriptModule)

    def argument(self, path: Path) -> Argument:
        """Return an attribute as an argument of nodes."""
        if path not in self._arguments:
            self._arguments[path] = self.as_argument(self.object_at(path), ".".join(path))
        return self._arguments[path]

    def as_argument(self, value: AnyValue, name: str) -> Argument:
        """Return a value of PyTorch's as an argument.

        Args:
            value: The value.
            name: What its tensors are called.

        Raises:
            FormatError: It is no tensor, number, text, or list of these.
        """
        torch = self._torch
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if _is_plain(value):
            return value
        if isinstance(value, (torch.device, torch.dtype, torch.layout, torch.memory_format)):
            return str(value).removeprefix("torch.")
        if isinstance(value, dict):
            flat = [item for pair in value.items() for item in pair]
            return self._make("prim::DictConstruct", flat, name)
        if isinstance(value, list) and all(map(_is_plain, value)):
            return value
        if isinstance(value, (list, tuple)):
            kind = "prim::ListConstruct" if isinstance(value, list) else "prim::TupleConstruct"
            return self._make(kind, value, name)
        if isinstance(value, torch._C.ScriptObject):
            return self._packed(value, name)
        if hasattr(value, "__dict__"):  # of a class that TorchScript compiled
            flat = [item for pair in vars(value).items() for item in pair]
            return self._make("prim::DictConstruct", flat, name)
        raise FormatError(f"{name}: a {type(value).__name__} among the attributes of a module")

    def _make(self, op: str, items: AnyValue, name: str) -> Ref:
        values = [(str(i), self.as_argument(x, f"{name}.{i}")) for i, x in enumerate(items)]
        return self._add(op, values, name)

    def _add(self, op: str, arguments: list[tuple[str, Argument]], name: str) -> Ref:
        found = self._fresh(name or "constant")
        self.nodes.append(Node(op, name, arguments, [found]))
        return Ref(found)

    def _tensor(self, tensor: AnyValue, name: str) -> Argument:
        if tensor.is_quantized:
            return self._add_parts("serde::quantized", unpack_tensor(tensor), name)
        _check_view(tensor, name)
        same = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        key: AnyValue = same if tensor.numel() else id(tensor)
        if key not in self._tensors:
            unique = name
            while unique in self.weights:
                unique += "_"
            value = self._fresh(unique)
            self.weights[unique] = tensor_weight(tensor)
            self.values[value] = unique
            self._tensors[key] = Ref(value)
        return self._tensors[key]

    def _packed(self, value: AnyValue, name: str) -> Argument:
        """Return packed parameters of a quantised layer."""
        parts = unpack_params(value)
        if parts is None:
            return self._add(value._type().qualified_name(), [], name)
        return self._add_parts("serde::packed_params", parts, name)

    def _add_parts(self, op: str, parts: Mapping[str, AnyValue], name: str) -> Ref:
        values = [(key, self.as_argument(each, f"{name}.{key}")) for key, each in parts.items()]
        return self._add(op, values, name)


def _check_view(tensor: AnyValue, name: str) -> None:
    """Refuse a view outside its storage, and draw for one that repeats what that holds."""
    held, total = tensor.untyped_storage().nbytes(), tensor.numel() * tensor.element_size()
    reach = tensor.storage_offset() + span(tensor.shape, tensor.stride())
    if reach * tensor.element_size() > held and total:
        raise FormatError(f"{name}: a view of {reach} elements of a storage of {held} bytes")
    allow_growth(held, total, 1, f"{name}, a view")


def _is_plain(value: AnyValue) -> bool:
    return value is None or isinstance(value, (bool, int, float, complex, str))
