"""Bridges between formats and Relay, and the table of formats.

A format is an object with the methods of :class:`Bridge`. The table names the
module that holds each one; it is imported when the format is first used.
Other packages add formats through the entry-point group ``serde.formats``,
whose entries name a :class:`Bridge` object.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import Any as AnyValue
from typing import ClassVar, SupportsIndex

from serde.errors import FormatError, OptionError
from serde.io.atomic import check_files
from serde.relay.ir.dims import Any, DimLike, SymDim
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import TensorType, Type
from serde.report import Report
from serde.weights import dtype_name

__all__ = [
    "FORMATS",
    "Bridge",
    "ExportOptions",
    "ImportOptions",
    "ModelSummary",
    "TensorNames",
    "TensorSummary",
    "bind_options",
    "format_names",
    "get_bridge",
    "source_bridge",
    "target_bridge",
]

ENTRY_POINTS = "serde.formats"

FORMATS = MappingProxyType(
    {
        "coreml": "serde.coreml",
        "mxnet": "serde.mxnet",
        "onnx": "serde.onnx",
        "relay": "serde.relayfile",
    }
)
"""Modules of the formats of this package, each with an object ``BRIDGE``."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options that every format takes when it is read.

    Attributes:
        input_shapes: Shape of each input: integers, names of dynamic dimensions, ``"?"`` (also
            -1 or None) for one without a name; a bare shape if there is one input.
        input_dtypes: dtype of each input that is not what the format says or implies; a bare
            dtype if there is one input.
        allow: Names of lossy steps that may be taken.
    """

    input_shapes: Mapping[str, Sequence[DimLike]] = field(default_factory=dict)
    input_dtypes: Mapping[str, str] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        shapes: AnyValue = self.input_shapes
        dtypes: AnyValue = self.input_dtypes
        named_shapes = shapes if isinstance(shapes, Mapping) else {"": shapes}
        named_dtypes = dtypes if isinstance(dtypes, Mapping) else {"": dtypes}
        checked = {name: _shape(name, shape) for name, shape in named_shapes.items()}
        object.__setattr__(self, "input_shapes", checked)
        names = {name: _dtype(name, dtype) for name, dtype in named_dtypes.items()}
        object.__setattr__(self, "input_dtypes", names)


def _shape(name: str, shape: AnyValue) -> tuple[DimLike, ...]:
    """Return a shape that a caller gave, unnamed dynamic dimensions as ``"?"``."""
    where = f"input_shapes: {name or 'the input'}"
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise OptionError(f"{where}: expected a shape such as (1, 3, 224, 224), found {shape!r}")
    dims: list[DimLike] = []
    for dim in shape:
        if isinstance(dim, (str, SymDim, Any)):
            dims.append(dim)
        elif dim is None or (isinstance(dim, SupportsIndex) and index(dim) == -1):
            dims.append("?")
        elif isinstance(dim, SupportsIndex) and index(dim) >= 0:
            dims.append(index(dim))
        else:
            raise OptionError(
                f"{where}: expected a length, a name such as 'N', or '?', found {dim!r} in {shape}"
            )
    return tuple(dims)


def _dtype(name: str, dtype: AnyValue) -> str:
    try:
        if dtype is None:
            raise TypeError
        return dtype_name(dtype)
    except TypeError:
        where = f"input_dtypes: {name or 'the input'}"
        raise OptionError(f"{where}: expected a dtype such as 'int32', found {dtype!r}") from None


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options that every format takes when it is written.

    Attributes:
        allow: Names of lossy steps that may be taken.
    """

    allow: frozenset[str] = frozenset()

    @property
    def keeps_functions(self) -> bool:
        """Whether global functions are to stay whole until the bridge sees them."""
        return False

    @property
    def computes_float16(self) -> bool:
        """Whether what is written computes in float16 whatever the model does."""
        return False


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """An input or output: its shape (names for dynamic dimensions) and dtype, None if not known."""

    name: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, name: str, type_: Type | None) -> TensorSummary:
        """Return what a type says of a tensor."""
        if not isinstance(type_, TensorType):
            return cls(name)
        shape = tuple(dim if isinstance(dim, int) else str(dim) for dim in type_.shape)
        return cls(name, shape, type_.dtype)


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a format says about a model by itself; None where it does not say.

    Attributes:
        version: Version of the format, or of what wrote the model.
        inputs: Inputs in order.
        outputs: Outputs in order.
        parameters: Number of elements of all weights.
        parameter_bytes: Their size in bytes.
        facts: Further facts for people, by name.
    """

    version: str = ""
    inputs: tuple[TensorSummary, ...] | None = None
    outputs: tuple[TensorSummary, ...] | None = None
    parameters: int | None = None
    parameter_bytes: int | None = None
    facts: Mapping[str, AnyValue] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether shape and dtype of every input and output are known."""
        if self.inputs is None or self.outputs is None:
            return False
        tensors = (*self.inputs, *self.outputs)
        return all(t.shape is not None and t.dtype is not None for t in tensors)


@dataclass(frozen=True, slots=True)
class TensorNames:
    """What a native model calls its inputs, outputs, weights and nodes, in its order."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]
    nodes: tuple[str, ...] = ()


class Bridge(ABC):
    """A format: how its bytes are read and written, and how its models become Relay and back.

    ``load`` and ``save`` touch bytes and never Relay; ``to_relay`` and
    ``from_relay`` never touch files. A format that can only be read has no
    ``export_options``, one that can only be written no ``import_options``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    import_options: ClassVar[type[ImportOptions] | None] = None
    export_options: ClassVar[type[ExportOptions] | None] = None

    @abstractmethod
    def detect(self, path: Path) -> bool:
        """Whether `path` holds this format, judged by its content."""

    def accepts(self, source: object) -> bool:
        """Whether `source` is a live object of this format; must import nothing."""
        return False

    def load(self, source: AnyValue, params: AnyValue, options: ImportOptions) -> AnyValue:
        """Return the native model of a path, bytes or a live object.

        Raises:
            FormatError: The bytes are not of this format.
        """
        raise OptionError(f"format {self.name} cannot be read")

    def files(self, model: AnyValue) -> Sequence[Path]:
        """Return the files that a loaded model came from, which no target may replace."""
        return ()

    def to_relay(self, model: AnyValue, options: ImportOptions, *, report: Report) -> RelayModel:
        """Return the native model as Relay; gaps go into `report`.

        Raises:
            UnsupportedModelError: Some node cannot be converted.
        """
        raise OptionError(f"format {self.name} cannot be read")

    def from_relay(self, model: RelayModel, options: ExportOptions, *, report: Report) -> AnyValue:
        """Return the native model for a Relay model; gaps go into `report`.

        Raises:
            UnsupportedModelError: Some node cannot be converted.
        """
        raise OptionError(f"format {self.name} cannot be written")

    def expected(self, model: RelayModel, native: AnyValue, options: AnyValue) -> RelayModel:
        """Return what `native`, written of `model`, must compute, under the names it uses.

        Its module is that of `model` itself where the format changes neither the names of inputs
        nor what they mean. Its facts tell the lengths that the format declares.
        """
        return model

    def check_suffix(self, path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
        """Refuse a path that does not end in one of `suffixes`; an empty one stands for none.

        Raises:
            OptionError: It ends otherwise.
        """
        name = os.path.basename(os.fspath(path))
        bare = "" in suffixes and not os.path.splitext(name)[1]
        known = [suffix for suffix in suffixes if suffix]
        if bare or not name or name.endswith(tuple(known)):
            return
        raise OptionError(
            f"{os.fspath(path)}: format {self.name} is written to names that end in "
            f"{' or '.join(known)}"
        )

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse, before anything is converted, what :meth:`save` could not write.

        Args:
            path: The file to make or replace.
            options: Options of the format.
            sources: Files that must not be written over, as far as they are known; what does
                not override this method leaves them to :meth:`save`.
            overwrite: Whether files may be replaced that the user did not name and that serde
                did not write.

        Raises:
            OptionError: The suffix is none of the format's, or nothing can be written there.
        """
        check_files([path])
        self.check_suffix(path, (*self.suffixes, ""))

    def save(
        self,
        model: AnyValue,
        path: Path,
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the native model; an existing file is replaced by a finished one only.

        Args:
            model: The native model.
            path: Where to.
            options: Options of the format.
            sources: Files that must not be written over.
            before_commit: Called with the finished temporary file; if it raises, nothing stays.
        """
        raise OptionError(f"format {self.name} cannot be written")

    def complete(self, model: AnyValue) -> AnyValue:
        """Return the native object that users get, with its weights."""
        return model

    def coverage(self) -> list[tuple[str, str]]:
        """Return each operator that is converted, with a remark such as the versions covered."""
        raise OptionError(f"format {self.name} has no list of operators")

    def coverage_summary(self) -> str:
        """Return how much of the format :meth:`coverage` lists, empty where that is not known."""
        return ""

    def operators(self, model: AnyValue) -> list[str]:
        """Return the operator of every node of a native model."""
        raise OptionError(f"format {self.name} has no list of operators")

    def summary(self, model: AnyValue) -> ModelSummary:
        """Return what a native model says about itself, without conversion."""
        return ModelSummary()

    def names(self, model: AnyValue) -> TensorNames:
        """Return what a native model calls its tensors and nodes.

        Raises:
            OptionError: The format does not say.
        """
        raise OptionError(f"format {self.name} does not say what its tensors are called")

    def bind_import(self, given: Mapping[str, AnyValue]) -> AnyValue:
        """Return the options of reading made of `given`.

        Raises:
            OptionError: The format cannot be read, or does not have an option.
        """
        return _bind_whole(self, self.import_options, given, "read")

    def bind_export(self, given: Mapping[str, AnyValue]) -> AnyValue:
        """Return the options of writing made of `given`.

        Raises:
            OptionError: The format cannot be written, or does not have an option.
        """
        return _bind_whole(self, self.export_options, given, "written")


def format_names() -> list[str]:
    """Return the names of all formats, those of other packages included."""
    return sorted({*FORMATS, *_entry_points()})


def get_bridge(name: str) -> Bridge:
    """Return the bridge of the format called `name`.

    Raises:
        OptionError: There is no such format, or two packages claim the name.
    """
    module = FORMATS.get(name)
    others = _entry_points()
    if module is not None:
        if name in others:
            raise OptionError(f"format {name} is also claimed by {others[name].value}")
        return _checked(name, importlib.import_module(module).BRIDGE)
    if name not in others:
        raise OptionError(f"unknown format {name!r}; known: {', '.join(format_names())}")
    try:
        loaded = others[name].load()
    except Exception as error:
        raise OptionError(f"format {name}: {others[name].value} does not load: {error}") from error
    return _checked(name, loaded)


def _checked(name: str, bridge: object) -> Bridge:
    if not isinstance(bridge, Bridge):
        raise OptionError(f"format {name}: expected a Bridge, found {bridge!r}")
    return bridge


def _entry_points() -> dict[str, AnyValue]:
    from importlib.metadata import entry_points

    found: dict[str, AnyValue] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in found and found[entry.name].value != entry.value:
            raise OptionError(
                f"format {entry.name} is claimed by {found[entry.name].value} and {entry.value}"
            )
        found[entry.name] = entry
    return found


def source_bridge(source: object, format_name: str | None = None) -> Bridge:
    """Return the bridge that reads `source`: as named, or as its content says.

    A file that no format recognises goes to the one that its suffix names, which says what
    is wrong with it.

    Raises:
        FormatError: It is a file of no known format.
        OptionError: There is no such file, or no format takes such an object.
    """
    if format_name is not None:
        return get_bridge(format_name)
    broken: list[str] = []
    bridges = list(_loaded(broken))
    for bridge in bridges:
        if bridge.accepts(source):
            return bridge
    first = source[0] if isinstance(source, (tuple, list)) and source else source
    hint = "; ".join([f"name one ({', '.join(format_names())})", *broken])
    if not isinstance(first, (str, os.PathLike)):
        raise OptionError(f"no format accepts {type(source).__name__}; {hint}")
    for bridge in bridges:
        if bridge.detect(Path(first)):
            return bridge
    if not os.path.exists(first):
        raise OptionError(f"{os.fspath(first)}: there is no such file or model")
    for bridge in bridges:
        if bridge.import_options is not None and os.fspath(first).endswith(bridge.suffixes):
            return bridge
    raise FormatError(f"no format recognises it; {hint}", path=first)


def _loaded(broken: list[str]) -> Iterator[Bridge]:
    """Yield all formats, those of this package first; what is wrong with others goes to a list."""
    for name in sorted(format_names(), key=lambda name: (name not in FORMATS, name)):
        try:
            yield get_bridge(name)
        except OptionError as error:
            broken.append(str(error))


def target_bridge(path: str | os.PathLike[str], format_name: str | None = None) -> Bridge:
    """Return the bridge that writes `path`: as named, or by its suffix.

    Raises:
        OptionError: No format has that suffix.
    """
    if format_name is not None:
        return get_bridge(format_name)
    text = os.fspath(path).rstrip("/")  # Shells complete the name of a package so.
    broken: list[str] = []
    for bridge in _loaded(broken):
        if bridge.export_options is not None and text.endswith(bridge.suffixes):
            return bridge
    hint = "; ".join([f"name the target's format ({', '.join(format_names())})", *broken])
    raise OptionError(f"{text}: no format is known by this suffix; {hint}")


def bind_options(
    cls: type[AnyValue], given: Mapping[str, AnyValue]
) -> tuple[AnyValue, dict[str, AnyValue]]:
    """Return an options object made of the entries of `given` that it has, and the rest."""
    names = {item.name for item in dataclasses.fields(cls)}
    own = {name: value for name, value in given.items() if name in names}
    rest = {name: value for name, value in given.items() if name not in names}
    return cls(**own), rest


def _bind_whole(
    bridge: Bridge, cls: type[AnyValue] | None, given: Mapping[str, AnyValue], verb: str
) -> AnyValue:
    if cls is None:
        raise OptionError(f"format {bridge.name} cannot be {verb}")
    bound, rest = bind_options(cls, given)
    if rest:
        known = ", ".join(sorted(item.name for item in dataclasses.fields(cls)))
        raise OptionError(f"unknown option {', '.join(sorted(rest))}; known: {known}")
    return bound
