"""Archives that hold a model and what a server needs besides: SageMaker's and model servers'.

``model.tar.gz`` of SageMaker, ``.mar`` of Multi Model Server and TorchServe (also as a folder),
``.model`` of MXNet Model Server and ``.task`` of MediaPipe are taken as they are. The model in them
is found by the manifest or by the names of its files, the files that it needs are copied out, and
what others say of its inputs and classes becomes options of the conversion.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import source_bridge
from serde.bridge.options import ImportOptions, bind_options
from serde.core.records import dataclass, field
from serde.errors import FormatError, OptionError, SerdeError
from serde.fleet.stores.listing import model_suffixes
from serde.fleet.stores.signatures import (
    MAX_FACT_BYTES,
    Signature,
    is_fact,
    read_json,
    read_signature,
)
from serde.io.archives import is_tar, tar_copy
from serde.io.contained import location_fault
from serde.io.staging import files_in
from serde.io.zips import is_zip, zip_copy

__all__ = ["Unpacked", "is_archive", "unpack"]

_TARS: Final = (".tar", ".tar.gz", ".tgz")
_ZIPS: Final = (".mar", ".model", ".task", ".zip")
_MANIFESTS: Final = ("MAR-INF/MANIFEST.json", "MANIFEST.json")
_PASSED_OVER: Final = frozenset({"MAR-INF", "__MACOSX", "code"})
"""Folders without models: of a server, of macOS, and of scripts for inference."""

_DEPTH: Final = 3
"""Archives within archives that are opened."""

_SMALL_TOTAL: Final = 16 * MAX_FACT_BYTES
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A model that was taken out of an archive.

    Attributes:
        path: The file that stands for it; what it needs lies beside it.
        options: Options of a conversion: ``input_shapes``, ``input_dtypes``, ``labels``.
        notes: How it was found, and what was left.
    """

    path: Path
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether `path` may be an archive that :func:`unpack` takes, by its name or its manifest."""
    name = os.fspath(path)
    if name.endswith((*_TARS, *_ZIPS)):
        return os.path.isfile(name)
    return os.path.isfile(os.path.join(name, _MANIFESTS[0]))


def unpack(
    path: Path, room: Callable[[], Path], options: Mapping[str, AnyValue], format: str | None = None
) -> Unpacked | None:
    """Take the model out of an archive, with what is said of it.

    Args:
        path: The archive, or a folder with a server's manifest.
        room: Returns a new, empty folder.
        options: Options of the conversion, of which an epoch chooses among parameters.
        format: Name of the model's format; recognised by content if left out.

    Returns:
        The model; None if the archive is a format's own, which reads it itself.

    Raises:
        FormatError: It is malformed, holds no model or several, or goes beyond the limits.
        OptionError: There is no room for it.
    """
    for _ in range(_DEPTH):
        box = _open(path, room)
        if box is None:
            return None
        inner = box.inner_archive()
        if inner is None:
            return box.unpack(options, format)
        path = box.take(inner)
    raise FormatError(f"more than {_DEPTH} archives within each other", path=path)


def _open(path: Path, room: Callable[[], Path]) -> _Box | None:
    """Return an archive with its small files copied out, None if it is left to its format."""
    if path.is_dir():
        sizes = {each.relative_to(path).as_posix(): each.stat().st_size for each in files_in(path)}
        return _Box(path, path, sizes, None)
    copy = tar_copy if is_tar(path) else zip_copy if is_zip(path) else None
    if copy is None or (copy is zip_copy and path.suffix not in _ZIPS):
        return None
    box = _Box(path, room(), {}, copy)
    box.begin()
    return box if box.is_ours() else None


@dataclass(slots=True)
class _Box:
    """An archive, and a folder into which its files go as they are needed."""

    path: Path
    folder: Path
    _sizes: dict[str, int]
    _copy: Callable[[Path, Callable[[str, int], Path | None]], dict[str, int]] | None

    def begin(self) -> None:
        """Copy out what is small, and note what else there is."""
        left = _SMALL_TOTAL

        def place(name: str, size: int) -> Path | None:
            nonlocal left
            if size > min(left, MAX_FACT_BYTES) or not _is_relevant(name):
                return None
            left -= size
            return self._place(name)

        self._sizes = {n: s for n, s in self._run(place).items() if _is_wanted(n)}

    def is_ours(self) -> bool:
        """Whether there is more to the archive than its format sees: facts, or other archives.

        A plain zip with one model is ours where no format reads it whole.
        """
        known = any(name in _MANIFESTS or is_fact(Path(name).name) for name in self._sizes)
        others = not self._models() and self.inner_archive() is not None
        if known or others or self.path.suffix in (".mar", ".model", ".task"):
            return True
        if self.path.suffix != ".zip" or len(self._models()) != 1:
            return False
        try:
            source_bridge(self.path)
        except FormatError:
            return True
        return False

    def inner_archive(self) -> str | None:
        """Return the archive in an archive that holds no model itself."""
        inner = [name for name in self._sizes if name.endswith((*_TARS, ".mar"))]
        return min(inner, key=_rank) if inner and not self._models() else None

    def take(self, name: str) -> Path:
        """Copy a file out, unless that is done, and return its path."""
        path = self.folder / name
        if not path.exists():
            self._take_all([name])
        return path

    def _take_all(self, names: Sequence[str]) -> None:
        wanted = [name for name in names if not (self.folder / name).exists()]
        missing = [name for name in wanted if name not in self._sizes]
        if missing:
            raise FormatError(f"{missing[0]} is not in the archive", path=self.path)
        if not wanted:
            return
        needed = sum(self._sizes[name] for name in wanted)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            shown = f"{needed:,} bytes of {self.path.name}; {free:,} are free"
            raise OptionError(f"{self.folder.parent.parent.parent}: no room for {shown}")
        self._run(lambda name, _size: self._place(name) if name in wanted else None)

    def _run(self, place: Callable[[str, int], Path | None]) -> dict[str, int]:
        if self._copy is None:
            return self._sizes
        try:
            return self._copy(self.path, place)
        except OSError as error:
            if error.errno not in _FULL:
                message = f"cannot be unpacked: {error.strerror}"
                raise FormatError(message, path=self.path) from error
            where = self.folder.parent.parent.parent
            message = f"{where}: no room for what is in {self.path.name}: {error.strerror}"
            raise OptionError(message) from error

    def _place(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _models(self) -> list[str]:
        """Return the files that stand for models, those nearest to the top first."""
        suffixes = tuple(each for each in model_suffixes() if each not in (*_TARS, ".mar"))
        found = [name for name in self._sizes if name.endswith(suffixes)]
        return sorted(found, key=_rank)

    def unpack(self, options: Mapping[str, AnyValue], format: str | None) -> Unpacked:
        """Return the model with all that it needs, and what is said of it."""
        name = self._named() or self._chosen()
        path = self.take(name)
        bridge = source_bridge(path, format)
        notes = [f"{self.path.name}: the model is {name}"]
        if bridge.import_options is not None:
            bound, _ = bind_options(bridge.import_options, options)
            along = list(bridge.companions(path, bound, _Members(self._sizes, name)))
            for each in along:
                fault = location_fault(each)
                if fault is not None:
                    raise FormatError(f"the name {each!r} {fault}", path=self.path)
            head = name.rpartition("/")[0]
            self._take_all([f"{head}/{each}" if head else each for each in along])
            if along:
                notes[0] += f", with {', '.join(along)}"
            notes += self._leave_others(name, along, bridge)
        said = read_signature(self._facts(name))
        return _with_facts(path, bridge, said, options, notes)

    def _leave_others(self, name: str, along: Sequence[str], bridge: AnyBridge) -> list[str]:
        """Remove what a reader could take for the model's, such as parameters of other epochs."""
        beside = _Members(self._sizes, name).names("")
        others = [
            each
            for each in beside
            if each.endswith(bridge.companion_suffixes) and each not in along and "/" not in each
        ]
        for each in others if self._copy is not None else ():
            (self.folder / name).with_name(each).unlink(missing_ok=True)
        if not along or not others:
            return []
        shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        return [f"{self.path.name}: left alone: {shown}"]

    def _facts(self, name: str) -> list[Path]:
        """Return the files of facts beside a model or above it."""
        folders = {parent.as_posix() for parent in Path(name).parents}
        found = [
            each
            for each in self._sizes
            if is_fact(Path(each).name) and Path(each).parent.as_posix() in folders
        ]
        return [self.take(each) for each in found]

    def _named(self) -> str | None:
        """Return the model that a manifest names."""
        for manifest in _MANIFESTS:
            if manifest not in self._sizes:
                continue
            found = read_json(self.take(manifest))
            facts = found if isinstance(found, Mapping) else {}
            model = facts.get("model") or facts.get("Model")
            model = model if isinstance(model, Mapping) else {}
            named = model.get("serializedFile") or model.get("Symbol")
            if isinstance(named, str) and named:
                if named not in self._sizes:
                    message = f"{manifest} names {named[:200]!r}, which is not in the archive"
                    raise FormatError(message, path=self.path)
                return named
        return None

    def _chosen(self) -> str:
        """Return the only model there is, or the only one that is nearest to the top."""
        found = self._models()
        first = [name for name in found if _rank(name)[0] == _rank(found[0])[0]]
        if len(first) == 1:
            return first[0]
        if first:
            shown = ", ".join(first[:5]) + (", ..." if len(first) > 5 else "")
            raise FormatError(
                f"expected one model in the archive, found {shown}; unpack it and name one",
                path=self.path,
            )
        names = sorted(self._sizes)
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") or "no files"
        hint = _ALONE if any(Path(name).name == _PARAMETERS for name in names) else ""
        raise FormatError(f"no model in the archive, which holds {shown}{hint}", path=self.path)


_PARAMETERS: Final = "model_algo-1"
_ALONE: Final = (
    "; model_algo-1 holds the parameters of SageMaker's semantic segmentation alone: build the "
    "GluonCV network, load them into it and convert that"
)


def _is_wanted(name: str) -> bool:
    parts = name.split("/")
    if parts[0] == "MAR-INF":
        return name == _MANIFESTS[0]
    return not parts[-1].startswith("._") and not _PASSED_OVER & {*parts[:-1]}


def _is_relevant(name: str) -> bool:
    """Whether a file is of a model or says something of it, judged by its name."""
    last = name.rpartition("/")[2]
    known = is_fact(last) or name in _MANIFESTS or name.endswith(model_suffixes())
    return known and _is_wanted(name)


def _rank(name: str) -> tuple[int, str]:
    return name.count("/"), name


@dataclass(frozen=True, slots=True)
class _Members:
    """Files of an archive beside one of them."""

    sizes: Mapping[str, int]
    own: str

    def names(self, start: str) -> Sequence[str]:
        head = self.own.rpartition("/")[0]
        before = f"{head}/" if head else ""
        found = (name[len(before) :] for name in self.sizes if name.startswith(before + start))
        return sorted(found)

    def has(self, name: str) -> bool:
        head = self.own.rpartition("/")[0]
        return (f"{head}/{name}" if head else name) in self.sizes


def _with_facts(
    path: Path,
    bridge: AnyBridge,
    said: Signature,
    options: Mapping[str, AnyValue],
    notes: Sequence[str],
) -> Unpacked:
    """Return a model with what is said of it, as far as it does not say that itself."""
    if said.shapes or said.dtypes:
        said = said.only(_open_inputs(path, bridge, options, said))
    found: dict[str, AnyValue] = {}
    given = options.get("input_shapes") or {}
    if said.shapes and isinstance(given, Mapping) and "" not in given:
        found["input_shapes"] = {**said.shapes, **given}
    dtypes = options.get("input_dtypes") or {}
    if said.dtypes and isinstance(dtypes, Mapping) and "" not in dtypes:
        found["input_dtypes"] = {**said.dtypes, **dtypes}
    if said.labels and not options.get("labels"):
        found["labels"] = said.labels
    if found:
        what = ", ".join(name.replace("_", " ") for name in found)
        notes = [*notes, f"{what} from {', '.join(said.sources)}"]
    return Unpacked(path, found, tuple(notes))


def _open_inputs(
    path: Path, bridge: AnyBridge, options: Mapping[str, AnyValue], said: Signature
) -> list[str]:
    """Return the inputs of whose shapes a model says nothing itself."""
    with suppress(SerdeError):  # What is wrong with it is told when it is converted.
        bound = bind_options(bridge.import_options or ImportOptions, options)[0]
        summary = bridge.summary(bridge.load(os.fspath(path), None, bound))
        if summary.inputs is not None:
            return [each.name for each in summary.inputs if each.shape is None]
    return [*said.shapes, *said.dtypes]
