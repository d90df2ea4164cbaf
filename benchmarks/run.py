"""Measures how long and in how much memory checkpoints of MXNet become ONNX files.

    python benchmarks/run.py [resnet50 | vgg16 | large ...]

Each figure is the median of five rounds; a round copies the parameter file with ``cp``,
loads it with ``mx.nd.load``, converts it with the command line in a new process and
with ``export_model`` in a warm one, all reading from the page cache. Memory is the peak
of a process during the conversion, above what it had with the same modules imported.
The aim for a conversion is one and a half times ``cp``, plus a second to start Python.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import serde  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402

mx = import_mxnet()

ROUNDS = 5
MB = 1e6
SHAPES = {
    "resnet50": (1, 3, 224, 224),
    "vgg16": (1, 3, 224, 224),
    "large": (1, 1024, 4, 4),
    "tiny": (1, 3, 8, 8),
}


def build(name: str, prefix: Path) -> None:
    """Write the files of a net; its values are random, but not chosen."""
    if name in ("resnet50", "vgg16"):
        net = mx.gluon.model_zoo.vision.get_model("resnet50_v1" if name == "resnet50" else name)
        net.initialize()
        net.hybridize()
        net(mx.nd.zeros(SHAPES[name]))
        net.export(str(prefix))
        return
    symbol = large() if name == "large" else layer(mx.sym.var("data"), "conv", 4)
    write_net(symbol, prefix, SHAPES[name])


def write_net(symbol: Any, prefix: Path, shape: tuple[int, ...]) -> None:
    """Write the files of a symbol whose input has a shape."""
    symbol.save(f"{prefix}-symbol.json")
    args, _, aux = symbol.infer_shape(data=shape)
    shapes = {
        f"arg:{key}": shape
        for key, shape in zip(symbol.list_arguments(), args, strict=True)
        if key != "data"
    }
    states = zip(symbol.list_auxiliary_states(), aux, strict=True)
    write_params(Path(f"{prefix}-0000.params"), shapes | {f"aux:{k}": v for k, v in states})


def layer(x: Any, name: str, filters: int) -> Any:
    """A convolution and its normalisation."""
    x = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=name)
    return mx.sym.relu(mx.sym.BatchNorm(x, name=f"{name}_bn", fix_gamma=False))


def large(layers: tuple[int, int] = (28, 11), widths: tuple[int, int] = (1024, 8192)) -> Any:
    """A net of 4.2 GB: 28 convolutions of 38 MB, dense layers of 537 and 268 MB.

    Args:
        layers: How many there are of each kind.
        widths: Their results.
    """
    x = mx.sym.var("data")
    for i in range(layers[0]):
        x = layer(x, f"conv{i}", widths[0])
    for i in range(layers[1]):
        x = mx.sym.relu(mx.sym.FullyConnected(x, num_hidden=widths[1], name=f"dense{i}"))
    return x


def write_params(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """Write a parameter file of MXNet 1.x piece by piece, from one block of positive noise."""
    block = np.random.default_rng(1).uniform(0.001, 0.01, 1 << 22).astype("<f4").tobytes()
    with path.open("wb") as file:
        file.write(struct.pack("<QQQ", 0x112, 0, len(shapes)))
        for shape in shapes.values():
            file.write(struct.pack("<IiI", 0xF993FAC9, 0, len(shape)))
            file.write(struct.pack(f"<{len(shape)}q", *shape))
            file.write(struct.pack("<iii", 1, 0, 0))  # device kind and number, float32
            left = 4 * int(np.prod(shape))
            while left:
                left -= file.write(block[:left])
        file.write(struct.pack("<Q", len(shapes)))
        for name in shapes:
            file.write(struct.pack("<Q", len(name)) + name.encode())


def export(prefix: Path, name: str) -> None:
    """Convert with ``export_model``."""
    serde.export_model(
        f"{prefix}-symbol.json",
        f"{prefix}-0000.params",
        path=prefix.with_name("warm.onnx"),
        input_shapes={"data": SHAPES[name]},
    )


def peak_memory(prefix: Path, name: str) -> float:
    """Bytes that a new process needs for the conversion beyond its modules."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", str(prefix), name],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def print_peak(prefix: Path, name: str) -> None:
    """Convert a tiny net, which imports all modules, then the net, and print the difference."""
    export(prefix.with_name("tiny"), "tiny")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is in use
    before = high_water()
    export(prefix, name)
    print(high_water() - before)


def high_water() -> float:
    """The greatest resident size of this process so far, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise SystemExit("this system does not tell the peak memory of a process")
    return int(found.group(1)) * 1024


def seconds(action: Callable[[], object]) -> float:
    """Time of one run, begun when earlier writes have reached the disk."""
    os.sync()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(name: str, directory: Path) -> None:
    """Build one net, time all rounds and print a row."""
    prefix = directory / name
    build(name, prefix)
    params = Path(f"{prefix}-0000.params")
    size = params.stat().st_size
    copy = ["cp", "--reflink=never", str(params), str(directory / "copy")]
    command = [sys.executable, "-m", "serde", "convert", "--quiet"]
    command += [f"{prefix}-symbol.json", str(directory / "cold.onnx"), "--input-shape"]
    command += ["data:" + ",".join(map(str, SHAPES[name]))]
    actions: dict[str, Callable[[], object]] = {
        "cp": lambda: subprocess.run(copy, check=True),
        "mx.nd.load": lambda: mx.nd.load(str(params)),
        "serde convert": lambda: subprocess.run(command, check=True, cwd=ROOT),
        "export_model": lambda: export(prefix, name),
    }
    export(prefix.with_name("tiny"), "tiny")
    actions["cp"]()  # reads the source once
    times: dict[str, list[float]] = {action: [] for action in actions}
    for _ in range(ROUNDS):
        for action, run in actions.items():
            times[action].append(seconds(run))
            for written in (*directory.glob("copy"), *directory.glob("*.onnx*")):
                written.unlink()
    medians = {action: statistics.median(each) for action, each in times.items()}
    cells = [f"{medians['cp']:.2f} s", f"{medians['mx.nd.load']:.2f} s"]
    for action in ("serde convert", "export_model"):
        by_copy, by_load = (medians[action] / medians[each] for each in ("cp", "mx.nd.load"))
        cells.append(f"{medians[action]:.2f} s ({by_copy:.1f} x cp, {by_load:.1f} x load)")
    cells.append(f"{1.5 * medians['cp'] + 1:.2f} s")
    cells.append(f"{peak_memory(prefix, name) / MB:.0f} MB")
    print(f"| {name} | {size / MB:.0f} MB | " + " | ".join(cells) + " |", flush=True)
    for written in (*directory.glob(f"{name}-*"), *directory.glob("*.onnx*")):
        written.unlink()


def main(names: list[str]) -> None:
    """Measure the nets named, or all."""
    names = names or ["resnet50", "vgg16", "large"]
    with tempfile.TemporaryDirectory() as directory:
        needed = 14e9 if "large" in names else 2e9
        if shutil.disk_usage(directory).free < needed:
            raise SystemExit(f"{directory}: {needed / 1e9:.0f} GB must be free")
        build("tiny", Path(directory) / "tiny")
        print("| net | weights | cp | nd.load | serde convert | export_model, warm | aim | peak |")
        print("|---|---|---|---|---|---|---|---|")
        for name in names:
            measure(name, Path(directory))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(Path(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1:])
