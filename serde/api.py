"""The public functions: models between formats, and to and from Relay."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any as AnyValue

from serde._optional import require
from serde.bridge import Bridge, bind_options, get_bridge, source_bridge, target_bridge
from serde.checking.data import as_check_data
from serde.checking.engines import engine_for_path, engine_for_source
from serde.checking.verdict import Tolerance, compare, raise_if_differs
from serde.errors import FormatError, OptionError
from serde.mapping import tensor_mapping as mapped_names
from serde.prepare import CutOptions, PrepareOptions, cut_out, prepare
from serde.relay.expr import Call
from serde.relay.model import RelayModel
from serde.relay.registry import OpDef
from serde.relay.types import TensorType
from serde.relay.visit import post_order
from serde.report import Report

__all__ = [
    "check",
    "convert",
    "export_model",
    "from_relay",
    "import_model",
    "import_to_gluon",
    "to_relay",
]

PathLike = str | os.PathLike[str]


def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format, such as ``input_shapes``; ``inputs`` and
            ``outputs``, if only the part between them is wanted.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    bridge = source_bridge(source, format)
    part, rest = bind_options(CutOptions, _canonical(options))
    bound = bridge.bind_import(rest)
    return cut_out(_read(bridge, source, params, bound, report)[1], part)


def from_relay(
    model: RelayModel,
    *,
    format: str | None = None,
    path: PathLike | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a Relay model in a format, or write it.

    Args:
        model: The model.
        format: Name of the format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        report: Filled with stages and gaps.
        options: Options of the target's format and of the passes before it.

    Returns:
        The native object, complete; with `path` the path written.

    Raises:
        OptionError: An option is unknown or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    bridge = _target(format, path)
    passes, rest = _bind_passes(options)
    bound = bridge.bind_export(rest)
    native = _write(bridge, cut_out(model, passes), passes, bound, report)
    if path is None:
        return bridge.complete(native)
    with report.stage("save"):
        return bridge.save(native, Path(path), bound)


def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    path: PathLike | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a framework's model in another format, or write it.

    Args:
        model: A symbol, Gluon block or module, or anything :func:`to_relay` takes.
        params: Weights of `model`, where it does not hold them.
        format: Name of the target format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        report: Filled with stages and gaps.
        options: Options of the source, of the passes and of the target, such as
            ``input_shapes={'data': ('N', 3, 224, 224)}`` and ``opset=17``.

    Returns:
        The native object (for ONNX an ``onnx.ModelProto``); with `path` the path written.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown, missing or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    reader, writer = source_bridge(model), _target(format, path)
    own, passes, target = _bind_all(reader, writer, options)
    loaded, relay_model = _read(reader, model, params, own, report)
    native = _write(writer, cut_out(relay_model, passes), passes, target, report)
    if path is None:
        return writer.complete(native)
    sources = [*_paths(model), *_paths(params), *reader.files(loaded)]
    with report.stage("save"):
        return writer.save(native, Path(path), target, sources=sources)


def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a model of any format as an MXNet symbol and its parameters.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before MXNet's.

    Returns:
        The ``mx.Symbol``, and its parameters: NDArrays by bare name, with ``arg`` and ``aux``.
        A model with scalars or empty tensors runs under ``mxnet.util.np_shape()``.

    Raises:
        FormatError: The bytes are malformed.
        MissingDependency: MXNet is not installed; :func:`convert` writes its files without it.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    require("mxnet")
    report = Report() if report is None else report
    reader, writer = source_bridge(source, format), get_bridge("mxnet")
    own, passes, target = _bind_all(reader, writer, options)
    _, relay_model = _read(reader, source, params, own, report)
    part = cut_out(relay_model, passes)
    return writer.complete(_write(writer, part, passes, target, report))


def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    ctx: AnyValue = None,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        ctx: MXNet's device for the parameters; the CPU if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before MXNet's.

    Raises:
        FormatError: The bytes are malformed.
        MissingDependency: MXNet is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    from serde.mxnet.live import to_block

    symbol, values = import_model(source, params, format=format, report=report, **options)
    return to_block(symbol, values, ctx)


def convert(
    source: AnyValue,
    target: PathLike,
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: PathLike | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Convert a model and write it.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        target: Where to write.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        check: Run source and target on this many seeded inputs before the target appears.
        tolerance: What the check accepts; by dtype if left out.
        dims: Lengths of dynamic dimensions during the check; if left out, those that are
            declared, or the first usual ones at which the source runs.
        check_data: Inputs to check with instead of seeded ones, which also asks for the check: a
            path (``.npy``, ``.npz``, an image, or a directory with one of these, or one of ONNX's
            ``test_data_set_0``, for each sample), an array, a mapping of arrays by input, or a
            list of arrays or mappings.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        tensor_mapping: A JSON file to write that tells what inputs, outputs, weights and nodes
            of the source are called in the target; see :func:`serde.mapping.tensor_mapping`.
        report: Filled with all of it; a new one if left out.
        options: Options of the source, of the passes and of the target.

    Returns:
        The report.

    Raises:
        CheckError: The check failed or could not be made; nothing is written.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown, missing or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.
    """
    report = Report() if report is None else report
    reader, writer = source_bridge(source, source_format), target_bridge(target, target_format)
    own, passes, bound = _bind_all(reader, writer, options)
    data = None if check_data is None else as_check_data(check_data)
    loaded, model = _read(reader, source, params, own, report)
    part = cut_out(model, passes)
    native = _write(writer, part, passes, bound, report)
    mapping = None if tensor_mapping is None else mapped_names(part, writer.names(native))
    recorded = _recorded_outputs(writer, native) if check else None
    saving = ExitStack()

    def verify(path: Path) -> None:
        saving.close()
        with report.stage("check"), ExitStack() as running:
            wanted = writer.expected(part, native, bound)
            format_name = reader.name if wanted.mod is model.mod else "relay"
            compare(
                running.enter_context(closing(engine_for_source(format_name, loaded, wanted))),
                running.enter_context(closing(engine_for_path(writer.name, path))),
                wanted,
                runs=int(check),
                tolerance=tolerance,
                dims=dims,
                data=data,
                float16=passes.float16 or bound.computes_float16,
                yardstick=yardstick,
                recorded=recorded,
                report=report,
            )
        raise_if_differs(report, target, "the source")

    path = Path(target)
    with saving:
        saving.enter_context(report.stage("save"))
        writer.save(
            native,
            path,
            bound,
            sources=[*_paths(source), *_paths(params), *reader.files(loaded)],
            before_commit=verify if check or data is not None else None,
        )
    report.facts |= {"path": str(path), "bytes": _size(path)}
    if tensor_mapping is not None:
        text = json.dumps(mapping, indent=2, ensure_ascii=False) + "\n"
        Path(tensor_mapping).write_text(text, encoding="utf-8")
    return report


def _recorded_outputs(writer: Bridge, native: AnyValue) -> tuple[str, ...] | None:
    """Return what a native model calls the outputs; None where its format does not say."""
    try:
        return writer.names(native).outputs
    except OptionError:
        return None


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files of a package."""
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


def check(
    source: AnyValue,
    target: PathLike,
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Args:
        source: The model to be matched.
        target: File of the model that must match it.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        runs: Number of sets of inputs.
        tolerance: What is accepted; by dtype if left out.
        dims: Lengths of dynamic dimensions by name; if left out, those that are declared, or
            the first usual ones at which the source runs.
        check_data: Inputs to check with instead of seeded ones; see :func:`convert`.
        check_images: Colour layout of the input that image files are for, by its name: ``RGB``,
            ``BGR`` or ``GRAYSCALE``; by the number of its channels if empty.
        float16: The target computes in float16; it is judged by what that can hold.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        report: Filled with the verdicts; a new one if left out.
        options: Options of the source, such as ``input_shapes``; a target that does not say its
            shapes gets those of the source.

    Returns:
        The report; ``report.passed`` says whether all outputs match that can tell, and
        ``report.says_nothing`` whether none can.

    Raises:
        CheckError: The comparison could not be made.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes of the source cannot be converted.
    """
    report = Report() if report is None else report
    reader = source_bridge(source, source_format)
    bound = reader.bind_import(_canonical(options))
    data = None if check_data is None else as_check_data(check_data, check_images)
    writer = target_bridge(target, target_format)
    if not os.path.exists(target):
        raise OptionError(f"{os.fspath(target)}: there is no such file")
    if not writer.detect(Path(target)):
        raise FormatError(f"expected a model of format {writer.name}", path=target)
    loaded, model = _read(reader, source, params, bound, report)
    types = {v.name_hint: v.type for v in model.inputs() if isinstance(v.type, TensorType)}
    with report.stage("check"), ExitStack() as running:
        own = engine_for_source(reader.name, loaded, model)
        running.enter_context(closing(own))
        other = engine_for_path(writer.name, Path(target), types)
        running.enter_context(closing(other))
        compare(
            own,
            other,
            model,
            runs=runs,
            tolerance=tolerance,
            dims=dims,
            data=data,
            float16=float16,
            yardstick=yardstick,
            report=report,
        )
    return report


def _read(
    bridge: Bridge, source: AnyValue, params: AnyValue, options: AnyValue, report: Report
) -> tuple[AnyValue, RelayModel]:
    with report.stage("load"):
        native = bridge.load(source, params, options)
    report.title = f"{bridge.name} -> relay"
    report.facts["source"] = bridge.name
    report.before = Counter(bridge.operators(native))
    report.nodes = sum(report.before.values())
    with report.stage(report.title):
        model = bridge.to_relay(native, options, report=report)
    return native, model


def _write(
    bridge: Bridge, model: RelayModel, passes: PrepareOptions, options: AnyValue, report: Report
) -> AnyValue:
    with report.stage("optimize"):
        model = prepare(model, passes, keep_globals=options.keeps_functions, report=report)
    report.title = f"relay -> {bridge.name}"
    report.facts["target"] = bridge.name
    report.nodes = sum(
        isinstance(node, Call) and isinstance(node.op, OpDef) for node in post_order(model.main)
    )
    with report.stage(report.title):
        native = bridge.from_relay(model, options, report=report)
    report.after = Counter(bridge.operators(native))
    report.facts["parameters"] = sum(weight.size for weight in model.params.values())
    return native


def _target(format: str | None, path: PathLike | None) -> Bridge:
    if format is None and path is None:
        raise OptionError("name a format, or a path whose suffix tells it")
    return target_bridge("" if path is None else path, format)


def _bind_passes(options: Mapping[str, AnyValue]) -> tuple[PrepareOptions, dict[str, AnyValue]]:
    given = _canonical(options)
    passes, rest = bind_options(PrepareOptions, given)
    if "allow" in given:
        rest["allow"] = given["allow"]
    return passes, rest


def _bind_all(
    reader: Bridge, writer: Bridge, options: Mapping[str, AnyValue]
) -> tuple[AnyValue, PrepareOptions, AnyValue]:
    if reader.import_options is None:
        raise OptionError(f"format {reader.name} cannot be read")
    if writer.export_options is None:
        raise OptionError(f"format {writer.name} cannot be written")
    given = _canonical(options)
    own, not_own = bind_options(reader.import_options, given)
    passes, not_passes = bind_options(PrepareOptions, given)
    target, not_target = bind_options(writer.export_options, given)
    unknown = {k: v for k, v in not_own.items() if k in not_passes and k in not_target}
    _refuse_unknown(unknown, [reader.import_options, PrepareOptions, writer.export_options])
    return own, passes, target


def _canonical(options: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return options with sets and sequences frozen, so that any may be given."""
    return {name: _FREEZE.get(name, _same)(value) for name, value in options.items()}


def _names(value: AnyValue) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _same(value: AnyValue) -> AnyValue:
    return value


_FREEZE: Mapping[str, Callable[[AnyValue], AnyValue]] = {
    "allow": frozenset,
    "inputs": _names,
    "op_block_list": frozenset,
    "outputs": _names,
}
"""How the value of an option that holds several is made one that does not change."""


def _refuse_unknown(rest: Mapping[str, AnyValue], classes: list[type[AnyValue]]) -> None:
    if rest:
        known = sorted({name for cls in classes for name in cls.__dataclass_fields__})
        raise OptionError(f"unknown option {', '.join(sorted(rest))}; known: {', '.join(known)}")


def _paths(source: AnyValue) -> list[Path]:
    """Return the files that `source` names, which a target must not replace."""
    items = source if isinstance(source, (tuple, list)) else [source]
    return [Path(item) for item in items if isinstance(item, (str, os.PathLike))]
