"""What it costs to start: CPU time of whole processes, beside that of importing their packages.

``serde convert`` of a net of one layer and of ResNet-50 (beside an import of the packages and a
copy of the file), ``--version`` and ``--help``, each as the median of several processes that take
turns with the import they are compared with. ``--no-bytecode`` runs them as on an installation
that is not writable and was never compiled; ``--cold`` drops the kernel's cache of files before
each process, where that is allowed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[1]
IMPORT = "import numpy, onnx, click, rich"
LIMITS = {"one layer": 1.5, "ResNet-50": 2.2}


def cpu_seconds(*args: str, bytecode: Path | None) -> float:
    """User and system time of one Python process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["PYTHONPYCACHEPREFIX"] = str(bytecode or "/nonexistent")
    if bytecode is None:
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def one_layer(path: Path) -> Path:
    """A net of one dense layer."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n])
        for name, n in (("x", 4), ("y", 3))
    )
    weights = [
        numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (("w", (4, 3)), ("b", 3))
    ]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], "net", [x], [y], weights
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def resnet50(folder: Path) -> list[str]:
    """ResNet-50 as MXNet's pair of files."""
    build = str(ROOT / "examples" / "build_resnet50.py")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, build, str(folder)], env=env, check=True, capture_output=True)
    symbol = next(folder.glob("*-symbol.json"))
    return [str(symbol), str(next(folder.glob("*.params")))]


def drop_cache() -> None:
    """Make the kernel forget which files it has read."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--no-bytecode", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--skip-resnet", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bytecode = None if options.no_bytecode else folder / "bytecode"
        net = one_layer(folder / "net.onnx")
        convert = ["-m", "serde", "convert"]
        pair = [str(folder / "net-symbol.json"), str(folder / "net-0000.params")]
        commands = {
            "one layer, ONNX to MXNet": [*convert, str(net), pair[0], "--overwrite"],
            "one layer, MXNet to ONNX": [
                *convert, *pair, str(folder / "back.onnx"), "--input-shape", "1,4",
            ],
            "one layer, ONNX to Core ML": [*convert, str(net), str(folder / "net.mlpackage")],
            "serde --version": ["-m", "serde", "--version"],
            "serde --help": ["-m", "serde", "--help"],
        }  # fmt: skip
        compared = {key: ["-c", IMPORT] for key in commands}
        if not options.skip_resnet:
            (folder / "resnet").mkdir()
            files = resnet50(folder / "resnet")
            copy = f"{IMPORT}, shutil; [shutil.copy(f, {name!r}) for f in {files!r}]"
            key = "ResNet-50, MXNet to ONNX"
            shape = "1,3,224,224"
            target = str(folder / "resnet.onnx")
            commands[key] = [*convert, *files, target, "--input-shape", shape]
            compared[key] = ["-c", copy]
        worst = 0
        for key, command in commands.items():
            cpu_seconds(*command, bytecode=bytecode)  # Compiles what has no byte code yet.
            cpu_seconds(*compared[key], bytecode=bytecode)
            own, other = [], []
            for _ in range(options.runs):
                for args, seconds in ((compared[key], other), (command, own)):
                    if options.cold:
                        drop_cache()
                    seconds.append(cpu_seconds(*args, bytecode=bytecode))
            ratio = statistics.median(own) / statistics.median(other)
            limit = next((each for start, each in LIMITS.items() if key.startswith(start)), None)
            held = "" if limit is None else f"  (at most {limit})"
            worst |= limit is not None and ratio > limit
            print(f"{key:<28}{statistics.median(own):7.3f} s{ratio:7.2f} times{held}", flush=True)
        return int(worst and not options.no_bytecode and not options.cold)


if __name__ == "__main__":
    sys.exit(main())
