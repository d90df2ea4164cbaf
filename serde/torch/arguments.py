"""What a module is called with: given by users, or made from shapes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any as AnyValue, Final

import numpy as np

from serde.bridge.ranges import BoundedName
from serde.core import Array, dataclass, numpy_dtype, replace, require
from serde.errors import OptionError
from serde.relay.ir.types import TensorType
from serde.torch.dimensions import parse_dim

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["Arguments", "Call", "example_types", "find_arguments"]


@dataclass(frozen=True)
class Arguments:
    """Arguments of one call.

    Attributes:
        positional: Those by position.
        named: Those by name.
        parameters: What the function calls its arguments.
        dynamic_shapes: Which of their dimensions may have any length, as ``torch.export`` takes it.
    """

    positional: tuple[AnyValue, ...]
    named: dict[str, AnyValue]
    parameters: Sequence[str]
    dynamic_shapes: AnyValue = None

    def flatten(self, separator: str = "_") -> tuple[list[AnyValue], list[str], AnyValue]:
        """Return the leaves with their names, and how they are put together."""
        from torch.utils import _pytree

        given = (self.positional, self.named)
        pairs, spec = _pytree.tree_flatten_with_path(given)
        names = [separator.join(self._keys(path)) for path, _ in pairs]
        return [leaf for _, leaf in pairs], names, spec

    def _keys(self, path: Sequence[AnyValue]) -> list[str]:
        """Return the name of the argument that a leaf is of, and its place in it."""
        kind, first, *rest = path
        if kind.idx == 0 and first.idx < len(self.parameters):
            return [self.parameters[first.idx], *map(_key, rest)]
        return [*map(_key, path[1:])]

    def type_of(self, name: str, tensor: AnyValue) -> TensorType:
        """Return the type of a tensor that an argument is, its dynamic dimensions as symbols."""
        shapes = self.dynamic_shapes
        if not isinstance(shapes, Mapping):
            shapes = dict(zip(self.parameters, shapes or (), strict=False))
        axes = shapes.get(name) or {}
        axes = axes if isinstance(axes, Mapping) else dict(enumerate(axes))
        shape = [
            length if _is_static(axes.get(axis)) else parse_dim(_symbol(axes[axis], name, axis))
            for axis, length in enumerate(tensor.shape)
        ]
        return TensorType(shape, str(tensor.dtype).removeprefix("torch."))


def _key(part: AnyValue) -> str:
    return str(getattr(part, "key", getattr(part, "idx", getattr(part, "name", part))))


def _is_static(dim: AnyValue) -> bool:
    return dim is None or isinstance(dim, int) or "STATIC" in str(dim)


def _symbol(dim: AnyValue, name: str, axis: int) -> str:
    """Return the name of a dynamic dimension, or the formula that a derived one has for it."""
    return getattr(dim, "__name__", f"{name}_{axis}")


@dataclass(frozen=True)
class Call:
    """How a function is called with tensors by name.

    Attributes:
        function: The function.
        spec: How its arguments are put together of leaves.
        leaves: Names of tensors; what is no text in a tuple is the value of a leaf itself.
        numbers: Names that stand for numbers of Python's.
    """

    function: AnyValue
    spec: AnyValue
    leaves: Sequence[str | tuple[AnyValue]]
    numbers: frozenset[str] = frozenset()

    def __call__(self, inputs: Mapping[str, Array]) -> list[AnyValue]:
        """Return the leaves of the result, those that are no tensors or numbers left out."""
        torch = require("torch")
        from torch.utils import _pytree

        given = []
        for leaf in self.leaves:
            if isinstance(leaf, tuple):
                given.append(leaf[0])
            elif leaf in self.numbers:
                given.append(inputs[leaf].item())
            else:
                given.append(to_tensor(inputs[leaf]))
        args, named = _pytree.tree_unflatten(given, self.spec)
        found = _pytree.tree_leaves(self.function(*args, **named))
        return [each for each in found if isinstance(each, (torch.Tensor, bool, int, float))]


def to_tensor(value: AnyValue) -> AnyValue:
    """Return an array as a tensor; other values as they are."""
    torch = require("torch")
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(value.copy())


def find_arguments(module: AnyValue, options: TorchImportOptions) -> Arguments:
    """Return the arguments with which a module is read.

    Raises:
        OptionError: Nobody tells them, or an option does not fit the module.
    """
    given = options.example_inputs
    if given is None and not options.input_shapes:
        raise OptionError(
            "a module is read by running it: give example_inputs=(x, ...), or input_shapes with a "
            f"shape for each of {', '.join(_required(module)) or 'its arguments'}"
        )
    names = [each.name for each in _parameters(module)]
    found = _from_shapes(module, options) if given is None else _from_examples(given, names)
    dynamic = options.dynamic_shapes
    if dynamic is None and _has_symbols(options):
        dynamic = _dynamic_shapes(found, options)
    return replace(found, dynamic_shapes=dynamic)


def example_types(options: TorchImportOptions, names: Sequence[str]) -> dict[str, AnyValue]:
    """Return types of the tensors that a script is called with, and what else it is, by name.

    What is inside of lists, tuples and dicts has the name of that and its place or key: ``xs.0``.

    Args:
        options: Examples, if users give any.
        names: What the script calls its arguments.

    Raises:
        OptionError: There is no such argument.
    """
    if options.example_inputs is None:
        return {}
    given = _from_examples(options.example_inputs, names)
    given = replace(given, dynamic_shapes=options.dynamic_shapes)
    if len(given.positional) > len(names) or not {*names} >= given.named.keys():
        raise OptionError(f"example_inputs: the arguments are {', '.join(names) or 'none'}")
    found: dict[str, AnyValue] = {}
    for leaf, key in zip(*given.flatten(".")[:2], strict=True):
        if isinstance(leaf, require("torch").Tensor):
            found[key] = given.type_of(key, leaf)
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            found[key] = leaf
        else:
            raise OptionError(f"example_inputs: {key} is a {type(leaf).__name__}")
    return found


def _parameters(module: AnyValue) -> list[inspect.Parameter]:
    return list(inspect.signature(module.forward).parameters.values())


def _required(module: AnyValue) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        each.name
        for each in _parameters(module)
        if each.kind not in kinds and each.default is inspect.Parameter.empty
    ]


def _from_examples(given: AnyValue, names: Sequence[str]) -> Arguments:
    """A dict holds arguments by name, a tuple or list by position; arrays become tensors.

    A tensor that is given twice is two: PyTorch takes arguments for one that are the same.
    """
    from torch.utils import _pytree

    seen: set[int] = set()

    def convert(leaf: AnyValue) -> AnyValue:
        again = id(leaf) in seen and hasattr(leaf, "clone")
        seen.add(id(leaf))
        return leaf.clone() if again else to_tensor(leaf)

    given = _pytree.tree_map(convert, given)
    if isinstance(given, Mapping):
        return Arguments((), dict(given), names)
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    return Arguments(given, {}, names)


def _from_shapes(module: AnyValue, options: TorchImportOptions) -> Arguments:
    """Arguments have the names of the parameters of ``forward``."""
    shapes = dict(options.input_shapes)
    names = [each.name for each in _parameters(module)]
    unknown = [name for name in (*shapes, *options.input_dtypes) if name not in names]
    if unknown:
        raise OptionError(f"forward has no argument {unknown[0]!r} (there are: {', '.join(names)})")
    missing = [name for name in _required(module) if name not in shapes]
    if missing:
        raise OptionError(f"give a shape for {', '.join(missing)} in input_shapes")
    sizes = _Sizes()
    generator = np.random.default_rng(0)
    found: dict[str, AnyValue] = {}
    for name in [each for each in names if each in shapes]:
        dtype = options.input_dtypes.get(name, options.default_dtype)
        shape = [sizes.length(dim, axis) for axis, dim in enumerate(shapes[name])]
        found[name] = to_tensor(_example(generator, shape, dtype))
    return Arguments((), found, names)


def _example(generator: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Return values of which indices are in every range: zeros, where they are integers."""
    if dtype == "bool":
        return np.ones(shape, bool)
    if "int" in dtype:
        return np.zeros(shape, dtype)
    return generator.standard_normal(shape).astype(numpy_dtype(dtype))


_FIRST: Final = 2
"""The length that a named first axis has in examples."""

_OTHER: Final = 64
"""The length from which those of other axes go on, in steps of 32."""


class _Sizes:
    """Lengths of examples for dimensions that have names."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def length(self, dim: AnyValue, axis: int) -> int:
        """Return a length for a dimension: as it is, or different from that of other names."""
        if isinstance(dim, int):
            return dim
        name = str(dim)
        if name == "?" or name not in self._known:
            count = len(self._known)
            usual = _FIRST + count if axis == 0 else _OTHER + 32 * count
            least, greatest = dim.ends if isinstance(dim, BoundedName) else (usual, usual)
            self._known[name] = min(max(usual, least), greatest)
        return self._known[name]


def _has_symbols(options: TorchImportOptions) -> bool:
    return any(not isinstance(dim, int) for each in options.input_shapes.values() for dim in each)


def _dynamic_shapes(given: Arguments, options: TorchImportOptions) -> dict[str, AnyValue]:
    """Return which dimensions may have any length, for each argument that is given.

    Dimensions of one name have one length.
    """
    by_name = dict(zip(given.parameters, given.positional, strict=False)) | given.named
    counts = Counter(
        str(dim) for each in options.input_shapes.values() for dim in each if not _is_fixed(dim)
    )
    found: dict[str, AnyValue] = {}
    for name, value in by_name.items():
        shape = options.input_shapes.get(name)
        if shape is None or not hasattr(value, "shape"):
            found[name] = None
            continue
        found[name] = {
            axis: _dimension(str(dim), counts)
            for axis, dim in enumerate(shape)
            if not _is_fixed(dim)
        }
    return found


def _is_fixed(dim: AnyValue) -> bool:
    return isinstance(dim, int)


def _dimension(name: str, counts: Mapping[str, int]) -> AnyValue:
    from torch.export import Dim

    if name.isidentifier() and counts[name] > 1:
        return Dim(name)
    return Dim.DYNAMIC
