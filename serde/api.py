"""The public functions: models between formats, and to and from Relay."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import PIVOT, get_bridge, source_bridge, target_bridge
from serde.bridge.options import bind_options
from serde.bridge.quantizing import QuantizeOptions
from serde.bridge.summary import ModelSummary
from serde.checking.tolerance import CheckOptions, Tolerance
from serde.conversion.locations import Locations
from serde.conversion.mapping import tensor_mapping as mapped_names
from serde.conversion.parts import convert_parts, wants_folder
from serde.conversion.prepare import CutOptions, PrepareOptions
from serde.conversion.signature import takes_options
from serde.conversion.steps import (
    Conversion,
    PathLike,
    bind_all,
    bind_passes,
    check_mapping,
    convert_source,
    find_target,
    read_model,
    source_paths,
    target_check,
    wanted_part,
    write_model,
)
from serde.core import Report, require
from serde.errors import OptionError
from serde.io.atomic import staged_text
from serde.io.staging import stored_bytes
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    import mxnet.gluon

    from serde.checking.data import CheckData
    from serde.relax.runnable import Runnable

__all__ = [
    "compile", "convert", "export_model", "from_relay", "import_model", "import_to_gluon",
    "to_relay",
]  # fmt: skip


@takes_options(reads="format", passes=CutOptions)
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> model = serde.to_relay("net.onnx")
        >>> model.params["w"].shape
        (3, 3)
    """
    report = Report() if report is None else report
    bridge = source_bridge(source, format)
    part, rest = bind_options(CutOptions, options)
    bound = bridge.bind_import(rest)
    return wanted_part(read_model(bridge, source, params, bound, report)[1], part)


@takes_options(writes="format", passes=PrepareOptions)
def from_relay(
    model: AnyValue,
    *,
    format: str | None = None,
    path: PathLike | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a Relay model in a format, or write it.

    Args:
        model: A :class:`RelayModel`, or a module or function, alone or in a pair with its
            parameters: arrays by name. Types are inferred where it has none.
        format: Name of the format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        overwrite: Whether files beside `path` may be replaced that serde did not write.
        report: Filled with stages and gaps.
        options: Options of the target's format and of the passes before it.

    Returns:
        The native object, complete; with `path` the path written.

    Raises:
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> x = relay.var("x", shape=(1, 3))
        >>> serde.from_relay(relay.Function([x], relay.nn.relu(x)), path="relu.onnx").name
        'relu.onnx'
    """
    report = Report() if report is None else report
    bridge = find_target(format, path)
    passes, rest = bind_passes(options, bridge)
    bound = bridge.bind_export(rest)
    bound.require(run=False)
    if path is not None:
        bridge.check_target(path, bound, overwrite=overwrite)
    part = wanted_part(_whole_model(model, report), passes)
    native = write_model(bridge, part, passes, bound, report)
    if path is None:
        return bridge.complete(native)
    with report.stage("save"):
        return bridge.save(native, Path(path), bound)


def _whole_model(model: AnyValue, report: Report) -> RelayModel:
    """Return a model as bridges give one, where a user has put it together."""
    if isinstance(model, RelayModel) and model.is_whole:
        return model
    bridge = get_bridge(PIVOT)
    if not bridge.accepts(model):
        expected = "expected a RelayModel, or a module and its parameters"
        raise OptionError(f"{expected}, found {type(model).__name__}")
    options = bridge.bind_import({"lift_constants": None})
    return bridge.to_relay(bridge.load(model, None, options), options, report=report)


@takes_options(reads="", writes="format", passes=PrepareOptions, after=QuantizeOptions)
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    path: PathLike | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a framework's model in another format, or write it.

    Args:
        model: A symbol, Gluon block or module, or anything :func:`to_relay` takes.
        params: Weights of `model`, where it does not hold them.
        format: Name of the target format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        overwrite: Whether files beside `path` may be replaced that serde did not write.
        report: Filled with stages and gaps.
        options: Options of the source, of the passes and of the target, such as
            ``input_shapes={'data': ('N', 3, 224, 224)}`` and ``opset=17``; and what makes the
            target smaller, such as ``int8=True, calibration="photos"``.

    Returns:
        The native object (for ONNX an ``onnx.ModelProto``); with `path` the path written.

    Raises:
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown, missing or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> proto = serde.export_model("net.onnx", format="onnx", opset=20)
        >>> proto.opset_import[0].version
        20
    """
    report = Report() if report is None else report
    reader, writer = source_bridge(model), find_target(format, path)
    quantizing, rest = bind_options(QuantizeOptions, options)
    own, passes, target = bind_all(
        reader, writer, rest, bound=[QuantizeOptions], run=quantizing.is_asked
    )
    quantizing = _checked_quantizing(quantizing, writer, target)
    known = [*source_paths(model), *source_paths(params)]
    check = None if path is None else target_check(writer, path, target, known, overwrite)
    made = convert_source(
        reader, writer, model, params, (own, passes, target), report, check,
        keep_source=quantizing.is_asked,
        choose=_search(passes, quantizing, target, CheckOptions(), report),
    )  # fmt: skip
    files = [*known, *made.files]
    if quantizing.is_asked:
        from serde.checking.shrinking import Shrinking
        from serde.checking.written import WrittenModel

        place = None if path is None else Path(path)
        return Shrinking(WrittenModel(made), quantizing, report).export(place, files)
    if path is None:
        return writer.complete(made.native)
    with report.stage("save"):
        return writer.save(made.native, Path(path), target, sources=files)


@takes_options(reads="format", writes="=relax", passes=PrepareOptions)
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] | None = None,
    cc: str | None = None,
    pipeline: AnyValue = None,
    tuning: str | None = None,
    trials: int = 0,
    format: str | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        target: What to compile for: a kind or tag of TVM (``"llvm"``, ``"cuda"``,
            ``"raspberry-pi/4b-aarch64"``), or a mapping such as
            ``{"kind": "llvm", "mcpu": "skylake"}``. If left out, it is the processor at hand
            (``"host"``), and what is saved is for all of its family (``"llvm"``).
        cc: C++ compiler that links code for another machine; one that TVM finds if left out.
        pipeline: What the module goes through before TVM's build in place of serde's own passes:
            a name that ``relax.get_pipeline`` knows, a pass of TVM, or a function of modules.
        tuning: A folder with records of TVM's meta schedule, which are used for what they fit.
        trials: How many measurements to make for these records first.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before TVM; ``freeze_vars``
            makes weights constants of the code.

    Returns:
        What runs the model; ``save("net.so")`` writes it.

    Raises:
        CompileError: TVM refuses the module, or crashed.
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: TVM is not installed, or as a release that is not known.
        OptionError: An option is unknown or missing, or TVM knows no such target.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> net = serde.compile("net.onnx", target="llvm")
        >>> net(np.float32([[1, -2, 3]]))
        [array([[1., 0., 3.]], dtype=float32)]
    """
    own = {"tvm_target": target, "cc": cc, "pipeline": pipeline, "tuning": tuning}
    own |= {"trials": trials, **options}
    runnable: Runnable = _export(source, params, format, get_bridge("tvm"), report, own)
    return runnable


@takes_options(reads="format", writes="=mxnet", passes=PrepareOptions)
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: MXNet is not installed; :func:`convert` writes its files without it.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> symbol, params = serde.import_model("net.onnx")
        >>> symbol.list_arguments(), params["w"].shape
        (['x', 'w'], (3, 3))
    """
    require("mxnet")
    return _export(source, params, format, get_bridge("mxnet"), report, options)


def _export(
    source: AnyValue,
    params: AnyValue,
    format: str | None,
    writer: AnyBridge,
    report: Report | None,
    options: Mapping[str, AnyValue],
) -> AnyValue:
    """Return a model of any format as the native object of another."""
    report = Report() if report is None else report
    reader = source_bridge(source, format)
    bound = bind_all(reader, writer, options)
    return writer.complete(convert_source(reader, writer, source, params, bound, report).native)


@takes_options(reads="format", writes="=mxnet", passes=PrepareOptions)
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    ctx: AnyValue = None,
    report: Report | None = None,
    **options: AnyValue,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    The block takes its inputs in the order of the model. It can be trained: batch normalisations
    are kept unless ``keep_batch_norm=False``, and constants of the graph are left alone.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        ctx: MXNet's device for the parameters; the CPU if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before MXNet's.

    Raises:
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: MXNet is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> import mxnet as mx
        >>> block = serde.import_to_gluon("net.onnx")
        >>> block(mx.nd.array([[1, -2, 3]])).asnumpy()
        array([[1., 0., 3.]], dtype=float32)
    """
    from serde.mxnet.live import to_block

    options.setdefault("keep_batch_norm", True)
    symbol, values = import_model(source, params, format=format, report=report, **options)
    return to_block(symbol, values, ctx)


def _check_data(given: AnyValue, option: str = "check_data") -> CheckData:
    from serde.checking.data import as_check_data

    return as_check_data(given, option=option)


def _checked_quantizing(
    wanted: QuantizeOptions, writer: AnyBridge, options: AnyValue
) -> QuantizeOptions:
    """Refuse at once what cannot be made smaller; look at what data there is."""
    if not wanted.is_asked:
        return wanted
    writer.check_compression(wanted, options)
    if wanted.calibration is None:
        return wanted
    data = _check_data(wanted.calibration, "calibration")
    if not data.sources:
        raise OptionError("calibration: there are no samples")
    return replace(wanted, calibration=data)


def _search(
    passes: PrepareOptions, quantizing: QuantizeOptions, target: AnyValue, check: CheckOptions,
    report: Report,
) -> Callable[[Conversion], PrepareOptions] | None:  # fmt: skip
    """Return what finds the nodes that stay in float32, if that is asked for."""
    least, searched = quantizing.min_cosine, passes.float16 == "auto"
    if least is not None and not searched and not quantizing.is_asked:
        raise OptionError("min_cosine: of float16='auto', or of what is made smaller")
    if searched and quantizing.is_asked:
        raise OptionError(f"float16='auto' and {quantizing.asked[0]}: one of them")
    if not searched:
        return None
    if target.computes_float16:
        raise OptionError("float16='auto': the target's own options have it compute in float16")
    from serde.checking.mixed_precision import find_wide_names

    target.require(run=True)
    least = 0.999 if least is None else least
    return partial(find_wide_names, least=least, check=check, report=report)


@takes_options(
    reads="source_format",
    writes="target_format",
    passes=PrepareOptions,
    after=QuantizeOptions,
    locations=Locations({"source": "source_format"}, writes="target"),
)
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
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Convert a model and write it.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework; an
            archive of SageMaker or of a model server with what it says of the inputs.
        target: Where to write: a path or URL.
        params: Weights that belong to `source`, where it does not hold them; a path or URL, or
            arrays by name.
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
            of the source are called in the target; see
            :func:`serde.conversion.mapping.tensor_mapping`.
        overwrite: Whether files beside the target may be replaced that serde did not write:
            MXNet's symbol and parameters, Relay's parameters.
        storage_options: What ``fsspec`` gives to the file system of a URL, such as
            ``{"anon": True}``; the environment says it otherwise.
        report: Filled with all of it; a new one if left out.
        options: Options of the source, of the passes and of the target, and what makes the target
            smaller, such as ``int8=True, calibration="photos"``.

    Returns:
        The report.

    Raises:
        CheckError: The check failed or could not be made, or a smaller model loses more than is
            allowed; nothing is written.
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown, missing or cannot be used.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> report = serde.convert("net.onnx", "net.nnef.tgz", check=True)
        >>> report.facts["path"], report.passed
        ('net.nnef.tgz', True)
    """
    report = Report() if report is None else report
    reader, writer = source_bridge(source, source_format), target_bridge(target, target_format)
    quantizing, rest = bind_options(QuantizeOptions, options)
    data = None if check_data is None else _check_data(check_data)
    wanted = CheckOptions(int(check), tolerance, dims, data, yardstick)
    run = wanted.is_asked or quantizing.is_asked
    own, passes, bound = bind_all(reader, writer, rest, bound=[QuantizeOptions], run=run)
    parts = reader.parts(source, own)
    if parts is not None and wants_folder(parts, writer, target):
        given = {
            "source_format": reader.name,
            "target_format": writer.name,
            "check": check,
            "tolerance": tolerance,
            "dims": dims,
            "check_data": check_data,
            "yardstick": yardstick,
            "report": report,
            **options,
        }
        if tensor_mapping is not None:
            raise OptionError("tensor_mapping: is of one model; name a file as the target")
        if check_data is not None and len(parts.names) > 1:
            raise OptionError(
                f"check_data: is for one of {', '.join(parts.names)}; name it by part"
            )

        def convert_part(path: Path, part: str) -> None:
            # Of several, the last one generates.
            kept = {} if part == parts.names[-1] else {"cache_length": None, "cache_batch": None}
            convert(source, path, **{**given, **kept, "part": part})

        convert_parts(convert_part, parts, writer, Path(target), source_paths(source), report)
        return report
    quantizing = _checked_quantizing(quantizing, writer, bound)
    known = [*source_paths(source), *source_paths(params)]
    check_target = target_check(writer, target, bound, known, overwrite)
    if tensor_mapping is not None:
        check_mapping(tensor_mapping, target, known)
    made = convert_source(
        reader, writer, source, params, (own, passes, bound), report, check_target,
        keep_source=run, choose=_search(passes, quantizing, bound, wanted, report),
    )  # fmt: skip
    native, path, labels = made.native, Path(target), made.part.meta.labels
    files = [*known, *made.files]
    finish: Callable[[Path], None] = _leave
    if passes.float16 == "auto" and not check:
        wanted = replace(wanted, data=None)  # They were for the search, by another measure.
    # What can fail comes before either file is in place.
    with ExitStack() as beside:
        if wanted.is_asked or quantizing.is_asked:
            from serde.checking.written import WrittenModel

            written = WrittenModel(made)
            finish = partial(written.check, wanted=wanted, report=report, target=target)
            if quantizing.is_asked:
                from serde.checking.shrinking import Shrinking

                shrinking = Shrinking(written, quantizing, report, wanted)
                native = beside.enter_context(shrinking.shrunk(path, finish))
                finish = shrinking.measure
        if tensor_mapping is not None:
            mapping = mapped_names(made.chosen, writer.names(native))
            text = json.dumps(mapping, indent=2, ensure_ascii=False) + "\n"
            beside.enter_context(staged_text(tensor_mapping, text))
        del made  # What is not needed for a check goes before the target is laid out.
        nbytes = _save(writer, native, path, bound, files, finish, report)
    report.facts |= {"path": str(path), "bytes": nbytes, **_interface_facts(writer.summary(native))}
    if labels:
        report.facts["labels"] = list(labels)
    return report


def _leave(_path: Path) -> None:
    """Do nothing with a finished file."""


def _save(
    writer: AnyBridge,
    native: AnyValue,
    path: Path,
    options: AnyValue,
    sources: Sequence[Path],
    finish: Callable[[Path], None],
    report: Report,
) -> int:
    """Write a model and return its bytes; `finish` sees its file before it is in place."""
    sizes: list[int] = []
    with ExitStack() as saving:
        saving.enter_context(report.stage("save"))

        def before_commit(staged: Path) -> None:
            sizes.append(stored_bytes(staged))
            saving.close()
            finish(staged)

        writer.save(native, path, options, sources=sources, before_commit=before_commit)
    return sizes[0]


def _interface_facts(summary: ModelSummary) -> dict[str, AnyValue]:
    """Return inputs and outputs of what was written, as JSON holds them."""
    known = {"inputs": summary.inputs, "outputs": summary.outputs}
    return {
        kind: [asdict(port) for port in ports] for kind, ports in known.items() if ports is not None
    }
