"""Measures Core ML export against coremltools' own conversion of the same nets from PyTorch.

    python benchmarks/coreml.py [resnet50 bert ...]

Needs PyTorch and coremltools, as the environment of ``make test-torch`` has them. Each net is
built in PyTorch with random weights. coremltools converts its trace; serde converts the ONNX
file that PyTorch writes of it.
Both write an ML Program. Times are medians of three alternating rounds, each in a new process that
has converted a tiny net before; memory is the peak above what the process had then.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ROUNDS = 3
MB = 1e6
PRECISIONS = ("float32", "float16")


def resnet50() -> tuple[Any, Any]:
    """ResNet-50 and an image."""
    import torch
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            after = 4 * width
            self.body = nn.Sequential(
                nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
                nn.ReLU(), nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after),
            )  # fmt: skip
            same = before == after and stride == 1
            around = [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)]
            self.around = nn.Identity() if same else nn.Sequential(*around)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.body(x) + self.around(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            layers.append(Bottleneck(before, 64 << stage, 2 if stage and not block else 1))
            before = 256 << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)]
    return nn.Sequential(*layers), torch.rand(1, 3, 224, 224)


def bert() -> tuple[Any, Any]:
    """The twelve layers of BERT base with its vocabulary, and 128 tokens."""
    import torch
    from torch import nn

    width, heads = 768, 12

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = (self.query(x), self.key(x), self.value(x))
            q, k, v = (each.view(1, 128, heads, width // heads).transpose(1, 2) for each in parts)
            scores = torch.softmax(q @ k.transpose(-1, -2) / (width // heads) ** 0.5, -1)
            x = self.norms[0](x + self.out((scores @ v).transpose(1, 2).reshape(1, 128, width)))
            return self.norms[1](x + self.narrow(nn.functional.gelu(self.wide(x))))

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(30522, width), nn.Embedding(128, width)
            self.norm = nn.LayerNorm(width)
            self.layers = nn.Sequential(*(Layer() for _ in range(12)))

        def forward(self, tokens: Any) -> Any:
            x = self.norm(self.words(tokens) + self.places.weight)
            return self.layers(x)

    return Bert(), torch.randint(0, 30522, (1, 128), dtype=torch.int32)


def tiny() -> tuple[Any, Any]:
    """What loads all modules."""
    import torch

    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()), torch.rand(1, 3, 8, 8)


NETS: dict[str, Callable[[], tuple[Any, Any]]] = {"resnet50": resnet50, "bert": bert}


def built(name: str) -> tuple[Any, Any]:
    """A net in evaluation mode, and an input."""
    import torch

    torch.manual_seed(1)
    net, example = {**NETS, "tiny": tiny}[name]()
    return net.eval(), example


def write(name: str, path: Path) -> None:
    """Write a net as ONNX."""
    import torch

    net, example = built(name)
    torch.onnx.export(net, (example,), str(path), dynamo=False, opset_version=17)


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call, and bytes of memory at its peak beyond those before it."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is in use
    before, start = high_water(), time.perf_counter()
    run()
    return time.perf_counter() - start, high_water() - before


def high_water() -> float:
    """The greatest resident size of this process so far, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise SystemExit("this system does not tell the peak memory of a process")
    return int(found.group(1)) * 1024


def peer(name: str, precision: str, directory: Path) -> tuple[float, float]:
    """Convert a trace by coremltools."""
    import coremltools
    import torch

    def convert(name: str) -> Callable[[], object]:
        net, example = built(name)
        trace = torch.jit.trace(net, example)
        given = coremltools.TensorType(name="x", shape=example.shape, dtype=_dtype(example))
        chosen = getattr(coremltools.precision, precision.upper())
        target = directory / f"{name}-peer.mlpackage"
        return lambda: coremltools.convert(
            trace,
            inputs=[given],
            compute_precision=chosen,
            minimum_deployment_target=coremltools.target.iOS15,
        ).save(str(target))

    convert("tiny")()
    return measured(convert(name))


def _dtype(example: Any) -> Any:
    import numpy as np

    return np.int32 if not example.is_floating_point() else np.float32


def own(name: str, precision: str, directory: Path) -> tuple[float, float]:
    """Convert an ONNX file by serde."""
    import serde

    def convert(name: str) -> object:
        source, target = directory / f"{name}.onnx", directory / f"{name}.mlpackage"
        return serde.convert(source, target, compute_precision=precision)

    convert("tiny")
    return measured(lambda: convert(name))


WAYS = {"coremltools": peer, "serde": own}


def in_process(way: str, *arguments: str) -> tuple[float, float]:
    """Seconds and bytes, from a new process; its bars of progress are not shown."""
    command = [sys.executable, __file__, "--way", way, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, size = json.loads(done.stdout.splitlines()[-1])
    return seconds, size


def measure(name: str, directory: Path) -> None:
    """Print a row for each precision of a net."""
    write(name, directory / f"{name}.onnx")
    for precision in PRECISIONS:
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, rows in found.items():
                rows.append(in_process(way, name, precision, str(directory)))
        (theirs, their_peak), (ours, our_peak) = (
            [statistics.median(column) for column in zip(*rows, strict=True)]
            for rows in found.values()
        )
        print(
            f"| {name}, {precision} | {theirs:.2f} s | {ours:.2f} s | {ours / theirs:.2f} "
            f"| {their_peak / MB:.0f} MB | {our_peak / MB:.0f} MB | {our_peak / their_peak:.2f} |",
            flush=True,
        )


def main() -> None:
    """Measure the nets named on the command line, or all."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if arguments[:1] == ["--way"]:
        way, name, precision, directory = arguments[1:]
        print(json.dumps(WAYS[way](name, precision, Path(directory))))
        return
    if not all(map(importlib.util.find_spec, ("torch", "coremltools"))):
        print("PyTorch and coremltools are not installed for this Python: nothing to compare with")
        return
    print("| net | coremltools | serde | ratio | coremltools, peak | serde, peak | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        write("tiny", Path(directory) / "tiny.onnx")
        for name in arguments or NETS:
            measure(name, Path(directory))


if __name__ == "__main__":
    main()
