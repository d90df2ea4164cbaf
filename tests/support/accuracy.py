"""How far ONNX Runtime is from MXNet on a whole net, and MXNet from itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from calibrate import calibrate, images
from support.nets import PIXEL_MEAN, PIXEL_SCALE, arcface, mobilefacenet, retinaface
from support.oracle import PlainMxnet, run_mxnet
from support.runtime import run_onnx

import serde

FLOOR = 1e-5
CEILING = 1e-4
LEAST_CHANGE = 0.1

WRONG_FUSION = 1e-2
"""MXNet that is this far from itself fuses wrongly, as it does in cifar_resnet20_v2 of gluoncv
(0.44, and 1e-6 without fusion): what it computes without fusion then counts."""

ZOO: dict[str, int] = {
    "alexnet": 224,
    **{f"densenet{layers}": 224 for layers in (121, 161, 169, 201)},
    "inceptionv3": 299,
    **{f"mobilenet{width}": 224 for width in (0.25, 0.5, 0.75, 1.0)},
    **{f"mobilenetv2_{width}": 224 for width in ("0.25", "0.5", "0.75", "1.0")},
    **{f"resnet{n}_v{v}": 224 for v in (1, 2) for n in (18, 34, 50, 101, 152)},
    **{f"squeezenet{version}": 224 for version in ("1.0", "1.1")},
    **{f"vgg{n}{bn}": 224 for bn in ("", "_bn") for n in (11, 13, 16, 19)},
}
"""Every net of ``mxnet.gluon.model_zoo.vision`` and the side of the images it takes."""

FACES = ("arcface", "arcface34", "mobilefacenet", "mobilefacenet_full", "retinaface")
"""Nets of ``support.nets``; the two full-size ones are slow to calibrate."""


@dataclass(frozen=True)
class Net:
    """A net with parameters.

    Attributes:
        symbol: The MXNet symbol.
        args: Arguments by name.
        aux: Auxiliary states by name.
        shape: Shape of the only input, ``data``.
        pixels: Whether the net takes values from 0 to 255.
    """

    symbol: Any
    args: Mapping[str, Any]
    aux: Mapping[str, Any]
    shape: tuple[int, ...]
    pixels: bool = False

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """A random image."""
        image = images(np.random.default_rng(seed), self.shape)
        if self.pixels:
            image = np.clip(image / np.float32(2 * PIXEL_SCALE) + np.float32(PIXEL_MEAN), 0, 255)
        return {"data": image}

    @property
    def reference(self) -> Any:
        """The symbol that MXNet runs where it is the judge, with the same parameters."""
        return self.symbol

    def save(self, mx: Any, prefix: Path, symbol: Any = None) -> tuple[Path, Path]:
        """Write the two files of a checkpoint, of `symbol` if given, and return their paths."""
        paths = Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params")
        (self.symbol if symbol is None else symbol).save(str(paths[0]))
        tagged = {f"arg:{name}": value for name, value in self.args.items()}
        tagged |= {f"aux:{name}": value for name, value in self.aux.items()}
        mx.nd.save(str(paths[1]), tagged)
        return paths


def zoo_net(mx: Any, name: str, side: int, seed: int = 1) -> Net:
    """A net of MXNet's model zoo with calibrated parameters."""
    shape = (1, 3, side, side)
    block = mx.gluon.model_zoo.vision.get_model(name)
    return Net(*calibrate(block, {"data": shape}, seed=seed), shape)


def face_net(mx: Any, name: str, seed: int = 1) -> Net:
    """A net of ``support.nets`` with calibrated parameters.

    Those that preprocess pixels are calibrated on what comes out of that.
    """
    if name == "retinaface":
        shape = (1, 3, 100, 140)
        return Net(*calibrate(retinaface(mx), {"data": shape}, seed=seed), shape)
    full: dict[str, dict[str, Any]] = {
        "arcface34": {"units": (3, 4, 6, 3), "filters": (64, 64, 128, 256, 512), "embedding": 512},
        "mobilefacenet_full": {"width": 64, "embedding": 128},
    }
    build = arcface if name.startswith("arcface") else mobilefacenet
    sizes = full.get(name, {})
    shape = (1, 3, 112, 112)
    _, args, aux = calibrate(build(mx, preprocess=False, **sizes), {"data": shape}, seed=seed)
    return Net(build(mx, **sizes), args, aux, shape, pixels=True)


@dataclass(frozen=True)
class Figures:
    """Differences, each the largest over a net's outputs, in deviations of the output.

    Attributes:
        opset: Version of the operator set of the converted model.
        error: ONNX Runtime against MXNet, the farther of its two settings.
        own: MXNet with MKL-DNN against MXNet without.
        change: How much another image changes the outputs; the least over them.
        nodes: Nodes of the converted model.
        layers: Nodes of the symbol, variables left out.
    """

    opset: int
    error: float
    own: float
    change: float
    nodes: int
    layers: int

    @property
    def bound(self) -> float:
        """What `error` may be."""
        return min(max(FLOOR, 3 * self.own), CEILING)

    @property
    def passed(self) -> bool:
        """Whether the conversion is right and the outputs depend on the input."""
        return self.error <= self.bound and self.change > LEAST_CHANGE


def distance(values: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> list[float]:
    """The largest difference of each output, in deviations of the reference.

    An output without deviation is the same number everywhere: it is hit or missed.

    Raises:
        AssertionError: The number of outputs or a shape differs, or a value is not finite.
    """
    if [each.shape for each in values] != [each.shape for each in reference]:
        raise AssertionError("the outputs differ in number or shape")
    if not all(np.isfinite(each).all() for each in (*values, *reference)):
        raise AssertionError("an output is not finite")
    return [_apart(ours, theirs) for ours, theirs in zip(values, reference, strict=True)]


def _apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    difference = np.abs(ours - theirs).max(initial=0)
    return float(difference / theirs.std()) if difference else 0.0


def _plain_run(
    plain_mxnet: PlainMxnet, inputs: Mapping[str, np.ndarray], directory: Path
) -> list[np.ndarray] | None:
    """What MXNet without MKL-DNN makes of the net; None where it cannot run it.

    It fails on graphs of more than one RNN, by its own check of their operands.
    """
    try:
        return plain_mxnet.run(directory / "reference", inputs, directory)
    except RuntimeError as error:
        if "rnn-inl.h" not in str(error):
            raise
        return None


def check_names(names: Sequence[str], expected: Sequence[str]) -> None:
    """Compare names of outputs; MXNet may use one more than once, where ONNX needs others.

    Raises:
        AssertionError: A name that MXNet uses once, or uses first, is another.
    """
    first = {name: at for at, name in reversed(list(enumerate(expected)))}
    found = {name: at for at, name in enumerate(names) if name in first}
    if len(names) != len(expected) or found != first:
        raise AssertionError(f"outputs are {list(names)}, not {list(expected)}")


@dataclass(frozen=True)
class Reference:
    """What MXNet makes of a net.

    Attributes:
        expected: Its outputs, with MKL-DNN's fusion unless that is wrong.
        plain: Its outputs without MKL-DNN.
        own: How far these are apart.
        change: How much another image changes the outputs; the least over them.
    """

    expected: Sequence[np.ndarray]
    plain: Sequence[np.ndarray]
    own: float
    change: float

    def error(self, found: Sequence[np.ndarray]) -> float:
        """How far other outputs are from the farther of both."""
        return max(*distance(found, self.expected), *distance(found, self.plain))


def refer(plain_mxnet: PlainMxnet, mx: Any, net: Net, directory: Path) -> Reference:
    """Run a net by MXNet in two settings, and on another image."""
    image, other = net.inputs(7), net.inputs(8)
    params, reference = {**net.args, **net.aux}, net.reference
    net.save(mx, directory / "reference", reference)
    expected = run_mxnet(reference, params, image)
    plain = _plain_run(plain_mxnet, image, directory) or expected
    own = max(distance(expected, plain))
    if own > WRONG_FUSION:
        expected = run_mxnet(reference, params, image, fuse=False)
        own = max(distance(expected, plain))
    changed = run_mxnet(reference, params, other)
    changes = zip(changed, expected, strict=True)
    change = min(float((a - b).std() / b.std()) for a, b in changes if b.std() > 0)
    return Reference(expected, plain, own, change)


def measure(
    mx: Any, plain_mxnet: PlainMxnet, net: Net, opsets: Sequence[int], directory: Path
) -> Iterator[Figures]:
    """Convert the files of a net and compare it at each operator set.

    Raises:
        AssertionError: Names, number, shapes or finiteness of the outputs differ from MXNet's.
    """
    import onnx

    image = net.inputs(7)
    paths = net.save(mx, directory / "net")
    judged = refer(plain_mxnet, mx, net, directory)
    layers = len(net.symbol.get_internals()) - len(net.symbol.list_inputs())
    for opset in opsets:
        target = serde.export_model(
            *paths,
            path=directory / "net.onnx",
            input_shapes={name: values.shape for name, values in image.items()},
            opset=opset,
        )
        names, found = run_onnx(target, image)
        check_names(names, net.symbol.list_outputs())
        error = judged.error(found)
        nodes = len(onnx.load(target, load_external_data=False).graph.node)
        yield Figures(opset, error, judged.own, judged.change, nodes, layers)
        gc.collect()
