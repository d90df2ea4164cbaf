"""MXNet as the judge, in this process and in one with MXNET_MKLDNN_ENABLED=0.

MXNet reads that variable once, when it is loaded. Its two settings disagree on some
operators (SoftmaxOutput on four axes, average pooling with full windows), and how far
they are apart on the others tells how exact a result can be asked to be. Run as a script,
this module is the second process: one request a line, answered by one line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from serde.compat import import_mxnet

ANSWER = "oracle: "
"""Starts every line that is an answer, whatever else is printed."""


SETTINGS = {"MXNET_MKLDNN_ENABLED": "0", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"}


def run_mxnet(
    symbol: Any, params: Mapping[str, Any], inputs: Mapping[str, np.ndarray], *, fuse: bool = True
) -> list[np.ndarray]:
    """The outputs of a symbol at inference.

    Args:
        symbol: An MXNet ``Symbol``; labels among its arguments are left zero.
        params: Arguments and auxiliary states by bare name.
        inputs: Values of the inputs.
        fuse: Whether MXNet may fuse nodes, as it does by default.
    """
    mx = import_mxnet()
    backend = nullcontext() if fuse else mx.test_utils.environment("MXNET_SUBGRAPH_BACKEND", "NONE")
    with backend:
        executor = symbol.simple_bind(
            mx.cpu(),
            grad_req="null",
            type_dict={name: values.dtype for name, values in inputs.items()},
            **{name: values.shape for name, values in inputs.items()},
        )
    for arrays in (executor.arg_dict, executor.aux_dict):
        for name, array in arrays.items():
            if name in params:
                array[:] = params[name]
    fed = {name: mx.nd.array(values, dtype=values.dtype) for name, values in inputs.items()}
    return [output.asnumpy() for output in executor.forward(is_train=False, **fed)]


class PlainMxnet:
    """MXNet without MKL-DNN, in a process of its own."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, **SETTINGS, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, prefix: Path, inputs: Mapping[str, np.ndarray], directory: Path
    ) -> list[np.ndarray]:
        """The outputs of the model saved as `prefix`.

        Args:
            prefix: What comes before ``-symbol.json`` and ``-0000.params``.
            inputs: Values of the inputs.
            directory: Where values may pass through files.

        Raises:
            RuntimeError: MXNet cannot run the model.
        """
        given, results = directory / "oracle-inputs.npz", directory / "oracle-outputs.npz"
        np.savez(given, **dict(inputs))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(prefix), str(given), str(results)]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                break
        else:
            raise RuntimeError("MXNet without MKL-DNN is gone")
        problem = json.loads(line[len(ANSWER) :])
        if problem:
            raise RuntimeError(problem)
        with np.load(results) as values:
            return [values[f"output{i}"] for i in range(len(values.files))]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _serve() -> None:
    # MXNet takes a base class from it where it is there, and loads for twice as long.
    sys.modules["sklearn"] = None  # type: ignore[assignment]
    mx = import_mxnet()
    for line in sys.stdin:
        prefix, given, results = json.loads(line)
        problem = ""
        try:
            with np.load(given) as values:
                inputs = {name: values[name] for name in values.files}
            symbol = mx.sym.load(f"{prefix}-symbol.json")
            saved = mx.nd.load(f"{prefix}-0000.params")
            params = {key.partition(":")[2]: value for key, value in dict(saved).items()}
            outputs = run_mxnet(symbol, params, inputs)
            np.savez(results, **{f"output{i}": values for i, values in enumerate(outputs)})
        except Exception as error:  # whatever it is, the other process reports it
            problem = f"{type(error).__name__}: {error}"
        print(ANSWER + json.dumps(problem), flush=True)


if __name__ == "__main__":
    _serve()
