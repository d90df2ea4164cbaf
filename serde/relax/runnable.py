"""Compiled models that run in this process."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import struct
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Final

import numpy as np

from serde.bridge.summary import TensorSummary
from serde.core import replace
from serde.core.limits import CHUNK_BYTES
from serde.core.systems import keep
from serde.core.weights import Array, ArrayWeight, OpenFile, read_aligned
from serde.engine.fitting import bind_inputs
from serde.errors import CompileError, FormatError, OptionError, RelayError
from serde.io.atomic import atomic_group
from serde.io.pairs import belong_together, params_mark
from serde.io.tvm_params import read_params, write_params
from serde.relax.compiling import CompilableModel, compile_library
from serde.relax.framework import Framework, load
from serde.relax.generating import generate
from serde.relax.interface import FUNCTION, Interface
from serde.relax.live import copied_array, share
from serde.relax.pipeline import host_target
from serde.relay.ir import Any, TensorType
from serde.relay.run.binding import as_value

__all__ = ["Runnable", "compile_model", "is_library", "params_path", "save_library"]

_NAME: Final = "model.so"

_LIBRARIES: Final = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""What shared libraries of Linux, Windows and macOS begin with."""

_SYMBOL: Final = b"__tvm_ffi__library_bin"
"""Where TVM's libraries have what is not code: constants and the program of the machine."""

_SHARED_CORES: Final = Path("/sys/devices/system/cpu/smt/active")
"""Where Linux says whether two processors are one core."""


def _use_all_cores() -> None:
    """Have TVM use every core, unless the user has said how many: it takes half of the processors.

    That leaves cores idle where each processor is one.
    """
    told = {"TVM_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys()
    with contextlib.suppress(AttributeError, OSError):
        if not told and _SHARED_CORES.read_text("ascii").strip() == "0":
            os.environ["TVM_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))


def params_path(path: str | os.PathLike[str]) -> Path:
    """Return where the weights of a library lie that does not hold them."""
    return Path(f"{os.fspath(path)}.params")


class Runnable:
    """A model that TVM has compiled.

    Made by :func:`serde.compile`, or by :meth:`load`. Threads may run it at once: each has a
    virtual machine of its own, and all share the weights.

    Attributes:
        interface: What it takes and gives, with types.
    """

    interface: Interface

    def __init__(
        self,
        path: Path,
        interface: Interface,
        weights: Sequence[Array],
        *,
        folder: tempfile.TemporaryDirectory[str] | None = None,
        library: AnyValue = None,
        model: CompilableModel | None = None,
    ) -> None:
        self.interface = interface
        self._model = model
        self._path = path
        self._weights = list(weights)
        self._folder = folder
        self._library = library
        self._lock = threading.Lock()
        self._loaded: tuple[AnyValue, AnyValue, list[AnyValue]] | None = None
        self._machines = threading.local()
        self._types = {each.name: _type_of(each) for each in interface.inputs}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runnable:
        """Return what :meth:`save` has written. The code of the library is run.

        Raises:
            FormatError: It is no such library, or its weights are not beside it.
            MissingDependency: TVM is not installed, or as a release that is not known.
            OptionError: There is no such file.
        """
        if not os.path.isfile(path):
            raise OptionError(f"{os.fspath(path)}: there is no such file")
        if not is_library(Path(path)):
            raise FormatError("expected a library that serde compiled", path=path)
        library = open_library(load(), Path(path))
        interface = _read_interface(library, Path(path))
        weights = list(_read_weights(Path(path), interface))
        return cls(Path(os.path.abspath(path)), interface, weights, library=library)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(each.name for each in self.interface.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results, in order."""
        return tuple(each.name for each in self.interface.outputs)

    @property
    def target(self) -> str:
        """What it is compiled for, as TVM says it."""
        return self.interface.target

    def run(self, /, *args: AnyValue, **named: AnyValue) -> list[Array]:
        """Return the results for inputs by position or by name.

        One argument that is a mapping holds all inputs by name.

        Raises:
            OptionError: Inputs are missing, or too many; or the device is not there.
            RelayError: One does not have its type, or TVM fails.
        """
        given = bind_inputs(self.inputs, args, named)
        arrays = {name: as_value(given[name], type_, name) for name, type_ in self._types.items()}
        return [*map(copied_array, self._results(arrays))]

    __call__ = run

    def generate(
        self,
        tokens: AnyValue,
        *,
        max_new_tokens: int,
        eos: Collection[int] = (),
        attention_mask: AnyValue = None,
    ) -> Array:
        """Return the tokens that a decoder puts behind prompts, always the one with the best score.

        Args:
            tokens: A prompt, or several of one length, padded on the left.
            max_new_tokens: How many tokens at most.
            eos: Tokens that end a text.
            attention_mask: Zero where a prompt is padded.

        Raises:
            OptionError: The model is no decoder, or its caches have no room for that.
            RelayError: TVM fails.
        """
        ids = np.atleast_2d(np.asarray(tokens, np.int64))
        given = np.ones_like(ids) if attention_mask is None else attention_mask
        mask = np.atleast_2d(np.asarray(given, np.int64))
        return generate(self._results, self.interface, ids, mask, max_new_tokens, eos)

    def _results(self, given: Mapping[str, AnyValue]) -> list[AnyValue]:
        """Return the results on the device, for arrays or tensors that are there."""
        machine, device, weights = self._open()
        framework = load()
        try:
            tensors = [_to_device(framework, given[name], device) for name in self._types]
            found = machine["main"](*tensors, *weights)
            return list(found) if self.interface.several else [found]
        except Exception as error:
            told = framework.last_line(error)
            raise RelayError(f"tvm {framework.version} failed: {told}") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the library, and its weights beside it where it does not hold them.

        What was compiled for this processor, as no target was named, is compiled for its family.

        Raises:
            OptionError: Nothing can be written there.
        """
        weights = [ArrayWeight(each) for each in self._weights]
        with _staged(Path(path), bool(weights), [self._path]) as staged:
            if weights:
                names = [each.name for each in self.interface.weights]
                named = dict(zip(names, weights, strict=True))
                write_params(named, staged[0], mark=self.interface.mark)
            if self._model is None or self._model.target:
                shutil.copyfile(self._path, staged[-1])
            else:
                compile_library(self._model, staged[-1])
        return Path(path)

    def _open(self) -> tuple[AnyValue, AnyValue, list[AnyValue]]:
        """Return the virtual machine of this thread, the device, and the weights there."""
        framework = load()
        with self._lock:
            if self._loaded is None:
                _use_all_cores()
                device = framework.device(self.interface.device)
                library = self._library or open_library(framework, self._path)
                weights = [_to_device(framework, each, device) for each in self._weights]
                self._loaded = library, device, weights
        library, device, weights = self._loaded
        machine = getattr(self._machines, "machine", None)
        if machine is None:
            machine = framework.relax.VirtualMachine(library, device)
            self._machines.machine = machine
        return machine, device, weights

    def __repr__(self) -> str:
        ins, outs = (
            ", ".join(f"{each.name}: {_shown(each)}" for each in tensors)
            for tensors in (self.interface.inputs, self.interface.outputs)
        )
        return f"Runnable(({ins}) -> ({outs}), target={self.target!r})"


def _type_of(tensor: TensorSummary) -> TensorType:
    shape = [each if isinstance(each, int) else Any() for each in tensor.shape or ()]
    return TensorType(tuple(shape), tensor.dtype or "")


def _shown(tensor: TensorSummary) -> str:
    """Return a type as text, lengths that are not fixed by their names."""
    return f"Tensor[({', '.join(map(str, tensor.shape or ()))}), {tensor.dtype}]"


def _to_device(framework: Framework, data: AnyValue, device: AnyValue) -> AnyValue:
    """Return an array as a tensor of a device; that of the processor shares its memory."""
    if not isinstance(data, np.ndarray):  # It is there already.
        return data
    tensor = share(framework, data.astype(data.dtype.newbyteorder("="), copy=False))
    if str(device).startswith("cpu"):
        return tensor
    return tensor.copyto(device)


def is_library(path: Path) -> bool:
    """Whether a file is a library that TVM has linked, by its symbols; it is not loaded."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        if not file.read(4).startswith(_LIBRARIES):
            return False
        kept = b""
        while piece := file.read(CHUNK_BYTES):
            if _SYMBOL in kept + piece:
                return True
            kept = piece[-len(_SYMBOL) :]
    return False


def _is_cut_off(path: Path) -> bool:
    """Whether a library of Linux ends early, which its system tells by ending the process."""
    with path.open("rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[4:6] != b"\x02\x01":  # It has 64 bits, lowest bytes first.
        return header.startswith(_LIBRARIES[0]) and len(header) < 64
    (sections,) = struct.unpack_from("<Q", header, 40)
    size, count = struct.unpack_from("<HH", header, 58)
    return path.stat().st_size < sections + size * count


def open_library(framework: Framework, path: Path) -> AnyValue:
    """Return a library of TVM's, loaded.

    Raises:
        FormatError: It is none, or needs what this TVM does not have.
    """
    if _is_cut_off(path):
        raise FormatError("the library is cut off", path=path)
    # A system loads no other file under a name that it knows, though another lies there by now.
    with tempfile.TemporaryDirectory(prefix="serde-", ignore_cleanup_errors=True) as folder:
        alone = Path(folder) / f"{secrets.token_hex(8)}{path.suffix}"
        keep(path.resolve(), alone)  # A copy, if it is of another file system.
        try:
            return framework.tvm.runtime.load_module(str(alone))
        except Exception as error:
            told = f"TVM {framework.version} cannot load it: {framework.last_line(error)}"
            raise FormatError(told, path=path) from error


def _read_interface(library: AnyValue, path: Path) -> Interface:
    framework = load()
    try:
        machine = framework.relax.VirtualMachine(library, framework.tvm.cpu())
        told = machine[FUNCTION]().numpy().tobytes().decode()
    except Exception as error:
        raise FormatError(
            f"expected a library that serde compiled: {framework.last_line(error)}", path=path
        ) from error
    return Interface.from_text(told)


def _read_weights(path: Path, interface: Interface) -> Iterator[Array]:
    """Yield the weights of a library, each in memory that TVM can share."""
    if not interface.weights:
        return
    beside = params_path(path)
    if not beside.is_file():
        raise FormatError(f"its weights are not there: {beside.name}", path=path)
    with OpenFile.open(beside) as file:
        found = read_params(file)
        if not belong_together(interface.mark, params_mark(file)):
            reason = f"these weights were not written with the library {path}: compile it again"
            raise FormatError(reason, path=beside)
        for wanted in interface.weights:
            weight = found.get(wanted.name)
            if weight is None or (weight.shape, weight.dtype) != (wanted.shape, wanted.dtype):
                said = "none" if weight is None else f"{weight.dtype}{list(weight.shape)}"
                expected = f"{wanted.dtype}{list(wanted.shape or ())}"
                raise FormatError(
                    f"weight {wanted.name}: expected {expected}, found {said}", path=beside
                )
            yield read_aligned(weight)


@contextlib.contextmanager
def _staged(
    path: Path,
    weights: bool,
    sources: Sequence[Path],
    before_commit: Callable[[Path], None] | None = None,
) -> Iterator[tuple[Path, ...]]:
    """Stage a library, behind its weights where it has any beside it."""

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[-1])

    files = [params_path(path), path] if weights else [path]
    with atomic_group(files, sources=sources, restore=True, before_commit=check) as staged:
        yield staged


def compile_model(model: CompilableModel) -> Runnable:
    """Return a model that is compiled.

    Raises:
        CompileError: TVM refuses the module, crashes, or cannot link.
    """
    folder = tempfile.TemporaryDirectory(prefix="serde-", ignore_cleanup_errors=True)
    path = Path(folder.name) / _NAME
    interface = compile_library(replace(model, target=model.target or host_target()), path)
    weights = [read_aligned(each) for each in model.beside.values()]
    return Runnable(path, interface, weights, folder=folder, model=model)


def save_library(
    model: CompilableModel,
    path: Path,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Compile a model and write it; weights go from where they are to the file beside it.

    Raises:
        CompileError: TVM refuses the module, crashes, or cannot link.
    """
    with _staged(path, bool(model.beside), sources, before_commit) as staged:
        try:
            interface = compile_library(model, staged[-1])
        except CompileError as error:
            raise CompileError(f"{path}: {error}") from error
        if model.beside:
            write_params(model.beside, staged[0], mark=interface.mark)
    return path
