"""Compares a few cheap figures with those that ``baseline.json`` has; `make bench-check` runs it.

    python benchmarks/baseline.py [--write]

Every figure is a ratio, so that it holds on any machine: CPU time beside that of something which
serde did not write (an import of its packages, ONNX's own shape inference of the same graph), or
of a large graph beside a small one, by node. Each is the least of a few rounds that take turns
with what they are compared with. A figure that is more than a quarter above its baseline fails;
``--write`` stores what was found, which is for changes whose cost is meant.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import onnx
from load import chain
from startup import IMPORT, cpu_seconds, one_layer

import serde

STORED = Path(__file__).with_name("baseline.json")
ROUNDS = 7
SMALL, LARGE = 1_000, 8_000
TOLERANCE = 1.25


def least(*steps: Callable[[], float]) -> list[float]:
    """Return the least seconds of each step, which take turns."""
    rounds = [[step() for step in steps] for _ in range(ROUNDS)]
    return [min(each) for each in zip(*rounds, strict=True)]


def cpu_of(step: Callable[[], object]) -> Callable[[], float]:
    """Return a step that gives the CPU seconds of another."""

    def run() -> float:
        gc.collect()
        start = time.process_time()
        step()
        return time.process_time() - start

    return run


def measure_start(folder: Path) -> dict[str, float]:
    """Return what whole processes take, by one that imports the packages."""
    net, target = one_layer(folder / "net.onnx"), folder / "net-symbol.json"
    convert = ["-m", "serde", "convert", str(net), str(target), "--overwrite"]
    commands = [["-c", IMPORT], ["-m", "serde", "--version"], convert]

    def process(args: list[str]) -> Callable[[], float]:
        cpu_seconds(*args, bytecode=folder / "bytecode")  # Compiles what has no byte code yet.
        return lambda: cpu_seconds(*args, bytecode=folder / "bytecode")

    packages, version, one = least(*map(process, commands))
    return {
        "serde --version, by an import of the packages": version / packages,
        "serde convert of one layer, by an import of the packages": one / packages,
    }


def measure_nodes(folder: Path) -> dict[str, float]:
    """Return what nodes take that are written to ONNX and read back."""
    steps = []
    for size in (SMALL, LARGE):
        model, path = chain(size), folder / f"{size}.onnx"
        serde.from_relay(model, path=path)
        proto = onnx.load(path)
        steps += [
            cpu_of(lambda proto=proto: onnx.shape_inference.infer_shapes(proto)),
            cpu_of(lambda model=model, path=path: serde.from_relay(model, path=path)),
            cpu_of(lambda path=path: serde.to_relay(path)),
        ]
    _, write_small, read_small, onnx_large, write_large, read_large = least(*steps)
    return {
        "nodes written, by ONNX's shape inference": write_large / onnx_large,
        "nodes read, by ONNX's shape inference": read_large / onnx_large,
        "a node written, of a large graph by a small one": write_large
        * SMALL
        / write_small
        / LARGE,
        "a node read, of a large graph by a small one": read_large * SMALL / read_small / LARGE,
    }


def exceeding(found: dict[str, float], stored: dict[str, float]) -> list[str]:
    """Return the names of figures that are too far above their baseline."""
    return [name for name, figure in found.items() if figure > stored[name] * TOLERANCE]


def main() -> int:
    """Measure, and compare or store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store what is found")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = {**measure_start(Path(name)), **measure_nodes(Path(name))}
    if options.write:
        rounded = {name: round(figure, 2) for name, figure in found.items()}
        STORED.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    slower = exceeding(found, stored)
    print("| figure | baseline | now | |\n|---|---|---|---|")
    for name, figure in found.items():
        told = "slower" if name in slower else ""
        print(f"| {name} | {stored[name]:.2f} | {figure:.2f} | {told} |")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
