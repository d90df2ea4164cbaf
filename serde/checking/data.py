"""Inputs of a user for a check: arrays, their files, and images.

``x.npy`` holds the one input of a model, ``x.npz`` inputs by name, an image
file pixels. A directory holds one such file for each sample, or ONNX's
``test_data_set_0/input_0.pb`` and so on. Samples are read one at a time, no
data before its shape is known to fit, and nothing that is pickled.
"""

from __future__ import annotations

import math
import os
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any as AnyValue

import numpy as np

from serde.bridge.input_types import known_image
from serde.checking.sizes import input_type, lengths_of_shape
from serde.core import MAX_ARCHIVE_RATIO, Array, Report, dataclass, dtype_name, numpy_dtype, require
from serde.engine.fitting import cast_exactly, match_names
from serde.errors import FormatError, MissingDependency, OptionError, SerdeError
from serde.io.zips import ZIP_FAULTS
from serde.relay.ir.model import RelayModel

__all__ = ["CheckData", "as_check_data"]

IMAGE_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_ARRAY_SUFFIXES = (".npy", ".npz")
_HEADER_BYTES = 2**16
_FREE_BYTES = 2**20
_DENSEST = 2 * MAX_ARCHIVE_RATIO
"""How many times its size a file may unpack to, and `_FREE_BYTES`: zeros do to a thousand times."""

_INPUT_FILE = re.compile(r"input_(\d+)\.pb")

_PILLOW_MODES = {"BGR": "RGB", "GRAYSCALE": "L", "GRAYSCALE_FLOAT16": "L", "RGB": "RGB"}
"""For each colour layout what Pillow calls it; blue first is turned round afterwards."""

_CHANNELS = {1: "GRAYSCALE", 3: "RGB"}
"""The colour layout of so many channels, where nothing is said of it."""


def as_check_data(
    given: AnyValue, images: Mapping[str, str] | None = None, *, option: str = "check_data"
) -> CheckData:
    """Return what a user gave as inputs.

    Args:
        given: A path; an array; a mapping of arrays by the name of the input; or a list of
            arrays or mappings, one for each sample.
        images: Colour layout of inputs that image files are for, by name; empty for the usual.
        option: What it was given as, for messages.

    Raises:
        OptionError: There is no such file, or it is none of these.
    """
    if isinstance(given, CheckData):
        return given
    layouts = dict(images or {})
    for name, layout in layouts.items():
        if layout and layout not in _PILLOW_MODES:
            known = ", ".join(sorted(_PILLOW_MODES))
            raise OptionError(f"image {name}: expected one of {known}, found {layout!r}")
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        if not path.exists():
            raise OptionError(f"{option}: {path}: there is no such file or directory")
        files, skipped = _sample_files(path, option)
        return CheckData(str(path), files, skipped, layouts, option)
    samples = list(given) if isinstance(given, (list, tuple)) else [given]
    for index, sample in enumerate(samples):
        if not isinstance(sample, (Mapping, np.ndarray, np.generic)):
            kind = type(sample).__name__
            raise OptionError(
                f"{option}: sample {index}: expected an array or a mapping, found {kind}"
            )
    return CheckData("arrays", samples, (), layouts, option)


def _sample_files(path: Path, option: str) -> tuple[list[Path], tuple[str, ...]]:
    """Return the files or directories that hold a sample each, and names of those that do not."""
    if not path.is_dir():
        if _is_sample(path):
            return [path], ()
        raise OptionError(f"{option}: {path}: expected .npy, .npz, an image or a directory")
    if _holds_tensors(path):
        return [path], ()
    entries = sorted(path.iterdir(), key=_by_number)
    found = [each for each in entries if _is_sample(each) or _holds_tensors(each)]
    if not found:
        raise OptionError(
            f"{option}: {path}: expected files .npy, .npz or images, or test_data_set_0 "
            "with input_0.pb; found none"
        )
    others = (each.name for each in entries if each not in found)
    return found, tuple(name for name in others if not name.startswith("."))


def _is_sample(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (*_ARRAY_SUFFIXES, *IMAGE_SUFFIXES)


def _holds_tensors(path: Path) -> bool:
    return path.is_dir() and any(map(_is_input, path.iterdir()))


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Return a key that orders names with numbers in them by the numbers."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


@dataclass(frozen=True)
class CheckData:
    """Inputs of a user.

    Attributes:
        name: What messages call them.
        sources: What holds one sample each: paths, mappings of arrays, or arrays.
        skipped: Names in the directory that were taken for no sample.
        images: Colour layout of inputs that image files are for.
        option: What they were given as, for messages.
    """

    name: str
    sources: Sequence[AnyValue]
    skipped: tuple[str, ...] = ()
    images: Mapping[str, str] | None = None
    option: str = "check_data"

    def samples(
        self, model: RelayModel, dims: Mapping[str, int], report: Report
    ) -> Iterator[dict[str, Array]]:
        """Yield the inputs of each sample by name, in the dtypes of the model.

        Args:
            model: What is run.
            dims: Lengths that dynamic dimensions must have.
            report: Gets a note on what was skipped.

        Raises:
            FormatError: A file is malformed.
            MissingDependency: Pillow is not installed, and there are images.
            OptionError: A sample does not fit the model.
        """
        if self.skipped:
            names = ", ".join(self.skipped[:5]) + (", ..." if len(self.skipped) > 5 else "")
            report.notes.append(f"{self.option}: {self.name}: not read: {names}")
        for index, source in enumerate(self.sources):
            where = str(source) if isinstance(source, Path) else f"sample {index}"
            yield _Sample(self, where, model, dims).read(source)


class _Sample:
    """One sample while it is read."""

    def __init__(
        self, data: CheckData, where: str, model: RelayModel, dims: Mapping[str, int]
    ) -> None:
        self._option = data.option
        self._where = where
        self._model = model
        self._inputs = {variable.name_hint: variable for variable in model.inputs()}
        self._lengths = dict(dims)
        self._images = data.images or {}

    def read(self, source: AnyValue) -> dict[str, Array]:
        """Return the inputs of a sample."""
        if isinstance(source, Path):
            if source.is_dir():
                return self._read_tensors(source)
            if source.suffix.lower() in IMAGE_SUFFIXES:
                return self._read_image(source)
            return self._read_npz(source) if _is_archive(source) else self._read_npy(source)
        if isinstance(source, Mapping):
            names = self._match_names([str(name) for name in source])
            return {name: self._read_value(name, source[given]) for name, given in names.items()}
        name = self._only_input("an array")
        return {name: self._check_value(name, np.asarray(source))}

    def _read_value(self, name: str, given: AnyValue) -> Array:
        """Return what a mapping holds for an input."""
        try:
            value: Array = np.asarray(given)
        except (TypeError, ValueError) as error:  # Rows of several lengths, for instance.
            raise self._fault(name, "an array", f"{type(given).__name__} ({error})") from None
        return self._check_value(name, value)

    def _match_names(self, given: Sequence[str]) -> dict[str, str]:
        """Return for each input the name it is given by: the same, or the one at its place."""
        known = ", ".join(self._inputs) or "none"
        names = match_names(list(self._inputs), given)
        for name in self._inputs:
            if name not in names:
                found = ", ".join(given) or "none"
                raise self._fault(name, "a value", f"none (there are: {found})")
        unknown = [name for name in given if name not in names.values()]
        if unknown:
            raise OptionError(
                f"{self._option}: {self._where}: no input is called {unknown[0]} "
                f"(there are: {known})"
            )
        return names

    def _only_input(self, what: str) -> str:
        if len(self._inputs) != 1:
            names = ", ".join(self._inputs) or "none"
            raise OptionError(
                f"{self._option}: {self._where}: {what} is for a model with one input, "
                f"found inputs {names}; give them by name (.npz)"
            )
        return next(iter(self._inputs))

    def _fault(self, name: str, expected: str, found: str) -> OptionError:
        return OptionError(
            f"{self._option}: {self._where}: input {name}: expected {expected}, found {found}"
        )

    def _check_shape(self, name: str, shape: Sequence[int], dtype: str) -> None:
        """Refuse a shape that the input cannot have, beside those of the inputs before it."""
        variable = self._inputs[name]
        type_ = input_type(variable)
        found = f"{dtype}{list(shape)}"
        own = lengths_of_shape(variable, shape)
        if own is None:
            raise self._fault(name, repr(type_), found)
        for symbol, length in own.items():
            known = self._lengths.setdefault(symbol, length)
            if known != length:
                raise self._fault(name, f"{symbol}={known}", found)

    def _check_value(self, name: str, value: Array) -> Array:
        """Return a value in the dtype of its input, after its shape is known to fit."""
        found = dtype_name(value.dtype)
        self._check_shape(name, value.shape, found)
        wanted = input_type(self._inputs[name]).dtype
        if value.dtype.kind in "OSUM":
            raise self._fault(name, wanted, found)
        cast = _cast_as_declared(value, wanted)
        if cast is None:
            what = f"{found} with values that {wanted} does not hold"
            raise self._fault(name, wanted, what)
        return cast

    def _read_npy(self, path: Path) -> dict[str, Array]:
        name = self._only_input("a .npy file")
        with open(path, "rb") as stream:
            return {name: self._read_array(name, stream, path, path.stat().st_size)}

    def _read_npz(self, path: Path) -> dict[str, Array]:
        try:
            with zipfile.ZipFile(path) as archive:
                members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
                found = {}
                for name, given in self._match_names(list(members)).items():
                    member = members[given]
                    if member.file_size > _DENSEST * path.stat().st_size + _FREE_BYTES:
                        raise FormatError(
                            f"{self._option}: {given} unpacks to more than {_DENSEST} times the "
                            "size of the file",
                            path=path,
                        )
                    with archive.open(member) as stream:
                        found[name] = self._read_array(name, stream, path, member.file_size)
                return found
        except (*ZIP_FAULTS, OSError) as error:
            if isinstance(error, SerdeError):
                raise
            raise FormatError(
                f"{self._option}: expected a .npz file: {error}", path=path
            ) from error

    def _read_array(self, name: str, stream: IO[bytes], path: Path, size: int) -> Array:
        """Read one array, after its shape is known to fit and its bytes to be there."""
        try:
            shape, by_column, dtype = _read_header(stream)
        except ValueError as error:
            raise FormatError(
                f"{self._option}: expected a .npy array: {error}", path=path
            ) from error
        if dtype.hasobject:
            raise self._fault(name, "numbers", "pickled Python objects, which are not read")
        if dtype.kind not in "biuf":
            raise self._fault(name, input_type(self._inputs[name]).dtype, str(dtype))
        self._check_shape(name, shape, dtype.name)
        count = math.prod(shape)
        if count * dtype.itemsize > size:
            raise FormatError(
                f"{self._option}: expected {count * dtype.itemsize} bytes of values, "
                f"found a file of {size}",
                path=path,
            )
        data = stream.read(count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise FormatError(f"{self._option}: the values end early", path=path)
        value = np.frombuffer(data, dtype).reshape(shape, order="F" if by_column else "C")
        return self._check_value(name, np.ascontiguousarray(value.astype(dtype.newbyteorder("="))))

    def _read_tensors(self, path: Path) -> dict[str, Array]:
        """Read the tensors of an ONNX test case, by their names or else by their numbers."""
        import onnx

        files = sorted(filter(_is_input, path.iterdir()), key=_by_number)
        tensors = []
        for file in files:
            tensor = onnx.TensorProto()
            try:
                tensor.ParseFromString(file.read_bytes())
            except Exception as error:
                raise FormatError(f"{self._option}: expected an ONNX tensor", path=file) from error
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                raise FormatError(f"{self._option}: its values are in another file", path=file)
            tensors.append(tensor)
        own = [tensor.name for tensor in tensors]
        usable = len(set(own)) == len(own) and set(own) <= set(self._inputs)
        given = own if usable else [str(index) for index in range(len(own))]
        by_name = dict(zip(given, zip(tensors, files, strict=True), strict=True))
        found = {}
        for name, key in self._match_names(given).items():
            tensor, file = by_name[key]
            self._where = str(file)
            try:
                found[name] = self._check_value(name, onnx.numpy_helper.to_array(tensor))
            except Exception as error:  # Of ONNX's reader, for whatever the tensor claims.
                if isinstance(error, SerdeError):
                    raise
                raise FormatError(f"{self._option}: no ONNX tensor: {error}", path=file) from error
        return found

    def _read_image(self, path: Path) -> dict[str, Array]:
        """Read pixels, which must have the size that the input has."""
        name, layout, channels_last = self._image_input()
        try:
            image_module = require("PIL.Image")
        except MissingDependency as error:
            raise MissingDependency(
                "Pillow", extra="check", reason=f"it reads images, such as {path}"
            ) from error
        try:
            with image_module.open(path) as image:
                channels = 1 if _PILLOW_MODES[layout] == "L" else 3
                size = (image.height, image.width)
                shape = (1, *size, channels) if channels_last else (1, channels, *size)
                self._check_shape(name, shape, "pixels ")
                if math.prod(shape) > _DENSEST * path.stat().st_size + _FREE_BYTES:
                    raise FormatError(
                        f"{self._option}: {size[0]} by {size[1]} pixels are more than "
                        f"{_DENSEST} times the size of the file",
                        path=path,
                    )
                if image.mode.startswith(("I", "F")):
                    raise self._fault(name, "an image of 8 bits", f"mode {image.mode}")
                pixels = np.asarray(image.convert(_PILLOW_MODES[layout]))
        except Exception as error:  # Of Pillow's readers, for whatever a file claims.
            if isinstance(error, SerdeError):
                raise
            told = " ".join(str(error).split())
            raise FormatError(f"{self._option}: expected an image: {told}", path=path) from error
        pixels = pixels.reshape(*size, channels)
        if layout == "BGR":
            pixels = pixels[..., ::-1]
        known = known_image(self._model.meta.extra, name)
        if known is not None and numpy_dtype(input_type(self._inputs[name]).dtype).kind == "f":
            scale, bias = (np.array(each, np.float32) for each in (known.scale, known.bias))
            pixels = pixels * scale + bias
        value = pixels[None] if channels_last else pixels.transpose(2, 0, 1)[None]
        return {name: self._check_value(name, np.ascontiguousarray(value))}

    def _image_input(self) -> tuple[str, str, bool]:
        """Return the input that an image is for, its colour layout, and where its channels are."""
        wanted = [name for name in self._images if name]
        unknown = [name for name in wanted if name not in self._inputs]
        if unknown:
            known = ", ".join(self._inputs) or "none"
            raise OptionError(f"image: no input is called {unknown[0]} (there are: {known})")
        name = wanted[0] if len(wanted) == 1 else self._only_input("an image file")
        said = self._images.get(name) or self._model.meta.extra.get(f"{name}.color_space", "")
        shape = input_type(self._inputs[name]).shape
        if len(shape) == 4:
            for axis in (1, 3):
                channels = shape[axis]
                if isinstance(channels, int) and channels in _CHANNELS:
                    layout = said if said in _PILLOW_MODES else _CHANNELS[channels]
                    return name, layout, axis == 3
        found = repr(input_type(self._inputs[name]))
        raise self._fault(name, "an image of 1 or 3 channels, (1, 3, H, W) or (1, H, W, 3)", found)


class _Bounded:
    """A stream of which NumPy reads a header, whose length the file claims."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, count: int) -> bytes:
        if count > _HEADER_BYTES:
            raise ValueError(f"a header of {count} bytes")
        return self._stream.read(count)


def _read_header(stream: IO[bytes]) -> AnyValue:
    """Return shape, whether columns come first, and dtype of a .npy array."""
    files: AnyValue = np.lib.format
    bounded = _Bounded(stream)
    readers = {(1, 0): files.read_array_header_1_0, (2, 0): files.read_array_header_2_0}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = files.read_magic(bounded)
            found = readers[version](bounded) if version in readers else None
    except zipfile.BadZipFile:
        raise
    except Exception as error:  # Of NumPy's parser, of Python's, and of Python's tokens.
        raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from None
    if found is None:
        raise ValueError(f"version {version} is not known")
    shape, by_column, dtype = found
    if any(length < 0 for length in shape):
        raise ValueError(f"shape {shape}")
    return shape, by_column, dtype


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _is_input(path: Path) -> bool:
    return _INPUT_FILE.fullmatch(path.name) is not None and path.is_file()


def _cast_as_declared(value: Array, dtype: str) -> Array | None:
    """Return what both models are given: whole numbers exactly, floats rounded; None if neither.

    NumPy saves float64 where nobody asked for it, and the rounded value is the input then.
    """
    kind = numpy_dtype(dtype)
    if value.dtype.kind != "f" or "float" not in dtype:
        return cast_exactly(value, dtype)
    with np.errstate(over="ignore"):
        rounded = value.astype(kind)
    beyond = np.isfinite(value) & ~np.isfinite(rounded.astype(np.float64))
    return None if bool(beyond.any()) else rounded
