"""Measures conversions under load: large graphs, many at once, many in a row, large weights.

    python benchmarks/load.py nodes [--to 100000] [--deep 20000] [format ...]
    python benchmarks/load.py together [--workers 8]
    python benchmarks/load.py row [--count 10000]
    python benchmarks/load.py weights [--gigabytes 20]

``nodes`` writes chains of operators to each format and reads them back, whole conversions with all
passes: microseconds of processor time a node, and the kilobytes by which the peak of a process of
its own grows with each node. The aims are 100 microseconds and 3 kilobytes at 100,000 nodes, and
about the same at 1,000. ``together`` converts the same models in 8 threads and in 8 processes, and
compares bytes with those of one conversion alone. ``row`` converts one small model after another
in one process and prints memory and open files along the way. ``weights`` converts a model whose
weights lie in a file with holes, and prints the peak of the process.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import serde  # noqa: E402
import serde.relay as relay  # noqa: E402
from serde.core.weights import ArrayWeight  # noqa: E402
from serde.relay import transform  # noqa: E402
from serde.relay.ir.model import ModelMeta, RelayModel  # noqa: E402

SUFFIXES = {
    "relay": ".relay",
    "onnx": ".onnx",
    "mxnet": "-symbol.json",
    "coreml": ".mlpackage",
    "nnef": "_nnef",
    "torch": "_torch",
    "pt2": ".pt2",
    "relax": "_relax",
}
OPTIONS = {"pt2": {"format": "torch"}}
"""What is given beside a path whose format is called otherwise."""
UNREAD = ("torch",)
"""What is written and not read: a module's source is read by importing it."""
SIZES = (1_000, 10_000, 100_000)


def chain(calls: int) -> RelayModel:
    """A chain in which each value feeds the next two."""
    x = relay.var("x", shape=(2, 3))
    before, last = x, relay.tanh(x)
    joins = (relay.add, relay.multiply, relay.maximum, relay.subtract)
    for index in range((calls - 1) // 2):
        joined = joins[index % 4](last, before)
        before, last = last, relay.tanh(joined)
    mod = transform.InferType()(relay.IRModule.from_expr(last))
    return RelayModel(mod, {}, ModelMeta(("x",), ("y",)))


def peak() -> int:
    """Return the most bytes that this process has held."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_nodes(format: str, calls: int, folder: Path) -> None:
    """Write and read one chain, and print what it took; in a process of its own."""
    small = chain(10)
    warm = folder / f"warm{SUFFIXES[format]}"
    options = OPTIONS.get(format, {"format": format})
    serde.from_relay(small, path=warm, **options)
    if format not in UNREAD:
        serde.to_relay(str(warm))
    model = chain(calls)
    path = folder / f"net{SUFFIXES[format]}"
    gc.collect()
    before, start = peak(), time.process_time()
    serde.from_relay(model, path=path, **options)
    written = time.process_time()
    middle = peak()
    del model
    gc.collect()
    again = time.process_time()
    if format not in UNREAD:
        serde.to_relay(str(path))
    done = time.process_time()
    figures = [1e6 * (written - start) / calls, 1e6 * (done - again) / calls]
    figures += [(middle - before) / calls / 1024, (max(peak() - middle, 0)) / calls / 1024]
    print(" | ".join(f"{figure:.1f}" for figure in figures), flush=True)


def report_nodes(formats: list[str], sizes: list[int]) -> None:
    """Print a table of every format and size."""
    print("| format | nodes | write, us/node | read, us/node | write, KB/node | read, more |")
    print("|---|---|---|---|---|---|")
    for format in formats:
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "one", format, str(size), folder]
                found = subprocess.run(command, capture_output=True, text=True, check=False)
                told = found.stdout.strip() or (found.stderr.strip().splitlines() or [""])[-1]
                print(f"| {format} | {size:,} | {told} |", flush=True)


def small_net(path: Path, width: int) -> None:
    """Write an ONNX model of a few layers."""
    rng = np.random.default_rng(width)
    weights = [
        onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (width, 3, 3, 3)), ("v", (7, width)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1),
    ]
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 7])
    graph = helper.make_graph(nodes, "net", [data], [result], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def digest(path: Path) -> str:
    """Return a digest of a file, or of the files of a folder and their names."""
    found = hashlib.sha256()
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if each.is_file():
            found.update(str(each.relative_to(path.parent)).encode() + each.read_bytes())
    return found.hexdigest()


def convert_all(sources: list[str], folder: str) -> list[str]:
    """Convert every source to every format that needs no framework; return digests."""
    found = []
    for source in sources:
        for format in ("onnx", "mxnet", "coreml", "nnef", "relay"):
            target = Path(folder) / f"{Path(source).stem}{SUFFIXES[format]}"
            serde.convert(source, target)
            found.append(digest(target))
    return found


def report_together(workers: int) -> None:
    """Convert the same in threads and in processes, and compare with one conversion alone."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sources = []
        for width in range(4, 12):
            sources.append(str(root / f"net{width}.onnx"))
            small_net(Path(sources[-1]), width)
        folders = [root / f"{kind}{index}" for kind in "atp" for index in range(workers)]
        for folder in folders:
            folder.mkdir()
        start = time.perf_counter()
        alone = convert_all(sources, str(folders[0]))
        once = time.perf_counter() - start
        pools = (
            ("threads", folders[workers : 2 * workers], ThreadPoolExecutor(workers)),
            (
                "processes",
                folders[2 * workers :],
                ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")),
            ),
        )
        for kind, places, pool in pools:
            start = time.perf_counter()
            with pool:
                found = list(pool.map(convert_all, [sources] * workers, map(str, places)))
            took = time.perf_counter() - start
            same = sum(each == alone for each in found)
            print(
                f"{workers} {kind}: {same} of {workers} give the bytes of one alone; "
                f"{took / once:.1f} times the time of one"
            )


def row_steps(root: Path) -> list[tuple[Path, Path]]:
    """Return conversions into each format that is installed, and out of it.

    TVM reads in a process of its own, some seconds each, and PyTorch's module and script are read
    with more than a path: these are written alone.
    """
    net = root / "net.onnx"
    small_net(net, 4)
    found = []
    for suffix in (*SUFFIXES.values(), ".pt"):
        target = root / f"out{suffix}"
        try:
            serde.convert(net, target)
        except serde.errors.MissingDependency as error:
            print(f"left out: {target.name}: {error}")
            continue
        found.append((net, target))
        if suffix not in ("_relax", "_torch", ".pt"):
            found.append((target, root / "back.onnx"))
    return found


def report_row(count: int) -> None:
    """Convert small models many times, and print what the process holds along the way."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        steps = row_steps(root)
        print(f"{len(steps)} kinds: " + ", ".join(f"{a.name} to {b.name}" for a, b in steps))
        print("| conversions | resident, MB | descriptors | threads | temporary files |")
        print("|---|---|---|---|---|")
        others = set(os.listdir(tempfile.gettempdir()))
        for done in range(count + 1):
            if done in (100, 500, *range(1_000, count, 1_000), count):
                gc.collect()
                held = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
                files = len(os.listdir("/proc/self/fd"))
                left = len(set(os.listdir(tempfile.gettempdir())) - others)
                told = f"| {done:,} | {held:.1f} | {files} | {threading.active_count()} | {left} |"
                print(told, flush=True)
            source, target = steps[done % len(steps)]
            serde.convert(source, target, overwrite=True)


def report_weights(gigabytes: int) -> None:
    """Convert weights that lie in a file with holes, and print peaks."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        free = shutil.disk_usage(root).free / 1e9
        width = 16_384
        layers = max(int(min(gigabytes, free - 2)) * 1_000_000_000 // (4 * width * width), 1)
        nodes, weights = [], []
        with open(root / "net.bin", "wb") as file:
            file.truncate(layers * 4 * width * width)
        for index in range(layers):
            names = [f"x{index}", f"w{index}"], [f"x{index + 1}"]
            nodes.append(helper.make_node("Gemm", *names, transB=1))
            tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            length = 4 * width * width
            for key, value in (("location", "net.bin"), ("offset", index * length)):
                tensor.external_data.add(key=key, value=str(value))
            tensor.external_data.add(key="length", value=str(length))
            weights.append(tensor)
        data = helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, width])
        result = helper.make_tensor_value_info(f"x{layers}", TensorProto.FLOAT, [1, width])
        graph = helper.make_graph(nodes, "net", [data], [result], weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        (root / "net.onnx").write_bytes(made.SerializeToString())
        ArrayWeight(np.zeros(1, np.float32))
        before, start = peak(), time.perf_counter()
        serde.convert(root / "net.onnx", root / "out-symbol.json")
        took = time.perf_counter() - start
        total = layers * 4 * width * width / 1e9
        print(f"{total:.1f} GB: peak grew by {(peak() - before) / 1e6:.0f} MB, {took:.0f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["nodes", "one", "together", "row", "weights"])
    parser.add_argument("names", nargs="*", help="formats; all that are installed if left out")
    parser.add_argument("--to", type=int, default=SIZES[-1], help="nodes of the largest graph")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--gigabytes", type=int, default=20)
    options = parser.parse_args()
    if options.what == "one":
        format, size, folder = options.names
        measure_nodes(format, int(size), Path(folder))
    elif options.what == "nodes":
        sizes = [size for size in SIZES if size <= options.to]
        report_nodes(options.names or list(SUFFIXES), sizes)
    elif options.what == "together":
        report_together(options.workers)
    elif options.what == "row":
        report_row(options.count)
    else:
        report_weights(options.gigabytes)


if __name__ == "__main__":
    main()
