"""Parameters given as arrays, by name, as a pair of dicts, or in sparse storage.

Storage as MXNet defines it: ``row_sparse`` holds some rows and their ascending indices; ``csr``
holds for each row ascending columns and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal

import numpy as np

from serde.core import MAX_ARCHIVE_RATIO, require
from serde.core.allocation import allow_growth
from serde.core.weights import Array, ArrayWeight, Weight, dtype_name, numpy_dtype
from serde.errors import FormatError, OptionError
from serde.mxnet.model import Graph
from serde.mxnet.upgrades import AUXILIARY

__all__ = ["NDArrayWeight", "SparseWeight", "as_weight", "assign", "weights_of"]

_BFLOAT16 = "bfloat16"


class NDArrayWeight(Weight):
    """A dense NDArray of MXNet's; only the rows asked for are copied to NumPy."""

    def __init__(self, value: Any) -> None:
        self.shape = tuple(int(length) for length in value.shape)
        self.dtype = _dtype_name(np.dtype(value.dtype))
        self._value = value

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, copied."""
        _wait_for_operators()
        whole = not self.shape or (start == 0 and stop == self.shape[0])
        part = self._value if whole else self._value[start:stop]
        return self._numpy(part)

    def _numpy(self, part: Any) -> Array:
        array: Array = part.asnumpy()
        return array if self.dtype != _BFLOAT16 else array.view(numpy_dtype(_BFLOAT16))


class _SparseNDArrayWeight(NDArrayWeight):
    """An NDArray in sparse storage, which MXNet itself fills up."""

    sparse = True

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, copied."""
        _wait_for_operators()
        return self._numpy(self._value.tostype("default")[start:stop])


def _wait_for_operators() -> None:
    """Wait for what MXNet computes meanwhile.

    With its first inference, a convolution of oneDNN's writes its weights into their own memory in
    another layout, and MXNet 1.9.1 lets others read them halfway.
    """
    mx = require("mxnet")
    # What fails there concerns other arrays: those that are read raise their own errors.
    with suppress(mx.MXNetError):
        mx.nd.waitall()


def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype; MXNet calls bfloat16 a structure of one such field."""
    return _BFLOAT16 if dtype.names == (_BFLOAT16,) else dtype_name(dtype)


def as_weight(value: Any) -> Weight:
    """Return the weight of an array: NDArray, ``mx.np.ndarray``, NumPy or a Weight.

    Raises:
        OptionError: It is none of these.
    """
    if isinstance(value, Weight):
        return value
    if isinstance(value, np.ndarray):
        return _array_weight(value)
    if type(value).__module__.startswith("mxnet") and hasattr(value, "asnumpy"):
        dense = getattr(value, "stype", "default") == "default"
        return NDArrayWeight(value) if dense else _SparseNDArrayWeight(value)
    raise OptionError(f"expected an array, found {type(value).__name__}")


def _array_weight(value: Array) -> Weight:
    dtype = value.dtype
    if dtype.names == (_BFLOAT16,):
        return ArrayWeight(np.ascontiguousarray(value).view(numpy_dtype(_BFLOAT16)))
    if dtype.kind not in "biuf" and dtype.name != _BFLOAT16:
        raise OptionError(f"expected an array of numbers, found one of {dtype}")
    return ArrayWeight(value.astype(dtype.newbyteorder("<"), copy=False))


def weights_of(params: object) -> list[tuple[str, Weight]]:
    """Return names and weights of the `params` argument of an API; names keep their prefix.

    Args:
        params: A mapping of arrays, an ``(arg, aux)`` pair of mappings, or None.

    Raises:
        OptionError: It is none of these.
    """
    if params is None:
        return []
    if isinstance(params, Mapping):
        return [(_name(name), as_weight(value)) for name, value in params.items()]
    if isinstance(params, (tuple, list)) and len(params) == 2:
        kinds = zip(("arg:", "aux:"), params, strict=True)
        return [
            (kind + name.removeprefix(kind), weight)
            for kind, part in kinds
            for name, weight in weights_of(part)
        ]
    raise OptionError(
        f"expected parameters as a mapping of arrays or an (arg, aux) pair, "
        f"found {type(params).__name__}"
    )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise OptionError(f"expected names of parameters, found {name!r}")
    return name


def assign(
    graph: Graph, named: Iterable[tuple[str, Weight]], *, path: str | None = None
) -> tuple[dict[str, Weight], dict[str, Weight]]:
    """Return weights by bare name: those of arguments, and those of auxiliary states.

    What the graph takes goes where the graph takes it, whether its name has the other prefix or
    none, as long as no other has the right one; what it does not take goes where its prefix says.

    Raises:
        FormatError: Two parameters have one name.
    """
    kinds: dict[str, dict[str, Weight]] = {"arg": {}, "aux": {}}
    places = {node.name: "arg" for node in graph.variables}
    places |= dict.fromkeys(_auxiliary_names(graph), "aux")
    misplaced = []
    for full, weight in named:
        kind, colon, name = full.partition(":")
        if not colon or kind not in kinds:
            kind, name = places.get(full, "arg"), full
        if name in kinds[kind]:
            raise FormatError(f"two parameters are called {kind}:{name}", path=path)
        kinds[kind][name] = weight
        if kind != places.get(name, kind):
            misplaced.append((kind, name))
    for kind, name in misplaced:
        kinds[places[name]].setdefault(name, kinds[kind].pop(name))
    return kinds["arg"], kinds["aux"]


def _auxiliary_names(graph: Graph) -> set[str]:
    names = set()
    for node in graph.nodes:
        for position in AUXILIARY.get(node.op, ()):
            if position < len(node.inputs):
                names.add(graph.nodes[node.inputs[position].node].name)
    return names


class SparseWeight(Weight):
    """A tensor of which a file holds only some values; the others are zero.

    Its indices are read and checked when the first values are asked for.

    Args:
        storage: The kind of storage.
        shape: Lengths of the axes of the dense tensor.
        data: The stored values: ``(n, *shape[1:])``, or ``(n,)`` for csr.
        indices: Rows of the values, or columns for csr: ``(n,)``.
        indptr: For csr, where each row begins in `data`: ``(rows + 1,)``.
        path: The file, for messages.
        offset: Where in the file the array begins.

    Raises:
        LimitError: The dense tensor would be out of proportion to what is stored, and take more
            bytes of constants than are left.
    """

    sparse = True

    def __init__(
        self,
        storage: Literal["row_sparse", "csr"],
        shape: tuple[int, ...],
        data: Weight,
        indices: Weight,
        indptr: Weight | None = None,
        *,
        path: str | None = None,
        offset: int | None = None,
    ) -> None:
        """Take what is stored; what it claims to hold must be in proportion to it."""
        self.storage = storage
        self.shape = shape
        self.dtype = data.dtype
        self._data = data
        self._stored_indices = indices
        self._stored_indptr = indptr
        self._path = path
        self._offset = offset
        self._held = data.size or (indptr is not None and indptr.size)
        stored = data.nbytes + indices.nbytes
        allow_growth(stored, self.nbytes, MAX_ARCHIVE_RATIO, f"a {storage} array")

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0, zeros where nothing is stored.

        Raises:
            FormatError: The indices are out of order or range.
        """
        value = np.zeros((stop - start, *self.shape[1:]), numpy_dtype(self.dtype))
        if not value.size or not self._held:
            return value
        if self.storage == "row_sparse":
            low, high = (int(i) for i in np.searchsorted(self._row_indices, (start, stop)))
            if low < high:
                value[self._row_indices[low:high] - start] = self._data.rows(low, high)
            return value
        indptr, columns = self._csr_indices
        low, high = int(indptr[start]), int(indptr[stop])
        if low < high:
            rows = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
            value[rows, columns[low:high]] = self._data.rows(low, high)
        return value

    @cached_property
    def _row_indices(self) -> Array:
        return self._ascending(self._stored_indices.array(), self.shape[0], "row")

    @cached_property
    def _csr_indices(self) -> tuple[Array, Array]:
        rows, columns = self.shape
        indptr = np.zeros(rows + 1, np.int64)
        if self._stored_indptr is not None and self._stored_indptr.size:
            indptr = self._stored_indptr.array().astype(np.int64)
        count = self._data.size
        if indptr[0] != 0 or indptr[-1] != count or np.any(np.diff(indptr) < 0):
            raise self._error(f"row pointers: expected to ascend from 0 to {count}")
        indices = self._stored_indices.array().astype(np.int64)
        self._check_range(indices, columns, "column")
        keys = np.repeat(np.arange(rows), np.diff(indptr)) * columns + indices
        self._ascending(keys, rows * columns, "column")
        return indptr, indices

    def _ascending(self, indices: Array, limit: int, what: str) -> Array:
        indices = indices.astype(np.int64)
        self._check_range(indices, limit, what)
        if np.any(np.diff(indices) <= 0):
            raise self._error(f"{what} indices: expected to ascend")
        return indices

    def _check_range(self, indices: Array, limit: int, what: str) -> None:
        if indices.size and (indices.min() < 0 or indices.max() >= limit):
            raise self._error(f"{what} indices: expected 0 to {limit - 1}")

    def _error(self, message: str) -> FormatError:
        return FormatError(f"{self.storage} array: {message}", path=self._path, offset=self._offset)
