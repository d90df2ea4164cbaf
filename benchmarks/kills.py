"""Kills runs that replace a model by another, and looks at what is left.

    python benchmarks/kills.py [--kills 1000] [--seed 0] [kind ...]

Each kill ends a process, forked from this one, with SIGKILL at a random moment: three of four
after the files are finished, where the renames are, and one anywhere in the run. What is left is
run: by ONNX Runtime and onnx, by the interpreter as serde reads it and, for MXNet's pairs, by
MXNet too. It must be the old model or the new one, or serde must say that the pair is mismatched.
Then the same run is made again, after which the new model and nothing else may be there. In every
other kill the two models differ in their weights alone.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import serde
import serde.io.atomic
import serde.io.directories
import serde.relay as relay
from serde.bridge.formats import get_bridge
from serde.core.report import Report
from serde.core.weights import ArrayWeight
from serde.errors import SerdeError

WIDTH, LAYERS = 64, 4
COMMIT_SECONDS = 3e-4
FUNCTIONS = {"relu": relay.nn.relu, "tanh": relay.tanh}
X = np.random.default_rng(0).normal(size=(1, WIDTH)).astype(np.float32)


def model(seed: int, function: str) -> serde.relay.RelayModel:
    """Return a net of dense layers; nets of one kind have weights of equal names and shapes."""
    rng = np.random.default_rng(seed)
    x = value = relay.var("x", shape=X.shape)
    params, variables = {}, [x]
    for number in range(LAYERS):
        weight = rng.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32)
        variable = relay.var(f"w{number}", shape=weight.shape)
        variables.append(variable)
        params[f"w{number}"] = ArrayWeight(weight)
        value = FUNCTIONS[function](relay.nn.dense(value, variable))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(variables, value)))
    return relay.RelayModel(mod, params, relay.ModelMeta(inputs=("x",), outputs=("y",)))


def by_interpreter(path: Path) -> np.ndarray:
    """Return what a model computes, as serde reads it."""
    found = serde.to_relay(path, input_shapes={"x": X.shape})
    arrays = [
        X if name not in found.params else found.params[name].array()
        for name in (param.name_hint for param in found.main.params)
    ]
    evaluate = relay.create_executor("debug", mod=found.mod).evaluate()
    return np.asarray(evaluate(*arrays))


def by_onnx_runtime(path: Path) -> np.ndarray:
    """Return what ONNX Runtime computes; the weights of onnx's own reader must agree with it."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    result = onnxruntime.InferenceSession(str(path), options).run(None, {"x": X})[0]
    model = onnx.load(path)
    again = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": X})[0]
    np.testing.assert_array_equal(result, again)
    return result


def by_mxnet(path: Path) -> np.ndarray:
    """Return what MXNet computes."""
    from serde.compat import import_mxnet

    mx = import_mxnet()
    prefix = str(path).removesuffix("-symbol.json")
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["x"], f"{prefix}-0000.params")
    return block(mx.nd.array(X)).asnumpy()


@dataclass(frozen=True)
class Kind:
    """How models of a kind are written and run.

    Attributes:
        format: Name of the format.
        file: Name of the file that is named.
        runners: What runs a model, by name.
        options: Options of writing.
    """

    format: str
    file: str
    runners: dict[str, Callable[[Path], np.ndarray]]
    options: dict[str, Any]


KINDS = {
    "onnx-data": Kind(
        "onnx", "m.onnx", {"onnxruntime": by_onnx_runtime, "serde": by_interpreter},
        {"save_as_external_data": True},
    ),
    "mxnet": Kind("mxnet", "m-symbol.json", {"mxnet": by_mxnet, "serde": by_interpreter}, {}),
    "relay": Kind("relay", "m.relay", {"serde": by_interpreter}, {}),
    "mlpackage": Kind(
        "coreml", "m.mlpackage", {"serde": by_interpreter}, {"compute_precision": "float32"}
    ),
    "onnx-file": Kind("onnx", "m.onnx", {"onnxruntime": by_onnx_runtime}, {}),
}  # fmt: skip


class Trial:
    """Old and new model of a kind, and the folder in which one replaces the other.

    Args:
        kind: The kind.
        function: Function of the old model's layers; those of the new one have relu.
        folder: An empty folder.
    """

    def __init__(self, kind: Kind, function: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.path = folder / kind.file
        self.bridge = get_bridge(kind.format)
        self.options = self.bridge.bind_export(kind.options)
        self.native = {}
        self.expected = {}
        for name, made in {"old": model(1, function), "new": model(2, "relu")}.items():
            self.native[name] = self.bridge.from_relay(made, self.options, report=Report())
            self.save(name)
            self.expected[name] = by_interpreter(self.path)
        names = [path.name for path in folder.iterdir()]
        self.shortest = len(names)
        self.flag = mmap.mmap(-1, 1)

    def save(self, name: str) -> None:
        self.bridge.save(self.native[name], self.path, self.options)

    def clear(self) -> None:
        """Leave the old model in the folder, and nothing else."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.save("old")

    def kill(self, rng: random.Random, seconds: float) -> None:
        """Start to replace the old model and kill that run."""
        self.flag[0] = 0
        late = rng.random() < 0.75
        delay = rng.uniform(0, COMMIT_SECONDS if late else seconds)
        child = os.fork()
        if child == 0:
            self.tell()
            self.save("new")
            os._exit(0)
        while late and not self.flag[0]:
            pass
        end = time.perf_counter() + delay
        while time.perf_counter() < end:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def tell(self) -> None:
        """Let this process set the flag when the files are finished."""
        for module, name in ((serde.io.atomic, "commit"), (serde.io.directories, "_put")):
            setattr(module, name, self.flagged(getattr(module, name)))

    def flagged(self, function: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            self.flag[0] = 1
            function(*args, **kwargs)

        return call

    def judge(self) -> dict[str, str]:
        """Return what each runner finds in the folder."""
        found = {}
        for name, run in self.kind.runners.items():
            try:
                result = run(self.path)
            except SerdeError as error:
                text = str(error)
                found[name] = "mismatched" if "mismatched pair" in text else f"refused: {text}"
            except Exception as error:
                found[name] = f"refused: {type(error).__name__} {error}"
            else:
                found[name] = self.which(result)
        return found

    def which(self, result: np.ndarray) -> str:
        for name, expected in self.expected.items():
            if np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max():
                return name
        return "WRONG"

    def again(self) -> str:
        """Make the run again and return what is left besides the new model."""
        try:
            self.save("new")
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        wrong = {name: each for name, each in self.judge().items() if each != "new"}
        left = len(list(self.folder.iterdir())) - self.shortest
        return f"{wrong or ''}{f'{left} files too many' if left else ''}"


def kills(
    kind: Kind, count: int, rng: random.Random, folder: Path
) -> tuple[Counter[str], list[str]]:
    """Return how often what was left was what, and what went wrong with the next run."""
    trials = []
    for number, function in enumerate(("tanh", "relu")):
        place = folder / str(number)
        place.mkdir()
        trials.append(Trial(kind, function, place))
    seconds = []
    for _ in range(10):
        trials[0].clear()
        start = time.perf_counter()
        trials[0].save("new")
        seconds.append(time.perf_counter() - start)
    found: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(count):
        trial = trials[number % 2]
        trial.clear()
        trial.kill(rng, 1.5 * statistics.median(seconds))
        for runner, what in trial.judge().items():
            found[f"{runner}: {what}"] += 1
        fault = trial.again()
        if fault:
            faults.append(fault)
    return found, faults


def main() -> None:
    """Print what is left for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("kind", nargs="*")
    args = parser.parse_args()
    for name in args.kind or KINDS:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found, faults = kills(KINDS[name], args.kills, random.Random(args.seed), Path(folder))
        print(f"{name}: {args.kills} kills, {time.perf_counter() - start:.0f} s")
        for what, times in sorted(found.items()):
            print(f"  {times:6}  {what}")
        print(f"  {len(faults):6}  faults of the run after it {Counter(faults).most_common(3)}")


if __name__ == "__main__":
    main()
