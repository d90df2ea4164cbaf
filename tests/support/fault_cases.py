"""Conversions that are made with faults: every kind of source, every kind of target."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import serde
import serde.relay as relay
from serde.bridge import get_bridge, source_bridge
from serde.command.cli import main
from serde.report import Report
from serde.weights import ArrayWeight

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden"
WIDTH: Final = 16
NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})


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
    """Write a model; what is there may be replaced."""
    bridge = get_bridge(format)
    bound = bridge.bind_export(options)
    bridge.save(bridge.from_relay(model, bound, report=Report()), path, bound)
    return path


def _packed(folder: Path) -> Path:
    """Return the archive in which SageMaker keeps an MXNet model."""
    symbol = save(net(1), folder / "m-symbol.json", "mxnet")
    archive = folder / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        for path in (symbol, folder / "m-0000.params"):
            packed.add(path, path.name)
            path.unlink()
    return archive


def _golden(*parts: str) -> Callable[[Path], Path]:
    def copy(folder: Path) -> Path:
        path = GOLDEN.joinpath(*parts)
        return Path(shutil.copyfile(path, folder / path.name))

    return copy


def _written(name: str, format: str, **options: Any) -> Callable[[Path], Path]:
    return lambda folder: save(net(1), folder / name, format, **options)


SOURCES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "onnx": _written("m.onnx", "onnx"),
    "onnx with data": _written("m.onnx", "onnx", save_as_external_data=True),
    "mxnet": _written("m-symbol.json", "mxnet"),
    "mxnet archive": _packed,
    "relay": _written("m.relay", "relay"),
    "mlpackage": _written("m.mlpackage", "coreml"),
    "mlmodel": _written("m.mlmodel", "coreml", minimum_deployment_target="iOS14"),
    "nnef": _written("m", "nnef"),
    "nnef archive": _written("m.tgz", "nnef"),
    "relax": _written("m", "relax"),
    "pt2": _golden("torch", "cnn.pt2"),
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
}
"""The name of each target, its format and options."""


@dataclass
class Case:
    """A conversion in a folder of its own, ready to be made.

    Attributes:
        source: What is read, in ``in``.
        target: What is written, in ``out``, where an older model stands beside a file of others.
        run: Makes it.
    """

    folder: Path
    source: Path
    target: Path
    run: Callable[[], Any]
    files: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        inside = (self.folder / "in").rglob("*")
        self.files = sorted(path for path in inside if path.is_file())


def case(folder: Path, source: str, target: str, **more: Any) -> Case:
    """Return the conversion of a kind of source to a kind of target."""
    for name in ("in", "out", "tmp"):
        (folder / name).mkdir(parents=True)
    path = SOURCES[source](folder / "in")
    name, format, options = TARGETS[target]
    place = folder / "out" / name
    save(net(2), place, format, **options)
    (folder / "out" / "notes").write_text("mine")

    def run() -> Any:
        return serde.convert(path, place, target_format=format, **options, **more)

    return Case(folder, path, place, run)


def command(made: Case, *flags: str) -> Case:
    """Return a case that runs the command line with flags; an exit code that is not 0 is raised."""

    def run() -> None:
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told):
            code = main(["convert", str(made.source), str(made.target), *flags])
        if code:
            raise SystemExit(code)

    return Case(made.folder, made.source, made.target, run)


def use_temporary(folder: Path) -> None:
    """Let temporary files be made in a folder."""
    tempfile.tempdir = os.fspath(folder)


__all__ = ["SOURCES", "TARGETS", "Case", "case", "command", "net", "save", "use_temporary"]
_ = source_bridge
