"""Models a second of ``serde batch``, beside loops over the same models.

    python benchmarks/batch.py [--models 200] [--loop 20] [--runs 3]
    python benchmarks/batch.py --dask

A shell's loop starts ``serde convert`` for each model, one after the other; the loop in a process
calls ``serde.convert`` for each, and dies of the first model that crashes it. ``serde batch`` has a
process for each model too, but starts interpreters only for itself and for the one that these are
forked from: all interpreters that start during a run are counted. The three take turns; the
medians of their rates are compared. Fails where ``serde batch`` is less than 1.8 times as fast as
the shell's loop, which two cores that have nothing else to do give.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
LEAST = 1.8
INTERPRETERS = 4
"""Interpreters that ``serde batch`` may start, however many models there are."""

COUNTING = """
import os
with open(os.environ["STARTED"], "a") as file:
    file.write("started\\n")
"""
IN_PROCESS = """
import sys
import serde
for source in sys.argv[2:]:
    serde.convert(source, sys.argv[1] + "/" + source.rpartition("/")[2] + "-symbol.json")
"""


def write_net(path: Path, seed: int) -> None:
    """Write a net of a few convolutions, their normalisations and a dense layer."""
    draw = np.random.default_rng(seed)
    widths = [3, *(int(each) for each in draw.integers(4, 24, size=2 + seed % 4))]
    nodes, weights, value = [], [], "x"
    for place, (given, made) in enumerate(itertools.pairwise(widths)):
        names = [f"{kind}{place}" for kind in ("w", "scale", "shift", "mean", "var")]
        shapes = [(made, given, 3, 3), *[(made,)] * 4]
        weights += [
            numpy_helper.from_array(draw.random(shape, np.float32) + 0.5, name)
            for name, shape in zip(names, shapes, strict=True)
        ]
        nodes += [
            helper.make_node("Conv", [value, names[0]], [f"c{place}"], pads=[1, 1, 1, 1]),
            helper.make_node("BatchNormalization", [f"c{place}", *names[1:]], [f"n{place}"]),
            helper.make_node("Relu", [f"n{place}"], [f"r{place}"]),
        ]
        value = f"r{place}"
    weights.append(numpy_helper.from_array(draw.random((widths[-1], 10), np.float32), "dense"))
    nodes += [
        helper.make_node("GlobalAveragePool", [value], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "dense"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 3, 16, 16]), ("y", [1, 10]))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


class Measured:
    """What some commands took."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "sitecustomize.py").write_text(COUNTING)

    def run(self, models: int, *commands: list[str]) -> tuple[float, float, int]:
        """Return models a second, processor seconds a model and interpreters started."""
        started = self._folder / "started"
        started.write_text("")
        path = os.pathsep.join([str(ROOT), str(self._folder)])
        env = {**os.environ, "PYTHONPATH": path, "STARTED": str(started)}
        before, clock = _processor_seconds(), time.perf_counter()
        for command in commands:
            subprocess.run([sys.executable, *command], env=env, check=True, capture_output=True)
        wall = time.perf_counter() - clock
        processor = _processor_seconds() - before
        return models / wall, processor / models, len(started.read_text().splitlines())


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--loop", type=int, default=20, help="models of the shell's loop")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dask", action="store_true", help="on a Dask cluster of this machine too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return measure(folder, options)


def measure(folder: Path, options: argparse.Namespace) -> int:
    (folder / "nets").mkdir()
    nets = [folder / "nets" / f"net-{place:05d}.onnx" for place in range(options.models)]
    for seed, net in enumerate(nets):
        write_net(net, seed)
    out = folder / "out"
    workers = ["--workers", str(options.workers)]
    batch = ["-m", "serde", "batch", str(folder / "nets"), "--to", "mxnet", "--out", str(out)]
    ways = {
        "loop of serde convert": (
            options.loop,
            [["-m", "serde", "convert", str(net), f"{out}/{net.stem}-symbol.json"]
             for net in nets[: options.loop]],
        ),
        "loop in one process": (options.models, [["-c", IN_PROCESS, str(out), *map(str, nets)]]),
        "serde batch": (options.models, [[*batch, *workers]]),
    }  # fmt: skip
    if options.dask:
        ways["serde batch --dask"] = (options.models, [[*batch, "--dask", *workers]])
    rates: dict[str, list[float]] = {way: [] for way in ways}
    costs: dict[str, list[float]] = {way: [] for way in ways}
    most: dict[str, int] = dict.fromkeys(ways, 0)
    measured = Measured(folder)
    for _ in range(options.runs):
        for way, (models, commands) in ways.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            rate, cost, interpreters = measured.run(models, *commands)
            made = len(list(out.glob("*-symbol.json")))
            if made != models:
                raise SystemExit(f"{way}: {made} of {models} models were made")
            rates[way].append(rate)
            costs[way].append(cost)
            most[way] = max(most[way], interpreters)
    slow = statistics.median(rates["loop of serde convert"])
    print(f"{options.models} nets, {options.workers} workers, medians of {options.runs} runs")
    for way, (models, _) in ways.items():
        rate, cost = statistics.median(rates[way]), statistics.median(costs[way])
        print(
            f"{way:<24}{models:6d} models{rate:9.2f} models/s{rate / slow:8.2f} times"
            f"{1000 * cost:9.1f} ms of processor a model{most[way]:6d} interpreters",
            flush=True,
        )
    ratio = statistics.median(rates["serde batch"]) / slow
    few = most["serde batch"] <= INTERPRETERS
    print(f"serde batch: {ratio:.2f} times the loop of serde convert (at least {LEAST})")
    return int(ratio < LEAST or not few)


if __name__ == "__main__":
    sys.exit(main())
