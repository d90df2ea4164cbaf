"""Conversions to be made with faults: every kind of source, every kind of target."""

from __future__ import annotations

import gc
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import onnx
import pytest
from support.faults import Fault, Faults, SystemCall, contents, descriptors

import serde
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.command.cli import main
from serde.core.outcome import exit_code
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.engine.process import call_in_process
from serde.errors import CheckError, CompileError, SerdeError
from serde.target.splitting import split

__all__ = ["SOURCES", "TARGETS", "Case", "faults_found", "kills_found", "make_folders"]

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden"
WIDTH: Final = 16
NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})
HIDDEN: Final = re.compile(r"\.serde-\w{8}")
NOTES: Final = "notes"


def net(seed: int) -> relay.RelayModel:
    """A net with a weight that is written as it is, one that some formats transpose, and a bias."""
    rng = np.random.default_rng(seed)
    shapes = {"first": (WIDTH, WIDTH), "second": (WIDTH, WIDTH), "bias": (WIDTH,)}
    x = relay.var("x", shape=(1, WIDTH))
    weights = {name: relay.var(name, shape=shape) for name, shape in shapes.items()}
    hidden = relay.nn.bias_add(relay.nn.dense(x, weights["first"]), weights["bias"])
    hidden = relay.tanh(hidden) if seed % 2 else relay.nn.relu(hidden)
    body = relay.nn.dense(hidden, weights["second"])
    function = relay.Function([x, *weights.values()], body)
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    values = {
        name: ArrayWeight(rng.normal(size=shape).astype(np.float32))
        for name, shape in shapes.items()
    }
    return relay.RelayModel(mod, values, relay.ModelMeta(inputs=("x",), outputs=("y",)))


def save(model: relay.RelayModel, path: Path, format: str, **options: Any) -> Path:
    """Write a model, be there what may."""
    bridge = get_bridge(format)
    bound = bridge.bind_export(options)
    bridge.save(bridge.from_relay(model, bound, report=Report()), path, bound)
    return path


def _pack(folder: Path) -> Path:
    """Return the archive in which SageMaker keeps an MXNet model."""
    symbol = save(net(1), folder / "m-symbol.json", "mxnet")
    archive = folder / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for path in (symbol, folder / "m-0000.params"):
            packed.add(path, path.name)
            path.unlink()
    return archive


def _copy(*parts: str) -> Callable[[Path], Path]:
    path = GOLDEN.joinpath(*parts)
    return lambda folder: Path(shutil.copyfile(path, folder / path.name))


def _write(name: str, format: str, **options: Any) -> Callable[[Path], Path]:
    return lambda folder: save(net(1), folder / name, format, **options)


SOURCES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "onnx": _write("m.onnx", "onnx"),
    "onnx with data": _write("m.onnx", "onnx", save_as_external_data=True),
    "mxnet": _write("m-symbol.json", "mxnet"),
    "mxnet archive": _pack,
    "relay": _write("m.relay", "relay"),
    "mlpackage": _write("m.mlpackage", "coreml"),
    "mlmodel": _write("m.mlmodel", "coreml", minimum_deployment_target="iOS14"),
    "nnef": _write("m", "nnef"),
    "nnef archive": _write("m.tgz", "nnef"),
    "pt2": _copy("torch", "cnn.pt2"),
    "torch script": _write("m.pt", "torch"),
    "relax": _write("m", "relax"),
}
"""Each writes a source into a folder and returns its path."""

TARGETS: Final[Mapping[str, tuple[str, str, Mapping[str, Any]]]] = {
    "onnx": ("m.onnx", "onnx", NO_OPTIONS),
    "onnx with data": ("m.onnx", "onnx", {"save_as_external_data": True}),
    "mxnet": ("m-symbol.json", "mxnet", NO_OPTIONS),
    "relay": ("m.relay", "relay", NO_OPTIONS),
    "mlpackage": ("m.mlpackage", "coreml", NO_OPTIONS),
    "mlmodel": ("m.mlmodel", "coreml", {"minimum_deployment_target": "iOS14"}),
    "nnef": ("m", "nnef", NO_OPTIONS),
    "nnef archive": ("m.tgz", "nnef", NO_OPTIONS),
    "relax": ("m", "relax", NO_OPTIONS),
    "torch": ("m", "torch", NO_OPTIONS),
    "torch program": ("m.pt2", "torch", NO_OPTIONS),
    "torch script": ("m.pt", "torch", NO_OPTIONS),
    "library": ("m.so", "tvm", NO_OPTIONS),
    "library alone": ("m.so", "tvm", MappingProxyType({"freeze_vars": True})),
}
"""The name of each target, its format and options."""


@contextmanager
def without_processes() -> Iterator[None]:
    """Let TVM work in this process meanwhile, as faults in another one are not made.

    It parses as it does elsewhere, and opens no file for it. What it compiles is compiled once,
    in its own process; after that the same bytes are written again.
    """
    made: dict[str, bytes] = {}

    def compile_once(
        name: str, function: Any, request: Mapping[str, Any], weights: Any, *, keep: bool
    ) -> list[str]:
        path, key = Path(request["path"]), "tanh" if "tanh" in request["module"] else "relu"
        if key not in made:
            call_in_process(name, function, request, weights)
            made[key] = path.read_bytes()
            return []
        try:
            path.write_bytes(made[key])
        except OSError as error:
            raise CheckError(f"the library cannot be linked: {error.strerror}") from error
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serde.relax.text.reading.can_start", lambda: False)
        patch.setattr("serde.relax.compiling.call_in_process", compile_once)
        yield


@dataclass
class Case:
    """A conversion in a folder of its own, ready to be made.

    Attributes:
        folder: Sources are in ``in``; targets in ``out``, with a file of others; temporary files
            are made in ``tmp``.
        run: Makes it.
        describe: Returns what a folder of targets holds.
        read: Returns the model in the folder of targets, where a kill may leave files of both
            of which serde reads one.
        apart: Whether its files appear one after another, each whole.
    """

    folder: Path
    run: Callable[[], Any]
    describe: Callable[[Path], Any] = contents
    read: Callable[[], Any] | None = None
    apart: bool = False
    files: dict[Path, tuple[bytes, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside = (self.folder / "in").rglob("*")
        self.files = {path: _file(path) for path in inside if path.is_file()}
        self.out = self.folder / "out"
        self.kept = contents(self.out)
        self.old = self.describe(self.out)
        self.models = [self.read and self.read()]
        self.run()  # What is imported at first use, or kept, is no part of it.
        self.reset()
        self.run()
        self.new = self.describe(self.out)
        self.models.append(self.read and self.read())
        assert self.old != self.new
        self.reset()

    def reset(self) -> None:
        """Put back what was there before."""
        for name in ("out", "tmp"):
            shutil.rmtree(self.folder / name)
            (self.folder / name).mkdir()
        for name, (kind, data, mode) in sorted(self.kept.items()):
            path = self.out / name
            if kind == "folder":
                path.mkdir()
            else:
                path.write_bytes(data)
            path.chmod(mode & 0o7777)

    def record(self, faults: Faults) -> list[SystemCall]:
        """Return the system calls of the conversion."""
        calls = faults.record(self.run)
        assert self.describe(self.out) == self.new
        self.reset()
        return calls


def _file(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mtime_ns


def make_folders(folder: Path) -> None:
    """Make the folders of a case."""
    for name in ("in", "out", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "out" / NOTES).write_text("mine")


def convert(folder: Path, source: str, target: str, *, fresh: bool = False) -> Case:
    """Return the conversion of a kind of source to a kind of target, new or in place of another."""
    make_folders(folder)
    path = SOURCES[source](folder / "in")
    name, format, options = TARGETS[target]
    place = folder / "out" / name
    if not fresh:
        save(net(2), place, format, **options)

    shapes = {"input_shapes": {"x": (1, WIDTH)}} if source == "torch script" else {}

    def run() -> None:
        serde.convert(path, place, target_format=format, **shapes, **options)

    def read() -> Any:
        if not place.exists():
            return None
        found = serde.to_relay(place)
        values = {name: each.array().tobytes() for name, each in found.params.items()}
        return found.mod.astext(), values

    described = _describe_external if target == "onnx with data" else contents
    return Case(folder, run, described, read if target in ("mxnet", "relay") else None)


def link_weights(folder: Path) -> Case:
    """Return a conversion to a model above its source, of whose weights one stays there."""
    make_folders(folder)
    rng = np.random.default_rng(1)
    values = {name: rng.normal(size=(32, 32)).astype(np.float32) for name in ("kept", "scaled")}
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "kept"], ["h"], transB=1),
        onnx.helper.make_node("Mul", ["scaled", "half"], ["weight"]),
        onnx.helper.make_node("Gemm", ["h", "weight"], ["y"], transB=1),
    ]
    values["half"] = np.array(0.5, np.float32)
    source = folder / "out" / "weights" / "s.onnx"
    source.parent.mkdir()
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 32]) for name in "xy"
    ]
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save_model(model, source, save_as_external_data=True, location="s.data")
    place = save(net(2), folder / "out" / "m.onnx", "onnx", save_as_external_data=True)
    return Case(folder, lambda: serde.convert(source, place, link_weights=True), _describe_external)


def _describe_external(folder: Path) -> Any:
    """Return the model in a folder with its data, whatever its files are called."""
    found = contents(folder)
    named = {name for name in found if name.startswith("m.onnx")}
    others = {name: each for name, each in found.items() if name not in named}
    if not (folder / "m.onnx").exists():
        return others, b"", sorted(named)
    lean = onnx.load(folder / "m.onnx", load_external_data=False)
    read = {
        entry.value
        for tensor in lean.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    model = onnx.load(folder / "m.onnx")
    kept = [each for each in model.metadata_props if each.key != "serde.data"]  # Has their names.
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    whole = model.SerializeToString(deterministic=True)
    return others, whole, sorted(named - read - {"m.onnx"})


def convert_with_files(folder: Path) -> Case:
    """Return a run of the command line that also writes a report and a mapping of names."""
    make_folders(folder)
    source = SOURCES["onnx"](folder / "in")
    out = folder / "out"
    target = save(net(2), out / "m.onnx", "onnx")
    flags = ["--tensor-mapping", str(out / "names.json"), "--report", str(out / "report.json")]

    def run() -> None:
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told):
            code = main(["convert", str(source), str(target), *flags])
        if code:
            raise _Ended(code, told.getvalue())

    return Case(folder, run, _describe_model, apart=True)


class _Ended(SerdeError):
    """A command that ended with an exit code."""

    def __init__(self, code: int, told: str) -> None:
        super().__init__(told)
        self.code = code


def _describe_model(folder: Path) -> Any:
    """Return what a folder holds but for a report, which tells times and faults."""
    return {name: each for name, each in contents(folder).items() if name != "report.json"}


def split_model(folder: Path) -> Case:
    """Return the split of a model into regions and what stays on the host."""
    make_folders(folder)
    source = SOURCES["onnx"](folder / "in")
    other = save(net(2), folder / "other.onnx", "onnx")
    split(other, folder / "out" / "m", supported=["Gemm", "MatMul", "Add"])
    return Case(
        folder, lambda: split(source, folder / "out" / "m", supported=["Gemm", "MatMul", "Add"])
    )


def faults_found(faults: Faults, made: Case, chosen: Iterable[Fault]) -> list[str]:
    """Return what is wrong after a conversion with each of some faults."""
    return [f"{fault}: {each}" for fault in chosen for each in _complaints(faults, made, fault)]


def _complaints(faults: Faults, made: Case, fault: Fault) -> list[str]:
    opened = descriptors()
    error: BaseException | None = None
    found = []
    try:
        if not faults.run(fault, made.run):
            found.append("it did not come to that")
    except (SerdeError, OSError) as raised:
        error = raised
        found += _faults_of_error(raised, made)
    except BaseException as raised:
        error = raised
        found.append(f"raised {raised!r}")
    for path, (data, time) in made.files.items():
        if path == Path(fault.file):
            path.write_bytes(data)
            os.utime(path, ns=(time, time))
        elif _file(path) != (data, time):
            found.append(f"the source {path.name} changed")
    state = made.describe(made.out)
    wanted = made.new if error is None else made.old
    if state != wanted and not (error is not None and _is_each_whole(made, state)):
        left = sorted(os.listdir(made.out))
        found.append(f"neither as before nor as it should be after {error!r}: {left}")
    if os.listdir(made.folder / "tmp"):
        found.append("temporary files stay")
    if state != made.old or os.listdir(made.folder / "tmp"):
        made.reset()
    del error
    if descriptors() != opened:
        gc.collect()
        found += ["descriptors stay open"] if descriptors() != opened else []
    return found


def _faults_of_error(error: SerdeError | OSError, made: Case) -> list[str]:
    """Return what is wrong with an error: its exit code, or what it names."""
    code = error.code if isinstance(error, _Ended) else exit_code(error)
    usual = (1,) if isinstance(error, CompileError) else (2, 3)
    found = [] if code in usual else [f"exit code {code}: {error}"]
    text = str(error)
    if str(made.folder) not in text or HIDDEN.search(text):
        found.append(f"does not say where: {text}")
    return found


def kills_found(faults: Faults, made: Case, chosen: Iterable[Fault]) -> list[str]:
    """Return what is wrong after a conversion was killed at each of some moments, and repeated."""
    found = []
    for fault in chosen:
        faults.run_killed(fault, made.run)
        for path, kept in made.files.items():
            if _file(path) != kept:
                found.append(f"{fault}: the source {path.name} changed")
        if not _is_whole(made):
            found.append(f"{fault}: neither as before nor as after")
        made.run()
        if made.describe(made.out) != made.new or os.listdir(made.folder / "tmp"):
            found.append(f"{fault}: the next run left {sorted(os.listdir(made.out))}")
        made.reset()
    return found


def _is_each_whole(made: Case, state: Any) -> bool:
    """Whether all that appears one after another is as before or as after."""
    names = {*state, *made.old, *made.new}
    return made.apart and all(
        state.get(name) in (made.old.get(name), made.new.get(name)) for name in names
    )


def _is_whole(made: Case) -> bool:
    """Whether a model is the old or the new one; what a run hides is for the next to remove."""
    seen = made.folder / "seen"
    with suppress(FileNotFoundError):
        shutil.rmtree(seen)
    shutil.copytree(made.out, seen, ignore=shutil.ignore_patterns(".serde-*"))
    state = made.describe(seen)
    if made.describe is _describe_external:  # Of two files of data, the model reads one.
        state, old, new = state[:2], made.old[:2], made.new[:2]
        return state in (old, new)
    if state in (made.old, made.new) or _is_each_whole(made, state):
        return True
    return made.read is not None and made.read() in made.models
