"""What a conversion of a hostile file may do: give a model or one `SerdeError`, in bounds.

A run fails when it raises anything else, or an error whose exit code is that of a defect; takes
more than a second and ten times what the seed took; holds more than 64 MB and twice the file; or
leaves files behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import serde
from fuzz.case import Case
from fuzz.own import READER, read_own
from serde.command.inspection import inspect_model
from serde.core.outcome import exit_code
from serde.errors import ConverterBug, SerdeError, Unsupported

__all__ = [
    "FORMS",
    "HANDED",
    "INSPECT",
    "READ",
    "SUFFIXES",
    "Finding",
    "Judge",
    "limit_memory",
    "scratch",
]

READ = "read"
"""The target of a run that only reads."""

INSPECT = "inspect"
"""The target of a run that tells what a file holds."""

SUFFIXES = {
    "coreml": ".mlpackage",
    "mxnet": "-symbol.json",
    "nnef": ".nnef.tgz",
    "onnx": ".onnx",
    "relax": "_relax",
    "relay": ".relay",
    "tflite": ".tflite",
    "torch": "_torch",
}
"""What the names of targets end in."""

FORMS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    **{format: (format, suffix, {}) for format, suffix in SUFFIXES.items()},
    "coreml_network": ("coreml", ".mlmodel", {"minimum_deployment_target": "iOS14"}),
    "nnef_folder": ("nnef", "_nnef", {}),
    "nnef_fragments": ("nnef", "_nnef", {"nnef_fragments": True}),
    "onnx_live": ("onnx", "", {}),
    "onnx_external": ("onnx", ".onnx", {"save_as_external_data": True, "opset": 21}),
    "relay_strict": ("relay", ".relay", {"strict": True}),
}
"""What is written for each target: the format, the suffix and the options.

Without a suffix a native object is made, and no file.
"""

HANDED = "handed"
"""Option of a case: what a reader is given instead of a path, see :func:`_source`."""

SECONDS = 1.0
TIMES = 10
MEMORY = 64 * 2**20
PATIENCE = 3
"""How many times longer than it may a run goes on, before it is ended."""

_ROOT = Path(serde.__file__).parent


@dataclass(frozen=True)
class Finding:
    """A run that failed.

    Attributes:
        kind: What is wrong: ``error``, ``slow``, ``memory``, ``files`` or ``crash``.
        what: The class of the exception, where there is one.
        place: Where in serde.
        message: The exception's.
        target: The format that was written, or ``read``.
        trace: The traceback.
    """

    kind: str
    what: str
    place: str
    message: str
    target: str
    trace: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two findings one."""
        return self.kind, self.what, self.place


class _Timeout(BaseException):
    """Ends a run that takes too long."""


class Judge:
    """Runs cases in a folder of its own.

    Args:
        folder: Where files are written; it is emptied.
        memory: Whether the memory is measured, where that can be done.
        seconds: What a run may take besides ten times what its seed took.
    """

    def __init__(self, folder: Path, *, memory: bool = True, seconds: float = SECONDS) -> None:
        self.folder = folder
        self.allowed = seconds
        self.memory = memory and _reset_peak()
        self.seconds = 0.0
        self.gave_model = False

    def warm(self, case: Case, targets: Sequence[str]) -> None:
        """Convert an honest case unjudged, which imports what takes long."""
        for target in targets:
            source, written = self._folders()
            with contextlib.suppress(SerdeError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _convert(case.write(source), case.format, target, written, case.options)

    def _folders(self) -> tuple[Path, Path]:
        """Return empty folders for a source and a target."""
        shutil.rmtree(self.folder, ignore_errors=True)
        source, written = self.folder / "in", self.folder / "out"
        source.mkdir(parents=True)
        written.mkdir()
        return source, written

    def run(
        self, case: Case, target: str = READ, *, base: float = 0.0, detect: bool = False
    ) -> Finding | None:
        """Convert a case; return what is wrong with that.

        Args:
            case: The files.
            target: The format to write, or ``read``.
            base: Seconds that the honest file took.
            detect: Whether the format is recognised by content.
        """
        source, written = self._folders()
        path = case.write(source)
        before = _listing(source)
        allowed = self.allowed + TIMES * base
        held = _resident() if self.memory and _reset_peak() else 0
        found = None
        self.gave_model = False
        started = time.process_time()
        try:
            with _alarm(allowed * PATIENCE), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                format = None if detect else case.format
                _convert(path, format, target, written, case.options)
            self.gave_model = True
        except _Timeout as error:
            found = _finding("slow", error, target)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            found = _judge_error(error, target)
            left = sorted(each.name for each in written.iterdir())
            if found is None and left:
                found = Finding("files", type(error).__name__, target, str(left), target, "")
        self.seconds = time.process_time() - started
        if found is None and self.seconds > allowed:
            message = f"{self.seconds:.2f} s, of which {allowed:.2f} are allowed"
            found = Finding("slow", "", "", message, target, "")
        if found is None and held:
            more = _peak() - held
            if more > MEMORY + 2 * case.size:
                found = Finding("memory", "", "", f"{more >> 20} MB", target, "")
        if found is None and before != _listing(source):
            found = Finding("files", "source", target, "the source was changed", target, "")
        return found


def _convert(
    path: Path, format: str | None, target: str, folder: Path, options: Mapping[str, Any]
) -> None:
    if READER in options:
        read_own(path, options[READER], folder)
        return
    told = {name: value for name, value in options.items() if name != HANDED}
    source = _source(path, options.get(HANDED, ""))
    if target == INSPECT:
        found = inspect_model(source, format=format, **told)
        found.tables()
        json.dumps(found.as_dict())
        return
    if target == READ:
        model = serde.to_relay(source, format=format, **told)
        for weight in model.params.values():
            for _ in weight.chunks():
                pass
        return
    kind, suffix, writing = FORMS[target]
    if not suffix:
        serde.export_model(serde.to_relay(source, format=format, **told), format=kind, **writing)
        return
    written = folder / f"m{suffix}"
    told |= writing
    serde.convert(source, written, source_format=format, target_format=kind, **told)


def _source(path: Path, handed: str) -> Any:
    """Return what a reader is given.

    Args:
        path: The main file.
        handed: Nothing for the path, ``prefix`` for its beginning, ``bytes`` for the content,
            ``pair``, ``riap`` and ``paths`` for those of the file and of the one beside it.
    """
    if not handed or not path.is_file():
        return path
    if handed == "prefix":
        return path.with_name(path.name.partition(".")[0].partition("-")[0])
    if handed == "bytes":
        return path.read_bytes()
    files = sorted(path.parent.iterdir(), key=lambda each: (each != path, each.name))[:2]
    pair = files if handed == "paths" else [each.read_bytes() for each in files]
    return tuple(pair[::-1] if handed == "riap" else pair)


def _judge_error(error: BaseException, target: str) -> Finding | None:
    """Return what is wrong with an error at the boundary."""
    if isinstance(error, SerdeError) and type(error) is not Unsupported:
        try:
            str(error)
        except Exception as other:
            return _finding("error", other, target)
        if exit_code(error) != 70:
            return None
    if isinstance(error, ConverterBug):
        return _finding("error", _cause(error), target)
    return _finding("error", error, target)


def _cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _finding(kind: str, error: BaseException, target: str) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if Path(each.filename).is_relative_to(_ROOT)]
    place = ""
    if own:
        last = own[-1]
        name = Path(last.filename).relative_to(_ROOT)
        place = f"{name}:{last.name}" if kind == "slow" else f"{name}:{last.lineno} {last.name}"
    trace = "".join(traceback.format_exception(error))[-6000:]
    what = "" if kind == "slow" else type(error).__name__
    return Finding(kind, what, place, str(error)[:500], target, trace)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise inside after so many seconds of processor time."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Timeout

    old: Any = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def _listing(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for path in sorted(folder.rglob("*")):
        state = path.stat()
        found.append((str(path), state.st_size, state.st_mtime_ns))
    return found


def _reset_peak() -> bool:
    """Forget the most memory that was held; return whether that can be done here."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0


def _resident() -> int:
    return _status("VmRSS:")


def _peak() -> int:
    return _status("VmHWM:")


def limit_memory(nbytes: int) -> None:
    """Let this process address no more than so many bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))
    os.nice(5)


def scratch() -> str | None:
    """Return a folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
