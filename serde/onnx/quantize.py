"""Smaller ONNX models, by ONNX Runtime's tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from onnx import TensorProto

from serde.core import Array, Report, require_installed
from serde.engine.base import Engine, Samples, run_engine
from serde.engine.process import ProcessEngine, can_start, temporary_files_in
from serde.errors import OptionError, raise_if_refused
from serde.onnx.codec import load
from serde.onnx.interface import input_dtype
from serde.onnx.lowering import FIRST_WITH_NIBBLES
from serde.onnx.model import PRODUCER, OnnxModel
from serde.onnx.options import OnnxExportOptions
from serde.onnx.quantizer import Quantizer, answer_open

if TYPE_CHECKING:
    from serde.bridge.quantizing import QuantizeOptions

__all__ = ["check_compression", "compress"]

_TOOL: Final = "onnxruntime.quantization"
_SINCE: Final = {"per_channel": 13, "int16": 21, "uint16": 21}
"""Versions of the operator set from which on linear operators have such scales and integers."""
_BLOCK: Final = 32
_OF_INT8: Final = ("calibration_method", "weight_type", "per_channel", "symmetric", "reduce_range")


def check_compression(wanted: QuantizeOptions, options: OnnxExportOptions) -> None:
    """Refuse what the tool cannot do.

    Raises:
        MissingDependency: The tool is not installed.
        OptionError: It has no such option, or the version of the operator set is too low.
    """
    if options.link_weights:
        told = "weights become others, so link_weights has nothing to refer to"
        raise OptionError(f"{wanted.asked[0]}: {told}")
    wanted.refuse(_TOOL, ("palettize", "sparsity"), "it has int8 and int4")
    require_installed("onnxruntime")
    if wanted.int4:
        _check_blocks(wanted, options)
        return
    wanted.refuse(f"int8 of {_TOOL}", ("block_size", "zero_points"), "int4 has it")
    if wanted.int8 == "weights":
        raise OptionError(f"int8='weights': {_TOOL} has 'static' and 'dynamic'")
    if wanted.int8 == "dynamic":
        names = ("activation_type", "calibration_method", "symmetric")
        wanted.refuse("dynamic quantisation", names, "ranges are found at run time")
    elif wanted.calibration is None:
        raise OptionError(
            "int8: activations are measured on calibration data, which is missing; "
            "int8='dynamic' takes ranges at run time and needs none"
        )
    if _activation_type(wanted) == "int8" and wanted.weight_type == "uint8":
        raise OptionError(f"weight_type='uint8': {_TOOL} has it with unsigned activations only")
    _require_opset(wanted, options)


def _check_blocks(wanted: QuantizeOptions, options: OnnxExportOptions) -> None:
    """Refuse what has no counterpart in blocks of 4 bits."""
    require_installed("onnx_ir")
    wanted.refuse("int4", _OF_INT8, "each block of a weight has a scale")
    if wanted.activation_type not in (None, "int8"):
        raise OptionError(f"activation_type: int4 has int8, found {wanted.activation_type}")
    size = _BLOCK if wanted.block_size is None else wanted.block_size
    if size < 16 or size & (size - 1):
        raise OptionError(f"block_size: expected a power of two from 16 on, found {size}")
    if wanted.int4_embeddings and options.opset in range(FIRST_WITH_NIBBLES):
        told = f"4 bits need opset {FIRST_WITH_NIBBLES}, found {options.opset}"
        raise OptionError(f"int4_embeddings: {told}")


def _require_opset(wanted: QuantizeOptions, options: OnnxExportOptions) -> None:
    """Refuse a version that has not what is asked for; the tool would change it in silence."""
    if options.opset == "auto":
        return
    asked = {"per_channel" if wanted.per_channel else "", _activation_type(wanted)}
    for name in sorted(asked & _SINCE.keys()):
        if options.opset < _SINCE[name]:
            what = "scales per channel need" if name == "per_channel" else f"{name} needs"
            hint = " (per_channel=False needs none)" if name == "per_channel" else ""
            raise OptionError(f"int8: {what} opset {_SINCE[name]}, found {options.opset}{hint}")


def _activation_type(wanted: QuantizeOptions) -> str:
    """Return the integers of activations; only of uint8 does ONNX Runtime fuse all on x86."""
    return wanted.activation_type or ("int8" if wanted.symmetric else "uint8")


def compress(
    path: Path, wanted: QuantizeOptions, samples: Samples | None, folder: Path, report: Report
) -> OnnxModel:
    """Return a model between linear operators, or with integer products where it is dynamic.

    Args:
        path: The model in floats.
        wanted: How.
        samples: Inputs on which activations are measured.
        folder: Where the result's weights lie.
        report: Gets facts.

    Raises:
        CheckError: The tool failed or crashed.
        OptionError: A node that is to stay does not exist.
        UnsupportedModelError: There is nothing that it quantises.
    """
    original = load(path)
    _check_excluded(original, wanted)
    if wanted.int8:
        _require_float32(original)
    target = folder / path.name
    with closing(_open(original, path, target, wanted, samples, folder)) as tool:
        peak = 0
        for inputs in _feed(samples if wanted.int8 in (True, "static") else None):
            (found,) = run_engine(tool, inputs)
            peak = int(found)
    result = load(target)
    _tidy(result, original)
    _require_change(original, result, report)
    report.facts["quantized"] = _describe(wanted, samples)
    report.facts["quantized_by"] = tool.name
    if peak:
        report.facts["quantizer_memory_bytes"] = peak
    return result


def _feed(samples: Samples | None) -> Iterator[dict[str, Array]]:
    """Yield the samples, and then what ends them."""
    for inputs in samples or ():
        yield dict(inputs)
    yield {}


def _check_excluded(model: OnnxModel, wanted: QuantizeOptions) -> None:
    names = {node.name for node in model.proto.graph.node}
    for name in wanted.int8_exclude:
        if name not in names:
            raise OptionError(f"int8_exclude: the model has no node {name}")


def _require_float32(model: OnnxModel) -> None:
    """Refuse float16, of which the tool makes models that do not load."""
    graph = model.proto.graph
    elements = [each.data_type for each in graph.initializer]
    elements += [each.type.tensor_type.elem_type for each in graph.input]
    if TensorProto.FLOAT16 in elements:
        raise OptionError(f"int8: {_TOOL} takes models in float32, found float16 in {graph.name}")


def _open(
    model: OnnxModel,
    path: Path,
    target: Path,
    wanted: QuantizeOptions,
    samples: Samples | None,
    folder: Path,
) -> Engine:
    graph = model.proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    products = [node.name for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    request: dict[str, AnyValue] = {
        "mode": "int4" if wanted.int4 else "dynamic" if wanted.int8 == "dynamic" else "static",
        "source": str(path.absolute()),
        "target": str(target.absolute()),
        "count": 0 if samples is None else len(samples),
        "inputs": {
            each.name: input_dtype(each.type) for each in graph.input if each.name not in weights
        },
        "method": wanted.calibration_method,
        "activation_type": _activation_type(wanted),
        "weight_type": wanted.weight_type or "int8",
        "per_channel": wanted.per_channel,
        "symmetric": wanted.symmetric,
        "reduce_range": wanted.reduce_range,
        "exclude": [*wanted.int8_exclude, *([] if wanted.int4_head else products[-1:])],
        "block_size": wanted.block_size or _BLOCK,
        "zero_points": wanted.zero_points,
        "embeddings": wanted.int4_embeddings,
        "accuracy_level": 4 if wanted.activation_type else None,
    }
    if not can_start():
        return Quantizer(request)
    return ProcessEngine(_TOOL, answer_open, request, environment=temporary_files_in(folder))


def _tidy(result: OnnxModel, original: OnnxModel) -> None:
    """Take out what the tool noted for itself."""
    proto = result.proto
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(original.proto.graph.value_info)
    del proto.metadata_props[:]
    proto.metadata_props.extend(original.proto.metadata_props)
    proto.producer_name, proto.producer_version = PRODUCER, original.proto.producer_version


def _counts(model: OnnxModel) -> Counter[str]:
    return Counter(node.op_type for node in model.proto.graph.node)


def _require_change(original: OnnxModel, result: OnnxModel, report: Report) -> None:
    """Refuse a model in which there was nothing to quantise; tell what was."""
    after = _counts(result)
    more = " ".join(after - _counts(original))
    if not any(word in more for word in ("Quant", "Integer", "NBits", "QAttention", "QEmbed")):
        report.add("graph", "main", f"nothing in it is quantised by {_TOOL}")
        raise_if_refused(report)
    report.after = after


def _describe(wanted: QuantizeOptions, samples: Samples | None) -> str:
    if wanted.int4:
        points = " with zero points" if wanted.zero_points else ""
        rest = "activations int8 at run time" if wanted.activation_type else "activations floats"
        return f"weights int4 in blocks of {wanted.block_size or _BLOCK}{points}, {rest}"
    scales = "per channel" if wanted.per_channel else "per tensor"
    weights = f"weights {wanted.weight_type or 'int8'} {scales}"
    if wanted.int8 == "dynamic":
        return f"{weights}, activations at run time"
    count = 0 if samples is None else len(samples)
    measured = f"{wanted.calibration_method} of {count} sample{'' if count == 1 else 's'}"
    return f"{weights}, activations {_activation_type(wanted)} by {measured}"
