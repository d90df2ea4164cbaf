"""Measures how fast weights move between formats, beside ``cp`` of the source.

    python benchmarks/weights.py [format ...]

A net of fully connected layers, 67 MB each, goes from ONNX to a format and back. Times are medians
of rounds in which ``cp`` and the conversion take turns, each in a new process that has converted a
tiny net before, reading from the page cache; memory is the peak above what that process had then,
and must not grow with the weights. The aim is 1.1 times ``cp``. Formats whose package is not
installed are left out: the environment of ``make test-torch`` has all.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import serde  # noqa: E402
from benchmarks.coreml import measured  # noqa: E402

ROUNDS = 5
MB = 1e6
WIDTH = 4096
LAYERS = (2, 16)
SUFFIXES = {
    "coreml": ".mlpackage",
    "mxnet": "-symbol.json",
    "nnef": "_nnef",
    "relax": "_relax",
    "relay": ".relay",
    "tflite": ".tflite",
    "torch": "_torch",
}
OPTIONS = {"coreml": {"compute_precision": "float32"}}


def write(path: Path, count: int, width: int) -> None:
    """Write layers as an ONNX file, whose weights are one block of noise in a file beside it."""
    noise = np.random.default_rng(1).uniform(-0.01, 0.01, (width, width)).astype(np.float32)
    weights = []
    with path.with_suffix(".data").open("wb") as file:
        for index in range(count):
            tensor = TensorProto(name=f"w{index}", data_type=1, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            facts = {"location": path.with_suffix(".data").name, "offset": file.tell()}
            for key, value in (facts | {"length": noise.nbytes}).items():
                tensor.external_data.add(key=key, value=str(value))
            weights.append(tensor)
            file.write(noise.tobytes())
    nodes = [
        helper.make_node("Gemm", [f"x{i}", f"w{i}"], [f"x{i + 1}"], transB=1) for i in range(count)
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])]
        for name in ("x0", f"x{count}")
    ]
    graph = helper.make_graph(nodes, "net", *ends, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def convert(source: Path, target: Path) -> None:
    """Convert, told what suffixes do not tell."""
    target_format = next((f for f, s in SUFFIXES.items() if target.name.endswith(s)), "onnx")
    given = OPTIONS.get(target_format, {})
    serde.convert(source, target, target_format=target_format, overwrite=True, **given)


def files_of(path: Path) -> list[Path]:
    """A model's files: itself and what lies beside it by its name."""
    stem = path.name.removesuffix("-symbol.json").partition(".")[0]
    return sorted(path.parent.glob(f"{stem}*"))


def remove(paths: list[Path]) -> None:
    for each in paths:
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


def copy(source: Path, folder: Path) -> float:
    """Seconds that ``cp`` takes."""
    folder.mkdir()
    os.sync()
    start = time.perf_counter()
    command = ["cp", "-r", "--reflink=never", *map(str, files_of(source)), str(folder)]
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    shutil.rmtree(folder)
    return seconds


def run(tiny: Path, source: Path, target: Path) -> tuple[float, float]:
    """Seconds and bytes of a conversion, after that of a tiny net."""
    convert(tiny, target.with_name(f"tiny_{target.name}"))
    os.sync()
    return measured(lambda: convert(source, target))


def in_process(*paths: Path) -> tuple[float, float]:
    """Seconds and bytes, from a new process; what it wrote is removed."""
    command = [sys.executable, __file__, "--run", *map(str, paths)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    remove([*files_of(paths[-1]), *files_of(paths[-1].with_name(f"tiny_{paths[-1].name}"))])
    seconds, size = json.loads(done.stdout.splitlines()[-1])
    return seconds, size


def compare(form: str, directory: Path) -> None:
    """Print the conversions to and from a format."""
    suffix = SUFFIXES[form]
    for count in LAYERS:
        nets = {"tiny": (1, 4), "net": (count, WIDTH)}
        for name, (layers, width) in nets.items():
            write(directory / f"{name}_source.onnx", layers, width)
            convert(directory / f"{name}_source.onnx", directory / f"{name}_made{suffix}")
        ends = [("source.onnx", suffix), (f"made{suffix}", ".onnx")]
        for way, (given, made) in zip((f"ONNX to {form}", f"{form} to ONNX"), ends, strict=True):
            tiny, source = (directory / f"{name}_{given}" for name in nets)
            copies, rows = [], []
            for _ in range(ROUNDS):
                copies.append(copy(source, directory / "copy"))
                rows.append(in_process(tiny, source, directory / f"out{made}"))
            by_cp = statistics.median(copies)
            seconds, peak = (statistics.median(column) for column in zip(*rows, strict=True))
            print(
                f"| {count * WIDTH * WIDTH * 4 / MB:.0f} MB | {way} | {by_cp:.2f} s "
                f"| {seconds:.2f} s | {seconds / by_cp:.2f} | {peak / MB:.0f} MB |",
                flush=True,
            )
        remove([*directory.iterdir()])


def main() -> None:
    """Measure the formats named on the command line, or all."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if arguments[:1] == ["--run"]:
        print("\n" + json.dumps(run(*map(Path, arguments[1:]))))
        return
    print("| weights | way | cp | serde | ratio | peak |")
    print("|---|---|---|---|---|---|")
    for form in arguments or SUFFIXES:
        with tempfile.TemporaryDirectory() as directory:
            try:
                compare(form, Path(directory))
            except serde.MissingDependency as error:
                print(f"| | {form} | | | | {error} |")


if __name__ == "__main__":
    main()
