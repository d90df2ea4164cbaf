"""The files that tests read: those made by hand begin where the libraries' do not go.

As a plugin of pytest (``-p fuzz.harvest``) it keeps a case of each path, text or run of bytes that
a test hands to a reader, in the archive that ``FUZZ_HARVEST`` names, for the format that
``FUZZ_FORMAT`` names.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from fuzz.case import Case

__all__ = ["TESTS", "harvest"]

ROOT: Final = Path(__file__).parents[1]

TESTS: Final[Mapping[str, Sequence[str]]] = {
    "coreml": [
        "formats/files/test_coreml_codec.py", "formats/qnn/test_coreml_compressed.py",
        "formats/files/test_coreml_hostile.py", "formats/graphs/test_coreml_interface.py",
        "formats/files/test_coreml_pipelines.py", "formats/files/test_coreml_weights.py",
        "formats/qnn/test_coreml_quantized.py", "formats/control/test_coreml_states.py",
        "formats/graphs/test_coreml_networks.py", "formats/image/test_coreml_image.py",
        "formats/files/test_coreml_sizes.py",
    ],
    "mxnet": [
        "formats/files/test_malformed.py", "formats/files/test_mxnet_codec.py",
        "formats/files/test_mxnet_hostile.py", "formats/files/test_mxnet_json.py",
        "formats/live/test_mxnet_sources.py", "formats/files/test_archives.py",
        "formats/bridges/test_marked_pairs.py",
    ],
    "nnef": [
        "formats/files/test_nnef_hostile.py", "formats/files/test_nnef_malformed.py",
        "formats/files/test_nnef_reading.py", "formats/files/test_nnef_folders.py",
        "formats/graphs/test_nnef_refusals.py", "formats/qnn/test_nnef_quantization.py",
        "formats/written/test_nnef_fragments.py", "formats/files/test_archives.py",
    ],
    "onnx": [
        "formats/files/test_onnx_codec.py", "formats/files/test_onnx_malformed.py",
        "formats/files/test_onnx_import_malformed.py", "formats/files/test_onnx_text.py",
        "formats/qnn/test_onnx_nibbles.py", "formats/lengths/test_onnx_bounds.py",
        "formats/graphs/test_onnx_functions.py",
    ],
    "relax": [
        "formats/files/test_relax_folders.py", "formats/files/test_relax_hostile.py",
        "formats/files/test_relax_odd_modules.py",
    ],
    "relay": [
        "relay/test_text.py", "relay/test_parser_errors.py", "relay/test_data_text.py",
        "formats/files/test_relay_format.py", "formats/files/test_relay_data.py",
        "formats/files/test_relay_handmade.py", "formats/files/test_malformed.py",
        "formats/bridges/test_marked_pairs.py",
    ],
    "tflite": [
        "formats/elementwise/test_tflite_stablehlo.py", "formats/files/test_tflite_malformed.py",
        "formats/files/test_tflite_sparse.py",
    ],
    "torch": [
        "formats/files/test_torch_pt2.py", "formats/files/test_torch_pt2_malformed.py",
        "formats/files/test_torch_pt2_versions.py",
        "formats/files/test_torch_hostile.py", "formats/control/test_torch_hops.py",
        "formats/live/test_torch_script.py", "formats/files/test_torch_script_hostile.py",
    ],
}  # fmt: skip
"""The tests of each format's reader, below ``tests``."""

_MOST_BYTES: Final = 60_000
_MOST_FILES: Final = 12
_MOST_OF_TEST: Final = 150
"""Cases kept of one test: some damage each byte of a file in turn."""

_MOST_CHARACTERS: Final = 4096
_NOT_OPTIONS: Final = frozenset(
    {"format", "source_format", "target_format", "report", "params", "path", "limits", "relay"}
)
_SECONDS: Final = 900


def harvest(format: str) -> Iterator[Case]:
    """Run the tests of a reader; yield a case of each file that they read."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "kept.zip")
        subprocess.run(
            [
                sys.executable, "-m", "pytest", "-q", "-x", "--maxfail=1000", "-p", "fuzz.harvest",
                "-p", "no:cacheprovider", "--basetemp", f"{folder}/tests",
                "-m", "not slow and not wide",
                *(f"tests/{each}" for each in TESTS[format]),
            ],
            cwd=ROOT,
            env={**os.environ, "FUZZ_HARVEST": str(kept), "FUZZ_FORMAT": format},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )  # fmt: skip
        with zipfile.ZipFile(kept) as archive:
            for name in archive.namelist():
                yield Case.unpack(name, archive.read(name))


class _Recorder:
    """Keeps what readers are given.

    Args:
        format: Name of the format.
        kept: Where to.
    """

    def __init__(self, format: str, kept: Path) -> None:
        self.format = format
        self.archive = zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED)
        self.known: set[str] = set()
        self.test = ""
        self.counts: Counter[str] = Counter()

    def keep(self, files: Mapping[str, bytes], **options: Any) -> None:
        """Keep a case, if it is small and new."""
        if not files:
            return
        case = Case.of(self.format, "", files, **options)
        mark = f"{case.digest} {options}"
        if case.size > _MOST_BYTES or mark in self.known:
            return
        self.known.add(mark)
        self.counts[self.test] += 1
        if self.counts[self.test] <= _MOST_OF_TEST:
            self.archive.writestr(f"test-{self.test}-{len(self.known)}", case.pack())

    def keep_path(self, path: Path, options: Mapping[str, Any]) -> None:
        """Keep a file with those beside it that are named alike or few, or a folder."""
        beside = sorted(path.parent.iterdir())
        if len(beside) > _MOST_FILES:
            stem = path.name.partition(".")[0].partition("-")[0]
            beside = [each for each in beside if each.name.startswith(stem)]
        inside = sorted(path.rglob("*")) if path.is_dir() else []
        paths = [path, *(each for each in beside if each != path and each.is_file())]
        files = [each for each in (*inside, *paths) if each.is_file() and not each.is_symlink()]
        if (
            len(files) > 10 * _MOST_FILES
            or sum(each.stat().st_size for each in files) > _MOST_BYTES
        ):
            return
        told = {name: each for name, each in options.items() if name not in _NOT_OPTIONS}
        self.keep({str(each.relative_to(path.parent)): each.read_bytes() for each in files}, **told)

    def keep_source(self, frame: FrameType | None) -> None:
        """Keep what the outermost call of serde was given as a path."""
        entry = None
        while frame is not None:
            if "/serde/" in frame.f_code.co_filename:
                entry = frame
            elif entry is not None:
                break
            frame = frame.f_back
        if entry is None:
            return
        code, known = entry.f_code, entry.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        given = [known.get(name) for name in code.co_varnames[: code.co_argcount]]
        options: dict[str, Any] = {}
        for name in code.co_varnames[count : count + 2]:
            if isinstance(known.get(name), tuple):
                given += known[name]
            elif isinstance(known.get(name), dict):
                options = {key: each for key, each in known[name].items() if _is_plain(each)}
        for each in given:
            if isinstance(each, (str, os.PathLike)) and len(os.fspath(each)) < _MOST_CHARACTERS:
                path = Path(each)
                if path.exists() and not path.is_relative_to(ROOT):
                    self.keep_path(path.absolute(), options)
                    return


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it is."""
    with contextlib.suppress(TypeError, ValueError):
        return bool(json.loads(json.dumps(value)) == value)
    return False


def _of_text(format: str, text: str) -> tuple[Mapping[str, bytes], Mapping[str, Any]]:
    """Return the files of a text that a test hands to the parser of a format."""
    data = text.encode("utf-8", "surrogatepass")
    if format == "relay" and not text.lstrip().startswith("#["):
        data = b'#[version = "0.0.5"]\n' + data
    if format == "relax":
        from serde.io.tvm_params import param_chunks

        return {"m_relax/model.py": data, "m_relax/model.params": b"".join(param_chunks({}))}, {}
    name = {"relay": "m.relay", "nnef": "m.nnef"}[format]
    return {name: data}, {}


def _of_bytes(format: str, data: bytes) -> tuple[Mapping[str, bytes], Mapping[str, Any]]:
    """Return the files of bytes that a test hands to the reader of a format."""
    if format == "mxnet" and data.lstrip()[:1] not in (b"{", b"["):
        symbol = b'{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], '
        symbol += b'"heads": [[0, 0, 0]]}'
        return {"m-symbol.json": symbol, "m-0000.params": data}, {}
    name = {"mxnet": "m-symbol.json", "onnx": "m.onnx", "coreml": "m.mlmodel", "relay": "m.json"}
    return {name[format]: data}, {}


_TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "nnef": ["serde.nnef.text.parser:parse"],
    "relax": ["serde.relax.text.reading:read_script", "serde.relax.text.syntax:check_script"],
    "relay": ["serde.relay.text.lexer:Lexer.__init__"],
}
_BYTES: Final[Mapping[str, Sequence[str]]] = {
    "coreml": ["serde.io.messages:MemorySource.__init__"],
    "mxnet": ["serde.mxnet.symbol_json:parse_symbol", "serde.io.cursor:Cursor.__init__"],
    "onnx": ["serde.io.messages:MemorySource.__init__", "serde.onnx.reader:_from_message"],
    "relay": ["serde.relayfile.json_graph:read_graph"],
}


def _listen(place: str, told: Callable[[Any], None]) -> None:
    """Have a function or method tell its first argument before it runs, wherever it is known."""
    module_name, _, name = place.partition(":")
    module = importlib.import_module(module_name)
    owner, _, method = name.rpartition(".")
    function = getattr(getattr(module, owner) if owner else module, method)

    def listening(*args: Any, **kwargs: Any) -> Any:
        told(args[1 if owner else 0])
        return function(*args, **kwargs)

    if owner:
        setattr(getattr(module, owner), method, listening)
        return
    for known in list(sys.modules.values()):
        for each, value in list(getattr(known, "__dict__", {}).items()):
            if value is function:
                setattr(known, each, listening)


def _install(recorder: _Recorder) -> None:
    from serde.core.weights import OpenFile

    opened = OpenFile.open.__func__

    def open_and_keep(cls: type[OpenFile], path: Any) -> OpenFile:
        with contextlib.suppress(OSError):
            recorder.keep_source(sys._getframe(1))
        found: OpenFile = opened(cls, path)
        return found

    OpenFile.open = classmethod(open_and_keep)  # type: ignore[method-assign, assignment]

    def keep_text(given: Any) -> None:
        if isinstance(given, str):
            files, options = _of_text(recorder.format, given)
            recorder.keep(files, **options)

    def keep_bytes(given: Any) -> None:
        if hasattr(given, "SerializeToString"):
            given = given.SerializeToString()
        if isinstance(given, (bytes, memoryview)):
            files, options = _of_bytes(recorder.format, bytes(given))
            recorder.keep(files, **options)

    for place in _TEXTS.get(recorder.format, ()):
        _listen(place, keep_text)
    for place in _BYTES.get(recorder.format, ()):
        _listen(place, keep_bytes)


class _Plugin:
    def __init__(self, recorder: _Recorder) -> None:
        self.recorder = recorder

    def pytest_collection_finish(self) -> None:
        _install(self.recorder)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        function = getattr(item, "originalname", item.name)
        self.recorder.test = f"{item.path.stem}-{function}".replace("test_", "")

    def pytest_unconfigure(self) -> None:
        self.recorder.archive.close()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to keep what readers are given, if that was asked for."""
    if "FUZZ_HARVEST" in os.environ:
        kept = Path(os.environ["FUZZ_HARVEST"])
        config.pluginmanager.register(_Plugin(_Recorder(os.environ["FUZZ_FORMAT"], kept)))
