"""Prints, as markdown tables, how models split for toolchains that take a part of ONNX.

    python benchmarks/partition.py [nets | random | size | overhead] [--only] [name ...]

nets      Nets of gluoncv and gluonnlp at three operator sets, each for the three lists in
          examples/toolchains: regions, nodes outside, and how far the hybrid run is from ONNX
          Runtime's run of the whole, in deviations of each output (of a detector also the
          share of detections found again). A process of its own takes each net.
random    Random graphs with random lists of what is supported: the hybrid run within what
          roundings explain, saved and loaded again equal, regions convex.
size      Seconds a call of partitioning graphs of 1,000, 10,000 and 100,000 calls.
overhead  A ResNet-50 in one region: the hybrid executor beside ONNX Runtime alone.

The exit code is 0 where everything is right.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples"), str(ROOT / "benchmarks")]

OPSETS = (11, 13, 17)
LISTS = ("cnn-chip.toml", "mobile-npu.toml", "int8-accelerator.json")
BOUND = 1e-3
"""How far a hybrid run may be from the whole, in deviations of an output."""

LEAST_FOUND = 0.95
RANDOM_GRAPHS = 2_000
SIZES = (1_000, 10_000, 100_000)
MOST_OVERHEAD = 0.05


def judge_net(name: str) -> list[dict[str, Any]]:
    """Split a net for each list at each operator set, and compare the runs."""
    from support.zoo import selections, zoo_net

    import serde
    from serde.compat import import_mxnet

    net = zoo_net(name)
    inputs = net.inputs(7)
    selects = bool(selections(net.symbol))
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        paths = net.save(import_mxnet(), Path(directory) / "net")
        shapes = {each: values.shape for each, values in inputs.items()}
        model = serde.to_relay([str(path) for path in paths], input_shapes=shapes)
        for opset in OPSETS:
            try:
                whole = run_whole(model, opset, inputs, Path(directory))
            except Exception as error:  # whatever goes wrong is a line of the table
                rows.append({"opset": opset, "list": "whole", "fault": describe(error)})
                continue
            for each in LISTS:
                row = {"opset": opset, "list": each}
                start = time.perf_counter()
                try:
                    row |= judge_split(model, opset, each, inputs, whole, selects)
                except Exception as error:  # likewise
                    row["fault"] = describe(error)
                rows.append({**row, "seconds": time.perf_counter() - start})
    return rows


def describe(error: Exception) -> str:
    """An error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def run_whole(
    model: Any, opset: int, inputs: dict[str, np.ndarray], directory: Path
) -> list[np.ndarray]:
    """What ONNX Runtime gives for the model in one piece."""
    import onnxruntime

    import serde

    path = serde.from_relay(model, path=directory / f"whole{opset}.onnx", opset=opset)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    return list(session.run(None, {each: inputs[each] for each in names}))


def judge_split(
    model: Any,
    opset: int,
    toolchain: str,
    inputs: dict[str, np.ndarray],
    whole: list[np.ndarray],
    selects: bool,
) -> dict[str, Any]:
    """Split a model, run it and return what is printed of it."""
    from support.partitions import check_regions
    from support.zoo import found_again

    from serde.target import HybridExecutor
    from serde.target.onnx import build
    from serde.target.partition import partition_model

    source = ROOT / "examples" / "toolchains" / toolchain
    found = partition_model(model, opset=opset, supported=source)
    module = build(found.model)
    check_regions(found, module, source)
    given = HybridExecutor(module).run(inputs)
    row: dict[str, Any] = {
        "regions": len(found.regions),
        "inside": sum(region.calls for region in found.regions),
        "outside": sum(node.calls for node in found.staying),
    }
    if selects:
        row["found"] = found_again(whole, given)
        if row["found"] < LEAST_FOUND:
            row["fault"] = "detections are lost"
        return row
    row["error"] = max(map(deviations, whole, given), default=0.0)
    if not row["error"] <= BOUND:
        row["fault"] = "too far from the whole"
    return row


def deviations(whole: np.ndarray, given: np.ndarray) -> float:
    """How far one output is from another, in its deviations."""
    if whole.shape != given.shape or whole.dtype != given.dtype:
        return float("inf")
    if not whole.size:
        return 0.0
    one, other = whole.astype(np.float64), given.astype(np.float64)
    return float(np.abs(one - other).max() / max(one.std(), 1e-6))


def nets(names: Sequence[str]) -> bool:
    """Judge nets, each in a process of its own."""
    from support.zoo import NAMES

    heads = ("net", "opset", "list", "regions", "nodes inside", "outside", "error", "s", "")
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    right = True
    for name in names or NAMES:
        command = [sys.executable, __file__, "nets", name, "--only"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.splitlines()
        ended = [{"opset": 0, "list": "", "fault": f"the process ended with {done.returncode}"}]
        for row in json.loads(lines[-1]) if not done.returncode and lines else ended:
            error = f"{row['found']:.0%} found" if "found" in row else f"{row.get('error', 0):.1e}"
            figures = [row.get(key, "") for key in ("regions", "inside", "outside")]
            seconds = f"{row.get('seconds', 0):.1f}"
            cells = [name, row["opset"], row["list"], *figures, error, seconds]
            right &= "fault" not in row
            print("|", " | ".join(map(str, [*cells, row.get("fault", "ok")])), "|", flush=True)
    return right


def random(names: Sequence[str]) -> bool:
    """Split and run random graphs."""
    from support.partitions import check_random

    first, count = (int(names[0]), int(names[1])) if len(names) > 1 else (0, RANDOM_GRAPHS)
    faults: list[str] = []
    regions: list[int] = []
    for seed in range(first, first + count):
        try:
            regions.append(check_random(seed))
        except Exception as error:  # whatever goes wrong is a line of the table
            faults.append(f"seed {seed}: {describe(error)}")
    print(f"{count - len(faults)} of {count} random graphs are right; ", end="")
    print(f"{sum(regions)} regions, at most {max(regions, default=0)} in one graph")
    print("\n".join(faults))
    return not faults


def size(_names: Sequence[str]) -> bool:
    """Partition large graphs."""
    from nodes import chain, residual

    from serde.target.partition import partition_model

    lists: dict[str, Any] = {"everything": None, "no Tanh, no Max": ["Add", "Mul", "Sub", "Conv"]}
    builders: tuple[Callable[[int], Any], ...] = (chain, residual)
    print("| graph | list |", " | ".join(f"{each:,}" for each in SIZES), "| ratio |")
    print("|---|---|" + "---|" * (len(SIZES) + 1))
    right = True
    for build in builders:
        for title, supported in lists.items():
            times = []
            for each in SIZES:
                model = build(each)
                start = time.perf_counter()
                partition_model(model, supported=supported)
                times.append(1e6 * (time.perf_counter() - start) / each)
            ratio = times[-1] / times[0]
            right &= ratio < 4
            cells = [build.__name__, title, *(f"{each:.0f}" for each in times), f"{ratio:.2f}"]
            print("|", " | ".join(cells), "|", flush=True)
    return right


def overhead(_names: Sequence[str]) -> bool:
    """Compare a ResNet-50 in one region with ONNX Runtime alone."""
    import onnxruntime
    from support.accuracy import zoo_net

    import serde
    from serde.compat import import_mxnet
    from serde.target import HybridExecutor, OnnxModule
    from serde.target.splitting import split

    mx = import_mxnet()
    net = zoo_net(mx, "resnet50_v1", 224)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "split"
        paths = [str(path) for path in net.save(mx, Path(directory) / "net")]
        found = split(paths, folder, input_shapes={"data": net.shape}).partition
        whole = serde.convert(paths, f"{directory}/whole.onnx", input_shapes={"data": net.shape})
        path = str(whole.facts["path"])
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        hybrid = HybridExecutor(OnnxModule.load(folder), providers=["CPUExecutionProvider"])
        image = net.inputs(7)["data"]
        alone: list[float] = []
        ours: list[float] = []
        for _ in range(100):  # in turns, so that what else the machine does meets both
            alone.append(seconds(lambda: session.run(None, {"data": image})))
            ours.append(seconds(lambda: hybrid.run(image)))
    one, other = statistics.median(alone[10:]), statistics.median(ours[10:])
    print(
        f"ResNet-50, {len(found.regions)} region: ONNX Runtime alone {1e3 * one:.2f} ms, ", end=""
    )
    print(f"hybrid executor {1e3 * other:.2f} ms: {other / one - 1:+.2%}")
    return other / one - 1 < MOST_OVERHEAD


def seconds(step: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


PARTS: dict[str, Callable[[Sequence[str]], bool]] = {
    "nets": nets,
    "random": random,
    "size": size,
    "overhead": overhead,
}


def main() -> int:
    """Measure and print."""
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=[*PARTS], help="all but nets if left out")
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("names", nargs="*", help="nets, or the first seed and their number")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(judge_net(options.names[0])))
        return 0
    chosen = [options.part] if options.part else [part for part in PARTS if part != "nets"]
    return 0 if all([PARTS[part](options.names) for part in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
