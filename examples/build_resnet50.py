"""From a ResNet-50 in MXNet to an ONNX file, and ONNX Runtime held against MXNet.

Run by ``make demo``: ``python examples/build_resnet50.py demo``. It builds the net of
MXNet's model zoo with calibrated random weights, saves it as MXNet does, converts the
two files on the command line, and compares the outputs once more by itself.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from calibrate import calibrate

from serde.compat import import_mxnet

mx = import_mxnet()

INPUT_SHAPE = (1, 3, 224, 224)
MAX_RELATIVE_ERROR = 1e-4


def build(prefix: Path) -> None:
    """Writes ``<prefix>-symbol.json`` and ``<prefix>-0000.params``."""
    net = mx.gluon.model_zoo.vision.resnet50_v1()
    _, args, aux = calibrate(net, {"data": INPUT_SHAPE}, seed=50)
    net.initialize()
    net.hybridize()
    image = mx.nd.zeros(INPUT_SHAPE)
    net(image)  # gives the parameters their shapes
    for name, parameter in net.collect_params().items():
        parameter.set_data(args[name] if name in args else aux[name])
    net(image)
    net.export(str(prefix))


def run_mxnet(prefix: Path, image: np.ndarray) -> np.ndarray:
    """What MXNet computes from the files."""
    net = mx.gluon.SymbolBlock.imports(
        f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params", ctx=mx.cpu()
    )
    return net(mx.nd.array(image)).asnumpy()


def run_onnx(path: Path, image: np.ndarray) -> np.ndarray:
    """What ONNX Runtime computes from the file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"data": image})
    return output


def compare(prefix: Path, onnx_path: Path) -> bool:
    """Prints how far the two engines are apart; true where they agree."""
    rng = np.random.default_rng(7)
    image, other = rng.standard_normal((2, *INPUT_SHAPE)).astype(np.float32)
    expected = run_mxnet(prefix, image)
    deviation = expected.std()
    error = np.abs(run_onnx(onnx_path, image) - expected).max() / deviation
    change = np.abs(run_mxnet(prefix, other) - expected).max() / deviation
    print(f"ONNX Runtime against MXNet: max difference {error:.1e} of the outputs' deviation")
    print(f"(another image changes them by {change:.0%} of it)")
    return bool(error <= MAX_RELATIVE_ERROR and change > 0.1)


def main(directory: Path) -> int:
    """Builds, converts and compares; the exit code is 0 where all went well."""
    directory.mkdir(parents=True, exist_ok=True)
    prefix, onnx_path = directory / "resnet50", directory / "resnet50.onnx"
    build(prefix)
    command = ["convert", f"{prefix}-symbol.json", str(onnx_path)]
    command += ["--input-shape", "data:" + ",".join(map(str, INPUT_SHAPE)), "--check"]
    print("$ serde " + " ".join(command), flush=True)
    done = subprocess.run([sys.executable, "-m", "serde", *command], check=False)
    if done.returncode:
        return done.returncode
    return 0 if compare(prefix, onnx_path) else 4


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo")))
