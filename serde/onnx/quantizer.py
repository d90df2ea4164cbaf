"""ONNX Runtime's quantisation in a process of its own, fed with one sample at a time.

The tool prints, sets up logging and leaves temporary files where it fails; there, none of it
matters. It asks for samples, and a process answers requests: so it runs in a thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, require
from serde.engine.base import Engine, first_line
from serde.engine.fitting import fit_inputs
from serde.engine.memory import peak_memory
from serde.errors import CheckError

__all__ = ["Quantizer", "answer_open"]

_EXTERNAL = 2**30
"""Bytes from which on the tool is told to keep weights in files of their own."""


def answer_open(request: Mapping[str, AnyValue], _arrays: Sequence[Array]) -> Quantizer:
    """Start quantisation in the process that was started for it."""
    return Quantizer(request)


class Quantizer(Engine):
    """Quantises one model: each run takes a sample, one without inputs ends it.

    The only output is the greatest memory of the process so far, in bytes.

    Args:
        request: ``source`` and ``target`` are files; ``count`` tells how many samples will come;
            ``inputs`` are the dtypes of the model's by name; the rest are options.
    """

    outputs = ("peak",)

    def __init__(self, request: Mapping[str, AnyValue]) -> None:
        self.name = f"onnxruntime.quantization {require('onnxruntime').__version__}"
        self.inputs = request["inputs"]
        self._request = request
        self._samples: queue.Queue[dict[str, Array] | None] = queue.Queue()
        self._asked = threading.Semaphore(0)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Take a sample; without inputs, finish.

        Raises:
            CheckError: The tool failed.
        """
        if inputs:
            fed = fit_inputs(self.name, self.inputs, inputs)
            while not self._asked.acquire(timeout=0.1):
                if not self._thread.is_alive():
                    break
            self._samples.put(fed)
        else:
            self._samples.put(None)
            self._thread.join()
        if self._error is not None:
            raise CheckError(f"{self.name}: {first_line(self._error)}") from self._error
        return [np.array(peak_memory(), np.int64)]

    def _next(self) -> dict[str, Array] | None:
        self._asked.release()
        return self._samples.get()

    def _work(self) -> None:
        try:
            if self._request["mode"] == "int4":
                self._quantize_blocks()
            elif self._request["mode"] == "static":
                self._quantize_static(self._prepare())
            else:
                self._quantize_dynamic(self._prepare())
        except Exception as error:
            self._error = error

    def _prepare(self) -> str:
        """Return a file in which the types of all values are known, as far as they can be."""
        tool = require("onnxruntime.quantization.shape_inference")
        source = self._request["source"]
        prepared = str(Path(self._request["target"]).with_name("prepared.onnx"))
        large = self._is_large(source)
        for skip in (False, True):
            try:
                tool.quant_pre_process(
                    source,
                    prepared,
                    skip_optimization=True,
                    skip_symbolic_shape=skip,
                    save_as_external_data=large,
                    all_tensors_to_one_file=True,
                    external_data_location="prepared.data" if large else None,
                )
            except Exception:
                if skip:
                    break
                continue
            return prepared
        return str(source)

    def _is_large(self, source: str) -> bool:
        folder = Path(source).parent
        return sum(each.stat().st_size for each in folder.iterdir()) > _EXTERNAL

    def _common(self, tool: AnyValue, source: str) -> dict[str, AnyValue]:
        return {
            "model_input": source,
            "model_output": self._request["target"],
            "per_channel": self._request["per_channel"],
            "reduce_range": self._request["reduce_range"],
            "weight_type": getattr(tool.QuantType, _TYPES[self._request["weight_type"]]),
            "nodes_to_exclude": self._kept(),
            "use_external_data_format": self._is_large(self._request["source"]),
        }

    def _kept(self) -> list[str]:
        """Return the nodes that stay, by the names too that a Gemm has as a product."""
        return [x for each in self._request["exclude"] for x in (each, f"{each}_MatMul")]

    def _quantize_blocks(self) -> None:
        tool = require("onnxruntime.quantization.matmul_nbits_quantizer")
        config = tool.DefaultWeightOnlyQuantConfig(
            block_size=self._request["block_size"],
            is_symmetric=not self._request["zero_points"],
            op_types_to_quantize=("MatMul", "Gather") if self._request["embeddings"] else None,
            accuracy_level=self._request["accuracy_level"],
        )
        source, kept = self._request["source"], self._kept()
        quantizer = tool.MatMulNBitsQuantizer(source, nodes_to_exclude=kept, algo_config=config)
        quantizer.model.replace_gemm_with_matmul()
        quantizer.process()
        quantizer.model.save_model_to_file(self._request["target"], self._is_large(source))

    def _quantize_dynamic(self, source: str) -> None:
        tool = require("onnxruntime.quantization")
        tool.quantize_dynamic(**self._common(tool, source))

    def _quantize_static(self, source: str) -> None:
        tool = require("onnxruntime.quantization")
        methods = {
            "minmax": tool.CalibrationMethod.MinMax,
            "entropy": tool.CalibrationMethod.Entropy,
            "percentile": tool.CalibrationMethod.Percentile,
        }
        tool.quantize_static(
            **self._common(tool, source),
            calibration_data_reader=_reader(tool, self._next, self._request["count"]),
            quant_format=tool.QuantFormat.QDQ,
            activation_type=getattr(tool.QuantType, _TYPES[self._request["activation_type"]]),
            calibrate_method=methods[self._request["method"]],
            # After each sample only ranges, or histograms, are kept of it.
            extra_options={
                "ActivationSymmetric": self._request["symmetric"],
                # What takes no zero points, takes no biases of int32 either.
                "QuantizeBias": not self._request["symmetric"],
                "CalibStridedMinMax": 1,
            },
        )


_TYPES = {"int8": "QInt8", "uint8": "QUInt8", "int16": "QInt16", "uint16": "QUInt16"}
"""What the tool calls integers."""


def _reader(tool: AnyValue, take: AnyValue, count: int) -> AnyValue:
    """Return what hands the tool one sample for each time that it asks for a range of them."""

    class Reader(tool.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = 0

        def __len__(self) -> int:
            return count

        def set_range(self, start_index: int, end_index: int) -> None:
            self._left = end_index - start_index

        def get_next(self) -> AnyValue:
            if not self._left:
                return None
            self._left -= 1
            return take()

    return Reader()
