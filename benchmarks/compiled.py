"""Prints, as a Markdown table, how fast nets run that serde.compile made, beside ONNX Runtime.

    python benchmarks/compiled.py [--target TARGET] [name ...]

Each net gets calibrated random weights, is written to MXNet's files, compiled from them by TVM and
converted to ONNX. Both run the same inputs in turn, with as many threads each as there are
cores, and the medians are compared: a ratio of 2 means that the compiled net takes twice the time.
Results are compared too, in deviations of each output. Each net has a process of its own.
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
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

NAMES = (
    "zoo:resnet18_v1", "zoo:resnet50_v1", "zoo:mobilenet1.0", "zoo:squeezenet1.1",
    "mobilefacenet_full", "retinaface", "bert_base", "standard_lstm_lm_200", "lenet", "perceptron",
)  # fmt: skip
"""Classifiers, a recogniser and a detector of faces, language models, and two small nets."""

COLUMNS = ("net", "compile s", "ONNX Runtime ms", "compiled ms", "ratio", "error")

LONGEST = 12.0
"""Seconds that a net may run."""

MOST_RUNS = 200
"""Of each, in turn."""


def build(mx: Any, name: str) -> Any:
    """Return a net with calibrated parameters."""
    from support import gluonnlp_nets, nets
    from support.accuracy import Net, calibrate, zoo_net
    from support.coreml_zoo import net_of

    own = {
        "lenet": (lenet, (1, 1, 28, 28)),
        "perceptron": (perceptron, (1, 784)),
        "retinaface": (partial(nets.retinaface, width=32), (1, 3, 320, 320)),
    }
    if name in own:
        define, shape = own[name]
        return Net(*calibrate(define(mx), {"data": shape}, seed=1), shape)
    if name.startswith("zoo:"):
        return zoo_net(mx, name[4:], 224)
    gluonnlp_nets.LENGTH = 64
    return net_of(mx, name)


def lenet(mx: Any) -> Any:
    """The small net of convolutions that everybody begins with."""
    x = mx.sym.Variable("data")
    for filters in (20, 50):
        x = mx.sym.Convolution(x, kernel=(5, 5), num_filter=filters)
        x = mx.sym.Pooling(mx.sym.Activation(x, act_type="tanh"), kernel=(2, 2), stride=(2, 2))
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=500), act_type="tanh")
    return mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=10))


def perceptron(mx: Any) -> Any:
    """Three layers that are wholly connected."""
    x = mx.sym.Variable("data")
    for width in (1024, 1024):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=width), act_type="relu")
    return mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=10))


def measure(name: str, target: str | None) -> list[str]:
    """Return the row of a net."""
    import onnxruntime
    from support.accuracy import distance

    import serde
    from serde.compat import import_mxnet

    mx = import_mxnet()
    net = build(mx, name)
    inputs = net.inputs(7)
    shapes = {each: values.shape for each, values in inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        paths = net.save(mx, Path(folder) / "net")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count() or 1
        onnx_file = Path(folder) / "net.onnx"
        serde.convert([*paths], onnx_file, input_shapes=shapes)
        session = onnxruntime.InferenceSession(onnx_file, options, ["CPUExecutionProvider"])
        start = time.perf_counter()
        given = {} if target is None else {"target": target}
        compiled = serde.compile([*paths], input_shapes=shapes, **given)
        took = time.perf_counter() - start
    types = {each.name: each.dtype for each in compiled.interface.inputs}
    fed = {each: values.astype(types[each]) for each, values in inputs.items()}
    peer = {each.name: fed[each.name] for each in session.get_inputs()}
    error = max(distance(compiled.run(fed), session.run(None, peer)))
    theirs, ours = in_turn(lambda: session.run(None, peer), lambda: compiled.run(fed))
    figures = f"{took:.1f}", f"{1e3 * theirs:.3g}", f"{1e3 * ours:.3g}", f"{ours / theirs:.2f}"
    return [name, *figures, f"{error:.1e}"]


def in_turn(*runs: Callable[[], object]) -> list[float]:
    """Return the median of the seconds that each takes."""
    seconds: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + LONGEST
    while len(seconds[0]) < 3 or (time.perf_counter() < end and len(seconds[0]) < MOST_RUNS):
        for run, found in zip(runs, seconds, strict=True):
            run()  # Caches and threads of the other are out of the way then.
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [statistics.median(each) for each in seconds]


def main() -> int:
    """Measures and prints net by net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="store_true", help="print one net's row as JSON")
    parser.add_argument("--target", help="what TVM compiles for")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if not all(map(find_spec, ("tvm", "mxnet", "onnxruntime", "gluonnlp"))):
        print("TVM, MXNet, gluonnlp and ONNX Runtime are not all installed: nothing to compare")
        return 0
    if options.only:
        print("\n" + json.dumps(measure(options.names[0], options.target)))
        return 0
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    target = [] if options.target is None else ["--target", options.target]
    failed = 0
    for name in options.names or NAMES:
        command = [sys.executable, __file__, "--only", *target, name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        failed += bool(done.returncode)
        row = [name, "failed"] if done.returncode else json.loads(done.stdout.splitlines()[-1])
        print("|", " | ".join(row), "|", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
