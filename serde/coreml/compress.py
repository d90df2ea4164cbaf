"""Smaller ML Programs, by coremltools' compression of weights."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import Report, require_installed
from serde.coreml.blobs import BlobLayout
from serde.coreml.compressor import compress_package
from serde.coreml.elements import BY_MIL
from serde.coreml.model import CoremlModel, blob_values, operations
from serde.coreml.options import NETWORK_TARGETS, CoremlExportOptions
from serde.coreml.reader import ROOT, load
from serde.coreml.versions import TARGETS
from serde.engine.base import Samples
from serde.engine.process import call_in_process, can_start, temporary_files_in
from serde.errors import OptionError, raise_if_refused

if TYPE_CHECKING:
    from serde.bridge.quantizing import QuantizeOptions

__all__ = ["check_compression", "compress"]

_TOOL: Final = "coremltools"
_FIRST, _FIRST_BLOCKS = "iOS16", "iOS18"
"""Targets from which on weights may be compressed, and to 4 bits, or in two ways at once."""

_WAYS: Final = ("int8", "int4", "palettize")
_OTHERS: Final = ("activation_type", "calibration_method", "symmetric", "reduce_range",
                  "int4_head", "int4_embeddings")  # fmt: skip
_LINEAR: Final = ("block_size", "zero_points")
_WEIGHTS_FILE: Final = f"{ROOT}weights/weight.bin"
_MARK: Final = "constexpr_"


def check_compression(wanted: QuantizeOptions, options: CoremlExportOptions) -> None:
    """Refuse what the tool, or the target system, cannot do.

    Raises:
        MissingDependency: The tool is not installed.
        OptionError: It is not done, or needs a later system.
    """
    if options.minimum_deployment_target in NETWORK_TARGETS:
        raise OptionError(
            f"{wanted.asked[0]}: needs an ML Program, minimum_deployment_target={_FIRST} or later, "
            f"found {options.minimum_deployment_target}"
        )
    if wanted.int8 == "dynamic":
        raise OptionError("int8='dynamic': Core ML quantises no activations at run time")
    if wanted.int8 == "static":
        raise OptionError(
            "int8='static': activations are measured by predictions of Core ML, which runs on "
            "macOS and which serde does not run; int8='weights' needs none"
        )
    wanted.refuse("what compresses weights", _OTHERS, "activations stay floats")
    ways = [name for name in _WAYS if name in wanted.asked]
    if len(ways) > 1:
        raise OptionError(f"{' and '.join(ways)}: one of them")
    if wanted.palettize is not None or wanted.asked == ("sparsity",):
        wanted.refuse("what palettizes or prunes", _LINEAR, "int8 and int4 have it")
    both = len(wanted.asked) > 1
    needed = _FIRST_BLOCKS if wanted.int4 or wanted.block_size or both else _FIRST
    if TARGETS[options.minimum_deployment_target].number < TARGETS[needed].number:
        raise OptionError(
            f"{' and '.join(wanted.asked)}: needs minimum_deployment_target={needed} or later, "
            f"found {options.minimum_deployment_target}"
        )
    require_installed("coremltools")
    if wanted.palettize is not None:
        require_installed("sklearn")


def compress(
    path: Path, wanted: QuantizeOptions, _samples: Samples | None, folder: Path, report: Report
) -> CoremlModel:
    """Return a program whose weights are compressed.

    Args:
        path: The program with plain weights.
        wanted: How.
        folder: Where the result's weights lie.
        report: Gets facts.

    Raises:
        CheckError: The tool failed or crashed.
        OptionError: An operation that is to stay does not exist.
        UnsupportedModelError: There is no weight that it compresses.
    """
    original = load(path)
    _check_excluded(original, wanted)
    target = folder / path.name
    request = {
        "source": str(path.absolute()),
        "target": str(target.absolute()),
        "steps": _steps(wanted),
        "keep": list(wanted.int8_exclude),
    }
    if can_start():
        told = call_in_process(
            _TOOL, compress_package, request, environment=temporary_files_in(folder)
        )
    else:
        told = compress_package(request, ())
    result = load(target)
    _require_change(original, result, report)
    # The tool writes shapes, images and facts anew; what was there says more.
    result.spec.description.CopyFrom(original.spec.description)
    _lay_out(result)
    report.facts["quantized"] = _describe(wanted)
    report.facts["quantized_by"] = told["name"]
    if told["peak"]:
        report.facts["quantizer_memory_bytes"] = told["peak"]
    return result


def _steps(wanted: QuantizeOptions) -> list[tuple[str, str, dict[str, AnyValue]]]:
    """Return what the tool is to do: its functions with their configurations."""
    found: list[tuple[str, str, dict[str, AnyValue]]] = []
    if wanted.sparsity is not None:
        share = {"target_sparsity": wanted.sparsity}
        found.append(("prune_weights", "OpMagnitudePrunerConfig", share))
    if wanted.palettize is not None:
        bits = {"mode": "kmeans", "nbits": wanted.palettize}
        found.append(("palettize_weights", "OpPalettizerConfig", bits))
    if wanted.int8 or wanted.int4:
        how: dict[str, AnyValue] = {
            "mode": "linear" if wanted.zero_points else "linear_symmetric",
            "dtype": "int4" if wanted.int4 else wanted.weight_type or "int8",
            "granularity": "per_channel" if wanted.per_channel else "per_tensor",
        }
        if wanted.block_size:
            how |= {"granularity": "per_block", "block_size": wanted.block_size}
        found.append(("linear_quantize_weights", "OpLinearQuantizerConfig", how))
    return found


def _check_excluded(model: CoremlModel, wanted: QuantizeOptions) -> None:
    names = {output.name for op in operations(model.spec) for output in op.outputs}
    for name in wanted.int8_exclude:
        if name not in names:
            raise OptionError(f"int8_exclude: the model has no operation {name}")


def _require_change(original: CoremlModel, result: CoremlModel, report: Report) -> None:
    """Refuse a model without weights that the tool compresses; tell what was compressed."""
    before, after = (
        Counter(op.type for op in operations(model.spec) if op.type != "const")
        for model in (original, result)
    )
    if not any(name.startswith(_MARK) for name in after - before):
        report.add("graph", "main", f"{_TOOL} compresses none of its weights: all are small")
        raise_if_refused(report)
    report.after = after


def _lay_out(model: CoremlModel) -> None:
    """Arrange the constants that a program was read with in a file of its own."""
    layout, places = BlobLayout(), dict[tuple[str, int], int]()
    for op, value in blob_values(model.spec):
        blob = value.blobFileValue
        key = blob.fileName, blob.offset
        if key not in places:
            element = BY_MIL[value.type.tensorType.dataType]
            places[key] = layout.add(model.blobs[key], element, op.outputs[0].name)
        blob.fileName, blob.offset = _WEIGHTS_FILE, places[key]
    model.layout = layout


def _describe(wanted: QuantizeOptions) -> str:
    parts = []
    if wanted.sparsity is not None:
        parts.append(f"{wanted.sparsity:.0%} of each weight zero")
    if wanted.palettize is not None:
        parts.append(f"weights as indices of {wanted.palettize} bits into tables")
    if wanted.int8 or wanted.int4:
        dtype = "int4" if wanted.int4 else wanted.weight_type or "int8"
        scales = "per channel" if wanted.per_channel else "per tensor"
        scales = f"in blocks of {wanted.block_size}" if wanted.block_size else scales
        parts.append(f"weights {dtype} {scales}")
    return ", ".join(parts) + "; activations stay floats"
