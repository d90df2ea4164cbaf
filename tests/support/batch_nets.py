"""Small nets for batches, and what makes the process of one model end badly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HOSTILE = {
    "hangs": "import time\ntime.sleep(600)\n",
    "aborts": "import os\nos.abort()\n",
    "exits": "import os\nos._exit(7)\n",
    "kills": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "faults": "import ctypes\nctypes.string_at(0)\n",
    "devours": "kept = []\nwhile True:\n    kept.append(bytearray(2**24))\n",
    "spawns": (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)  # {mark}'])\n"
        "time.sleep(600)\n"
    ),
}
"""Files of converters that do harm when they are read, by what they do."""


def write_net(path: Path, seed: int = 0, *, op: str = "Relu") -> Path:
    """Write an ONNX model of one dense layer, whose weights the seed decides."""
    rng = np.random.default_rng(seed)
    weight = numpy_helper.from_array(rng.standard_normal((3, 4), np.float32), "w")
    bias = numpy_helper.from_array(rng.standard_normal(3, np.float32), "b")
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
            helper.make_node(op, ["h"], ["y"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))],
        [weight, bias],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def write_nets(folder: Path, count: int) -> list[Path]:
    """Write so many nets, each with weights of its own."""
    return [write_net(folder / f"net{number}.onnx", number) for number in range(count)]


def weights_of(path: Path) -> dict[str, np.ndarray]:
    """Return the weights of an ONNX file by name, as the package of ONNX reads them."""
    tensors = onnx.load(path).graph.initializer
    return {each.name: numpy_helper.to_array(each) for each in tensors}


def hostile_converters(folder: Path, kind: str, mark: str = "") -> Path:
    """Write a file of converters that does harm when it is read."""
    path = folder / f"{kind}.py"
    path.write_text(HOSTILE[kind].replace("{mark}", mark), encoding="utf-8")
    return path


def threads_of_runtime(path: str) -> int:
    """Return how many threads ONNX Runtime may start for a net, in the process that calls this."""
    import onnxruntime

    from serde.onnx.engine import RuntimeEngine

    engine = RuntimeEngine(onnxruntime, path)
    threads: int = engine._session.get_session_options().intra_op_num_threads
    return threads
