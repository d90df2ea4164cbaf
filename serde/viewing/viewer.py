"""The public function that shows a model, or two, as a page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import source_bridge
from serde.bridge.options import bind_options, option_names, refuse_options
from serde.bridge.summary import ModelSummary
from serde.checking.checks import bisect_read, input_types
from serde.checking.data import as_check_data
from serde.checking.difference import DiffSide, diff_sides
from serde.checking.engines import read_native
from serde.conversion.locations import Locations
from serde.conversion.routing import Route, find_routes
from serde.conversion.signature import takes_options
from serde.conversion.steps import PathLike, read_model, source_paths
from serde.core import Issue, Report, dataclass, field, replace
from serde.errors import CheckError, OptionError, SerdeError, UnsupportedModelError
from serde.io.atomic import check_files, write_text
from serde.relay.ir.model import RelayModel
from serde.relay.ir.registry import find, get
from serde.relay.transform.cutting import named_values
from serde.viewing.comparison import Comparison, Named
from serde.viewing.graph import read_graph
from serde.viewing.native import read_operators, read_trace
from serde.viewing.nodes import LONGEST_NAME, Graph, cut_text
from serde.viewing.page import Page, ShownModel, make_page
from serde.viewing.payload import graph_payload, operator_docs, weight_rows
from serde.viewing.statistics import Statistics, measure_weights
from serde.walk.tracing import Trace, tracing

__all__ = ["view"]

SECONDS = 20.0
"""Time for the statistics of weights, if nothing else is said."""


@takes_options(
    reads="source_format",
    locations=Locations({"source": "source_format", "target": "target_format"}, shared=True),
)
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: PathLike | None = None,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = SECONDS,
    values: bool = True,
    routes: bool = False,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Page:
    """Show a model as a page of HTML, or what differs between two.

    The page is one file that asks for nothing from anywhere. It draws the graph with the
    operators of its file, with what repeats folded; a switch shows it as Relay, before any pass. A
    model that cannot be converted is shown as far as it could be read, with its gaps marked.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework.
        target: Another model that is compared with it, likewise.
        path: Where to write the page.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the format of `source`; recognised by content if left out.
        target_format: Name of the format of `target`, likewise.
        weights: Whether weights are read: their statistics and histograms, and with two models
            which of them differ.
        seconds: Time for the statistics of a model's weights; of what is left then, samples are
            read.
        values: With two models, whether both are run to compare the values inside.
        routes: Whether to tell what each format and runtime would make of the model; see
            :func:`serde.route`.
        dims: Lengths of dynamic dimensions by name, for that run.
        check_data: Inputs of that run instead of seeded ones; see :func:`convert`.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages and gaps.
        options: Options of the source's format, such as ``input_shapes``; the target gets
            those that its format has.

    Returns:
        The page, which a notebook shows; with `path`, it is written there too.

    Raises:
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing, or nothing can be written at `path`.
        StoreError: A store does not answer, refuses, or holds no such object.

    Example:
        >>> page = serde.view("net.onnx", path="net.html")
        >>> page.path.name
        'net.html'
    """
    report = Report() if report is None else report
    if path is not None:
        check_files([path], sources=[*source_paths(source), *source_paths(target)])
    sides = [_read_side(source, params, source_format, options, report)]
    comparison = None
    if target is not None:
        sides.append(_read_side(target, None, target_format, options, report, beside=sides[0]))
        with report.stage("compare"):
            comparison = _compare(sides, weights, values, dims, check_data)
    unused = frozenset(options).intersection(*(side.unknown for side in sides))
    refuse_options(unused, option_names(*(side.bridge.import_options for side in sides)))
    if routes and sides[0].model is not None:
        sides[0].routes = find_routes(sides[0].model, report)
    with report.stage("draw"):
        data = _page_data(sides, comparison, seconds if weights else None)
        page = make_page(" and ".join(side.title for side in sides), data)
    models = tuple(
        ShownModel(side.title, len(side.graph.nodes), len(side.issues)) for side in sides
    )
    if path is not None:
        write_text(path, page)
    return Page(page, None if path is None else Path(path), models)


@dataclass
class _Side:
    """A model that is shown.

    Attributes:
        title: What it is called.
        bridge: Its format.
        summary: What the format says of it.
        graph: Its picture, as its file has it.
        relay: Its picture as Relay, where that is another.
        model: The model as Relay, without lets; None where it has gaps.
        nodes: The node of ``relay`` that gives each value, by its name.
        docs: What documents the operators of its format.
        issues: Its gaps.
        notes: What else there is to say.
        unknown: Options that its format does not have.
        routes: What each target would make of it.
    """

    title: str
    bridge: AnyBridge
    summary: ModelSummary = field(default_factory=ModelSummary)
    graph: Graph = field(default_factory=Graph)
    relay: Graph | None = None
    model: RelayModel | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unknown: frozenset[str] = frozenset()
    operators: Counter[str] = field(default_factory=Counter)
    routes: Sequence[Route] = ()

    @property
    def whole(self) -> RelayModel:
        """The model, which has no gaps."""
        if self.model is None:
            raise CheckError(f"{self.title} has nodes that cannot be converted")
        return self.model

    def named(self, *, relay: bool) -> Named:
        """Return a picture and the names in it, for a comparison."""
        weights = () if self.model is None else tuple(self.model.params)
        graph = self.relay if relay else None
        if graph is not None or self.relay is None:
            return Named(self.graph if graph is None else graph, self.nodes, weights)
        numbered = list(enumerate(self.graph.nodes))
        nodes = {name: number for number, node in numbered for name in node.values}
        for number, node in numbered:
            nodes.setdefault(node.name, number)
        return Named(self.graph, nodes, weights)

    @property
    def diff_side(self) -> DiffSide:
        """The model, for a comparison."""
        version = self.summary.version or self.whole.meta.source_version
        return DiffSide(self.bridge.name, version, self.operators, self.whole)


def _read_side(
    source: AnyValue,
    params: AnyValue,
    format: str | None,
    options: Mapping[str, AnyValue],
    report: Report,
    beside: _Side | None = None,
) -> _Side:
    """Read a model as far as it goes."""
    bridge = source_bridge(source, format)
    if bridge.import_options is None:
        raise OptionError(f"format {bridge.name} cannot be read")
    bound, unknown = bind_options(bridge.import_options, options)
    own = Report()
    side = _Side(_title(source, bridge), bridge, unknown=frozenset(unknown))
    with tracing() as trace:
        try:
            native, model = _read(bridge, source, params, bound, own, beside)
        except UnsupportedModelError as error:
            _show_gaps(side, bridge.load(source, params, bound), trace, error.report)
            report.issues += side.issues
            return side
    report.stages += own.stages
    side.notes += own.notes
    side.summary, side.operators = bridge.summary(native), Counter(bridge.operators(native))
    side.model, names = named_values(model)
    side.graph, places = read_graph(side.model, names)
    side.nodes = {name: places[value] for name, value in names.items() if value in places}
    if trace.main.nodes:
        constants = frozenset(bridge.names(native).weights)
        outputs = side.model.meta.outputs
        native_graph = read_trace(trace, (), side.model.params, constants, outputs)
        side.relay, side.graph = side.graph, native_graph
        side.docs = _documentation(side, native)
    return side


def _documentation(side: _Side, native: AnyValue) -> dict[str, str]:
    operators = (node.op for node in side.graph.nodes if node.kind in ("operator", "unknown"))
    return operator_docs(operators, lambda op: side.bridge.document(native, op))


def _read(
    bridge: AnyBridge,
    source: AnyValue,
    params: AnyValue,
    options: AnyValue,
    report: Report,
    beside: _Side | None,
) -> tuple[AnyValue, RelayModel]:
    """Read a model; where it does not say its shapes, with those of the one it is compared with."""
    try:
        return read_model(bridge, source, params, options, report)
    except OptionError:
        if beside is None or beside.model is None:
            raise
        native = bridge.load(source, params, options)
        return native, read_native(bridge, native, input_types(beside.model))


def _show_gaps(side: _Side, native: AnyValue, trace: Trace, report: Report) -> None:
    """Enter what is known of a model that cannot be converted."""
    bridge = side.bridge
    side.summary, side.issues = bridge.summary(native), sorted(report.issues)
    if trace.main.nodes:
        constants = frozenset(bridge.names(native).weights)
        side.graph = read_trace(trace, side.issues, constants=constants)
        side.docs = _documentation(side, native)
    else:
        side.graph = read_operators(bridge.operators(native), side.issues)
        side.notes.append("its graph is not known, only its operators")
    side.notes.append(f"{report.coverage}; what cannot is marked")


def _title(source: AnyValue, bridge: AnyBridge) -> str:
    items = source if isinstance(source, (tuple, list)) else [source]
    named = [os.fspath(item) for item in items if isinstance(item, (str, os.PathLike))]
    name = os.path.basename(named[0].rstrip("/")) if named else bridge.title
    return cut_text(name, LONGEST_NAME)


def _compare(
    sides: Sequence[_Side],
    weights: bool,
    values: bool,
    dims: Mapping[str, int] | None,
    check_data: AnyValue,
) -> Comparison:
    """Return what differs between two models, as far as they can be compared."""
    first, second = sides
    found = Comparison((first.named(relay=False), second.named(relay=False)))
    if first.model is None or second.model is None:
        found.notes.append("not compared: a model has nodes that cannot be converted")
        return found
    found.difference = diff_sides(first.diff_side, second.diff_side, weights=weights)
    if values:
        try:
            data = None if check_data is None else as_check_data(check_data)
            found.bisection = bisect_read(first.whole, second.whole, dims, data)
        except OptionError:
            raise
        except SerdeError as error:
            found.notes.append(f"values were not compared: {error}")
    return found


def _page_data(
    sides: Sequence[_Side], comparison: Comparison | None, seconds: float | None
) -> dict[str, AnyValue]:
    return {
        "title": " and ".join(side.title for side in sides),
        "models": [
            _side_data(side, seconds, _compared(sides, comparison, number))
            for number, side in enumerate(sides)
        ],
        "comparison": None if comparison is None else comparison.payload(),
    }


def _compared(
    sides: Sequence[_Side], comparison: Comparison | None, number: int
) -> dict[str, AnyValue]:
    """Return what a page says of the nodes and weights of one of two models."""
    if comparison is None:
        return {}
    first, second = (side.named(relay=True) for side in sides)
    as_relay = replace(comparison, sides=(first, second))
    return {
        "verdicts": comparison.verdicts(number),
        "relayVerdicts": as_relay.verdicts(number),
        "weightNotes": comparison.weight_notes(number),
    }


def _side_data(
    side: _Side, seconds: float | None, compared: Mapping[str, AnyValue]
) -> dict[str, AnyValue]:
    weights = {} if side.model is None else side.model.params
    statistics: dict[str, Statistics] = {}
    failed: dict[str, str] = {}
    if seconds is not None:
        statistics, failed = measure_weights(weights, seconds)
    notes = list(side.notes)
    partly = sum(each.sampled for each in statistics.values())
    if partly or failed:
        notes.append(
            f"weights: {len(statistics) - partly:,} read whole, {partly:,} sampled, "
            f"{len(failed):,} not read within {seconds:g} s"
        )
    relay = side.graph if side.relay is None else side.relay
    parts = (part for node in side.graph.nodes for part in (node.op, *node.parts))
    named = {*parts, *(node.op for node in relay.nodes)}
    return {
        "title": side.title,
        "format": side.bridge.title,
        "facts": _facts(side),
        "notes": [cut_text(note) for note in notes],
        "routes": [[each.name, cut_text(each.sentence)] for each in side.routes],
        "issues": [
            [cut_text(text) for text in (each.op, each.node, each.reason, each.hint or "")]
            for each in side.issues[:1000]
        ],
        "read": seconds is not None,
        "graph": graph_payload(side.graph, weights),
        "relay": None if side.relay is None else graph_payload(side.relay, weights),
        "weights": weight_rows(weights, statistics, failed),
        "docs": side.docs,
        "relayDocs": operator_docs((each for each in named if find(each)), lambda op: get(op).doc),
        **compared,
    }


def _facts(side: _Side) -> list[list[str]]:
    """Return what is known of a model, name by name."""
    summary = side.summary
    facts = [("format", side.bridge.title), ("version", summary.version)]
    parameters, size = summary.parameters, summary.parameter_bytes
    if side.model is not None:
        weights = side.model.params.values()
        parameters = sum(w.size for w in weights) if parameters is None else parameters
        size = sum(w.nbytes for w in weights) if size is None else size
        if not summary.version:
            facts[1] = ("version", side.model.meta.source_version)
        facts.append(("description", side.model.meta.description))
    if parameters is not None:
        facts.append(("parameters", f"{parameters:,}"))
    if size is not None:
        facts.append(("weights", f"{size:,} bytes"))
    facts += [(str(name), str(value)) for name, value in summary.facts.items()]
    return [[cut_text(name), cut_text(value)] for name, value in facts if value]
