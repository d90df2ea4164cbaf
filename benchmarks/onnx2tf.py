"""Prints, as a Markdown table, nets of ONNX as TFLite by serde and by onnx2tf.

    python benchmarks/onnx2tf.py PYTHON [net ...]

PYTHON has onnx2tf and what it needs. Nets are those of gluoncv and, as ``zoo:NAME``, of MXNet's
own zoo with calibrated random weights, converted to ONNX. For both converters: nodes, transposes
among them, seconds, and the largest difference of LiteRT's result from ONNX Runtime's, in
deviations of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]

from support.coreml_zoo import net_of  # noqa: E402
from support.runtime import run_onnx  # noqa: E402
from support.tflite_models import run_litert  # noqa: E402

import serde  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402
from serde.tflite.codec import load  # noqa: E402

NETS = (
    "zoo:mobilenet0.25", "zoo:mobilenetv2_0.25", "zoo:resnet18_v1", "zoo:squeezenet1.1",
    "zoo:densenet121", "zoo:inceptionv3", "shufflenet_v1", "shufflenet_v2", "mobilenetv3_small",
    "googlenet",
)  # fmt: skip

_IMAGES = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""What onnx2tf downloads where it is not there."""


def cells(path: Path, x: np.ndarray, expected: np.ndarray, seconds: float) -> list[str]:
    """What is told of a file."""
    model = load(path)
    kinds = Counter(each.name for graph in model.subgraphs for each in graph.operators)
    last = model.subgraphs[0].tensors[model.subgraphs[0].inputs[0]].shape[-1] == x.shape[1]
    given = x.transpose(0, 2, 3, 1).copy() if last else x
    (found,) = run_litert(path.read_bytes(), [given], optimised=True)
    error = float(np.abs(found.reshape(expected.shape) - expected).max() / expected.std())
    return [str(kinds.total()), str(kinds["TRANSPOSE"]), f"{seconds:.1f}", f"{error:.1e}"]


def main() -> int:
    """Measures and prints net by net."""
    python, *names = sys.argv[1:]
    head = " | ".join(f"{who} {what}" for who in ("serde", "onnx2tf")
                      for what in ("nodes", "transposes", "s", "error"))  # fmt: skip
    print(f"| net | {head} |\n|{' --- |' * 9}", flush=True)
    for name in names or NETS:
        net = net_of(import_mxnet(), name)
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            files = net.save(import_mxnet(), folder / "net")
            inputs = net.inputs(7)
            shapes = {each: values.shape for each, values in inputs.items()}
            serde.convert(files, folder / "net.onnx", input_shapes=shapes)
            (x,) = inputs.values()
            expected = run_onnx(folder / "net.onnx", inputs)[1][0]
            begun = time.perf_counter()
            serde.convert(folder / "net.onnx", folder / "net.tflite", images=["data"])
            row = cells(folder / "net.tflite", x, expected, time.perf_counter() - begun)
            np.save(
                folder / _IMAGES, np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
            )
            begun = time.perf_counter()
            command = [python, "-m", "onnx2tf", "-i", "net.onnx", "-o", "out", "-n"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            seconds = time.perf_counter() - begun
            found = sorted((folder / "out").glob("*float32.tflite"))
            if found:
                row += cells(found[0], x, expected, seconds)
            else:
                row += [(done.stderr.strip().splitlines() or ["no file"])[-1][:80], "", "", ""]
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
