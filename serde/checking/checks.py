"""The public functions that compare two models by their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import source_bridge, target_bridge
from serde.bridge.summary import TensorSummary
from serde.checking.bisection import Bisection, bisect_models
from serde.checking.data import CheckData, as_check_data
from serde.checking.departing import Departure, find_departure
from serde.checking.engines import KEPT, engine_for_path, read_target, source_engine
from serde.checking.generating import compare_as_used
from serde.checking.inputs import InputSets
from serde.checking.verdict import Tolerance
from serde.conversion.locations import Locations
from serde.conversion.signature import takes_options
from serde.conversion.steps import PathLike, read_model
from serde.core import Array, Report
from serde.engine.fitting import match_names
from serde.engine.interpreter import RelayEngine
from serde.errors import CheckError, FormatError, OptionError, SerdeError
from serde.relay.ir import RelayModel, TensorType

__all__ = ["bisect", "bisect_read", "check", "input_types", "locate_difference", "wide_flag"]


_MOST_SETS = 8
"""Inputs for which models are run whose values agree."""

_BOTH = Locations({"source": "source_format", "target": "target_format"})


@takes_options(reads="source_format", locations=_BOTH)
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
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Args:
        source: The model to be matched: a path or URL, several of these, bytes or a live object.
        target: Path or URL of the model that must match it.
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
        float16: The target computes in float16; it is judged by what that can hold. Of a target
            that is read as Relay, this is found out.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with the verdicts; a new one if left out.
        options: Options of the source, such as ``input_shapes``; a target that does not say its
            shapes gets those of the source.

    Returns:
        The report; ``report.passed`` says whether all outputs match that can tell, and
        ``report.says_nothing`` whether none can.

    Raises:
        CheckError: The comparison could not be made.
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of the source cannot be converted.

    Example:
        >>> serde.check("net.onnx", "other.onnx").passed
        False
    """
    report = Report() if report is None else report
    reader = source_bridge(source, source_format)
    bound = reader.bind_import(options)
    data = None if check_data is None else as_check_data(check_data, check_images)
    writer = _existing_target(target, target_format)
    loaded, model = read_model(reader, source, params, bound, report)
    telling = _telling_inputs(model, writer, Path(target))
    with report.stage("check"), telling, ExitStack() as running:
        own = source_engine(reader, loaded, model)
        running.enter_context(closing(own))
        other = engine_for_path(writer, Path(target), input_types(model))
        running.enter_context(closing(other))
        inputs = [TensorSummary(name, None, dtype or None) for name, dtype in other.inputs.items()]
        report.notes += _differing_inputs(model, inputs)
        if not float16 and other.computes_float16:
            float16 = True
            report.notes.append("the target computes in float16, and is judged as such")
        failing = compare_as_used(
            own, other, model, runs=runs, tolerance=tolerance, dims=dims, data=data,
            float16=float16, yardstick=yardstick, wide_flag=wide_flag(writer.export_options),
            report=report,
        )  # fmt: skip
    if yardstick and failing is not None:
        locate_difference(report, model, writer, Path(target), failing)
    return report


@takes_options(reads="source_format", locations=_BOTH)
def bisect(
    source: AnyValue,
    target: PathLike | None = None,
    *,
    runtime: bool = False,
    engine: str | None = None,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Args:
        source: The model to be matched: a path or URL, several of these, bytes or a live object.
        target: Path or URL of the model that must match it.
        runtime: Look in one model instead, for where what runs it departs from the exact result;
            a :class:`~serde.checking.departing.Departure` is returned.
        engine: What runs it then: ``"openvino"``; the format's own framework if left out.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        dims: Lengths of dynamic dimensions by name.
        check_data: Inputs to run with instead of seeded ones; see :func:`convert`.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages; a new one if left out.
        options: Options of the source, such as ``input_shapes``.

    Raises:
        CheckError: The models have no value in common, or cannot be run.
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted.

    Example:
        >>> found = serde.bisect("net.onnx", "other.onnx")
        >>> [value.name for value in found.values if value.suspect]
        ['h']
    """
    report = Report() if report is None else report
    reader = source_bridge(source, source_format)
    bound = reader.bind_import(options)
    if runtime == (target is not None) or (engine and not runtime):
        raise OptionError("bisect: a target, or else runtime=True and its engine")
    data = None if check_data is None else as_check_data(check_data)
    if target is None:
        loaded, model = read_model(reader, source, params, bound, report)
        with report.stage("bisect"):
            return _depart(reader, loaded, model, dims, data, engine)
    writer = _existing_target(target, target_format)
    _, model = read_model(reader, source, params, bound, report)
    with report.stage("bisect"):
        return bisect_read(model, _read(model, writer, Path(target)), dims, data)


def _depart(
    bridge: AnyBridge,
    native: AnyValue,
    model: RelayModel,
    dims: Mapping[str, int] | None,
    data: CheckData | None,
    engine: str | None,
) -> Departure:
    """Return where what runs a model departs from it, on the first inputs on which it does."""
    exact, found = RelayEngine(model), None
    for inputs in islice(
        InputSets(model, exact, exact, report=Report(), dims=dims, data=data), _MOST_SETS
    ):
        found = find_departure(bridge, native, model, inputs, engine)
        if found.first is not None:
            break
    if found is None:
        raise CheckError("there are no inputs to run the model with")
    return found


def _differing_inputs(model: RelayModel, told: Sequence[TensorSummary]) -> list[str]:
    """Return what inputs of a target are not as the source's; nothing where none are told."""
    own = {each.name_hint: TensorSummary.of(each.name_hint, each.type) for each in model.inputs()}
    known = {each.name: each for each in told}
    if not known:
        return []
    partners = match_names(list(own), list(known))
    found = [f"{name} is not there in the target" for name in own if name not in partners]
    names = list(partners.values())
    found += [f"{name} of the target is not in the source" for name in known if name not in names]
    for name, other in partners.items():
        if name != other:
            found.append(f"{name} is called {other} in the target")
        else:
            found += own[name].differences(known[other])
    if not found and names != list(known):
        found = [f"in another order there: {', '.join(known)}"]
    return [f"inputs differ: {'; '.join(found)}"] if found else []


@contextmanager
def _telling_inputs(model: RelayModel, writer: AnyBridge, path: Path) -> Iterator[None]:
    """Add to the error of an engine that the inputs of the models differ, if they do."""
    try:
        yield
    except CheckError as error:
        if error.report is not None or writer.import_options is None:
            raise
        told: Sequence[TensorSummary] = ()
        with suppress(SerdeError):
            told = writer.summary(writer.load(path, None, writer.bind_import(KEPT))).inputs or ()
        differing = _differing_inputs(model, told)
        if not differing:
            raise
        raise CheckError(f"{error}; {differing[0]}") from error


def locate_difference(
    report: Report,
    model: RelayModel,
    writer: AnyBridge,
    path: Path,
    failing: Mapping[str, Array],
    recorded: Sequence[str] | None = None,
) -> None:
    """Note where the models begin to differ, for inputs for which a check found that they do."""
    with report.stage("bisect"):
        try:
            other = _read(model, writer, path)
            report.notes.append(bisect_models(model, other, failing, recorded=recorded).sentence)
        except SerdeError as error:
            report.notes.append(f"where the models begin to differ was not found: {error}")


def _read(model: RelayModel, writer: AnyBridge, path: Path) -> RelayModel:
    return read_target(writer, path, input_types(model))[1]


def bisect_read(
    model: RelayModel,
    other: RelayModel,
    dims: Mapping[str, int] | None = None,
    data: CheckData | None = None,
) -> Bisection:
    """Compare the values inside two models, on the first inputs of a check that tell them apart.

    Raises:
        CheckError: They have no value in common, or one cannot be run.
    """
    engines = RelayEngine(model), RelayEngine(other)
    found = None
    sets = InputSets(model, *engines, report=Report(), dims=dims, data=data)
    for inputs in islice(sets, _MOST_SETS):
        found = bisect_models(model, other, inputs)
        if not found.agrees:
            break
    if found is None:
        raise CheckError("there are no inputs to compare the models with")
    return found


def wide_flag(options: AnyValue) -> str:
    """Return what leaves nodes in float32: the option of a target's own, or that of all."""
    return "--float32-ops" if hasattr(options, "float32_ops") else "--op-block-list"


def _existing_target(target: PathLike, format_name: str | None) -> AnyBridge:
    """Return the bridge of a file that is compared."""
    writer = target_bridge(target, format_name)
    if not os.path.exists(target):
        raise OptionError(f"{os.fspath(target)}: there is no such file")
    if not writer.detect(Path(target)):
        raise FormatError(f"expected a model of format {writer.name}", path=target)
    return writer


def input_types(model: RelayModel) -> dict[str, TensorType]:
    """Return the types of a model's inputs that are tensors, for a target that tells none."""
    return {v.name_hint: v.type for v in model.inputs() if isinstance(v.type, TensorType)}
