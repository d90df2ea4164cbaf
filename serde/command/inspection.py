"""What a model file holds, and what formats there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any as AnyValue

from serde.bridge.formats import PIVOT, format_names, get_bridge, source_bridge
from serde.bridge.summary import ModelSummary, TensorSummary
from serde.conversion.locations import Locations
from serde.conversion.signature import takes_options
from serde.conversion.steps import load_model
from serde.core import asdict, dataclass, field, near_names, size_text
from serde.core.report import Report, Table, shape_text
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir import RelayModel, TupleType, Type
from serde.relay.transform.cutting import NamedValue, nameable_values

__all__ = ["Inspection", "ListedValue", "inspect_model", "list_operators", "operator_tables"]


@dataclass(frozen=True)
class Inspection:
    """What a model file holds.

    Attributes:
        format: Name of its format.
        title: The format's name for people.
        summary: What the format says about it, and what conversion to Relay adds.
        operators: Count of each operator.
        relay_text: The model as Relay text, where asked for.
        nodes: What a part of the model can begin and end at, where asked for.
        notes: Why something is not known.
    """

    format: str
    title: str
    summary: ModelSummary
    operators: Counter[str]
    relay_text: str | None = None
    nodes: list[NamedValue] | None = None
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, AnyValue]:
        """Return all of it as values that JSON can hold."""
        return {
            "format": self.format,
            "title": self.title,
            **asdict(self.summary),
            "nodes": self.operators.total(),
            "operators": dict(sorted(self.operators.items())),
            "relay": self.relay_text,
            "values": None if self.nodes is None else list(map(_value_dict, self.nodes)),
            "notes": self.notes,
        }

    def tables(self) -> list[Table]:
        """Return what people read: facts, inputs and outputs, operators."""
        summary = self.summary
        facts = [("format", self.title)]
        if summary.version:
            facts.append(("version", summary.version))
        if summary.parameters is not None:
            facts.append(("parameters", f"{summary.parameters:,}"))
        if summary.parameter_bytes is not None:
            facts.append(("weights", size_text(summary.parameter_bytes)))
        facts += [(name, str(value)) for name, value in summary.facts.items()]
        facts += [("note", note) for note in self.notes]
        found = [Table(("", ""), tuple(facts), header=False)]
        ports = [("input", tensor) for tensor in summary.inputs or ()]
        ports += [("output", tensor) for tensor in summary.outputs or ()]
        if ports:
            rows = tuple(
                (kind, tensor.name, shape_text(tensor.shape), tensor.dtype or "unknown")
                for kind, tensor in ports
            )
            found.append(Table(("", "name", "shape", "dtype"), rows))
        counts = sorted(self.operators.items(), key=lambda item: (-item[1], item[0]))
        rows2 = [(name, str(count)) for name, count in counts]
        rows2.append(("total", str(self.operators.total())))
        found.append(Table(("operator", "count"), tuple(rows2), frozenset({1})))
        if self.nodes is not None:
            columns = ("node or value", "operator", "shape", "dtype", "also called")
            found.append(Table(columns, tuple(_value_row(each) for each in self.nodes)))
        return found


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value that ``inputs`` and ``outputs`` take, as JSON has it.

    Attributes:
        name: What the source calls the node that gives it, or else the value.
        shape: Its shape, names for dynamic dimensions.
        dtype: Its dtype.
        operator: The Relay operator that yields it; None of an input.
        also: What else it can be called.
    """

    name: str
    shape: list[int | str] | None
    dtype: str | None
    operator: str | None
    also: list[str]


def _value_dict(value: NamedValue) -> dict[str, AnyValue]:
    tensor = TensorSummary.of(value.name, value.type)
    shape = None if tensor.shape is None else list(tensor.shape)
    operator = value.operator or None
    return asdict(ListedValue(value.name, shape, tensor.dtype, operator, list(value.also)))


def _value_row(value: NamedValue) -> tuple[str, ...]:
    tensor = TensorSummary.of(value.name, value.type)
    operator = value.operator or "input"
    dtype = tensor.dtype or "unknown"
    return (value.name, operator, shape_text(tensor.shape), dtype, ", ".join(value.also))


@takes_options(reads="format", locations=Locations({"source": "format"}))
def inspect_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    relay: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    nodes: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> Inspection:
    """Return what a model holds.

    What the format does not say (MXNet's files have no shapes) is found by
    conversion to Relay where that works; a model that cannot be converted is
    inspected all the same.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the format; recognised by content if left out.
        relay: Whether the model's Relay text is wanted; then it must convert.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        nodes: Whether it is wanted what ``inputs`` and ``outputs`` take; likewise.
        report: Filled with stages.
        options: Options of the format.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown.
        UnsupportedModelError: Relay text or nodes are wanted, and some cannot be converted.
    """
    report = Report() if report is None else report
    bridge = source_bridge(source, format)
    bound = bridge.bind_import(options)
    native, _ = load_model(bridge, source, params, bound, report)
    operators = Counter(bridge.operators(native))
    report.title, report.nodes = f"{bridge.name} -> relay", operators.total()
    summary, notes, text, values = bridge.summary(native), [], None, None
    if relay or nodes or not summary.complete:
        try:
            with report.stage(report.title):
                model = bridge.to_relay(native, bound, report=report)
        except (OptionError, UnsupportedModelError) as error:
            if relay or nodes or (options and isinstance(error, OptionError)):
                raise
            notes.append(str(error))
        else:
            summary = _complete_summary(summary, model)
            text = model.mod.astext(show_meta_data=False) if relay else None
            values = nameable_values(model) if nodes else None
    return Inspection(bridge.name, bridge.title, summary, operators, text, values, notes)


def _complete_summary(summary: ModelSummary, model: RelayModel) -> ModelSummary:
    """Return `summary` with the types, and what else it lacks, taken from the Relay model."""
    result = model.main.body.type
    types: tuple[Type | None, ...] = (result,)
    if isinstance(result, TupleType):
        types = result.fields
    names = model.meta.outputs or tuple(f"output{i}" for i in range(len(types)))
    weights = model.params.values()
    parameters, size = summary.parameters, summary.parameter_bytes
    return ModelSummary(
        version=summary.version or model.meta.source_version,
        inputs=tuple(TensorSummary.of(var.name_hint, var.type) for var in model.inputs()),
        outputs=tuple(TensorSummary.of(n, t) for n, t in zip(names, types, strict=False)),
        parameters=sum(each.size for each in weights) if parameters is None else parameters,
        parameter_bytes=sum(each.nbytes for each in weights) if size is None else size,
        facts=summary.facts,
    )


def list_operators(
    format_name: str | None = None, operator: str | None = None
) -> dict[str, list[tuple[str, str]]]:
    """Return the operators of one format, or of all, the pivot's first; each with a remark.

    Args:
        format_name: A format; all that load if left out.
        operator: The only one to list, with what each format says of it; all if left out.

    Raises:
        OptionError: The format is unknown or does not load.
    """
    every = {} if format_name is None else {format_name: get_bridge(format_name).coverage()}
    for name in sorted(format_names(), key=lambda name: (name != PIVOT, name)):
        with suppress(OptionError):
            if format_name is None and (rows := get_bridge(name).coverage()):
                every[name] = rows
    if operator is None:
        return every
    found = {name: [row for row in rows if row[0] == operator] for name, rows in every.items()}
    if not any(found.values()):
        near = near_names(operator, (op for rows in every.values() for op, _ in rows))
        raise OptionError(f"no operator is called {operator}.{near}")
    return {name: rows for name, rows in found.items() if rows}


def operator_tables(found: Mapping[str, list[tuple[str, str]]]) -> list[Table]:
    """Return what :func:`list_operators` found, one table a format."""
    return [
        Table(
            (f"{name} ({len(rows)})", get_bridge(name).coverage_summary()),
            tuple((op, remark) for op, remark in rows),
        )
        for name, rows in found.items()
    ]
