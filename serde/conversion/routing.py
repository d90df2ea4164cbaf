"""What each target would make of a model, told before anything is converted or a weight is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import PIVOT, format_names, get_bridge, source_bridge
from serde.conversion.locations import Locations
from serde.conversion.prepare import PrepareOptions
from serde.conversion.signature import takes_options
from serde.conversion.steps import read_model, write_model
from serde.core import Array, Issue, Report, Weight, dataclass, field, numpy_dtype, replace
from serde.core.lossy import lossy_steps
from serde.errors import MissingDependency, OptionError, UnsupportedModelError
from serde.relay.ir import RelayModel
from serde.relay.transform.decompose import counting_decomposed

__all__ = ["Route", "find_routes", "route"]


@dataclass(frozen=True, slots=True)
class Route:
    """What a target would make of a model.

    Attributes:
        target: Name of the format.
        profile: Name of the runtime that is written for; empty for none.
        nodes: Number of nodes of the target; 0 where it refuses the model.
        lowered: Operators of Relay that the target says in others, with their number.
        lost: What would be lost, each with the step to allow.
        refused: Why nodes cannot be converted; the names of packages that are missing.
        outside: Operators of the target that the runtime does not take, with their number.
    """

    target: str
    profile: str = ""
    nodes: int = 0
    lowered: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[Issue, ...] = ()
    refused: tuple[Issue, ...] = ()
    outside: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The format, and the runtime that it is for."""
        return f"{self.target} for {self.profile}" if self.profile else self.target

    @property
    def is_open(self) -> bool:
        """Whether all of the model gets there, and is taken there."""
        return not self.refused and not self.outside

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        if self.refused:
            return f"refuses {_counted(Counter(each.op for each in self.refused))}"
        parts = [
            ("says {} in other operators", self.lowered),
            ("loses by {}", Counter(_step(each) for each in self.lost)),
            ("leaves {} to the host", self.outside),
        ]
        said = [text.format(_counted(found)) for text, found in parts if found]
        return "; ".join(said) or "keeps all operators"


_SHOWN = 4


def _step(lost: Issue) -> str:
    """Return the name of the step by which something is lost."""
    return (lost.hint or "").removeprefix("allow ").strip("'")


def _counted(found: Mapping[str, int]) -> str:
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{op} {count}" for op, count in ordered[:_SHOWN]]
    more = len(ordered) - _SHOWN
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


@takes_options(reads="format", locations=Locations({"source": "format"}))
def route(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str | None = None,
    targets: Iterable[str] | None = None,
    profiles: Iterable[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> list[Route]:
    """Return what targets would keep, say otherwise, lose or refuse of a model.

    The model is converted to each with zeros for weights, which are not read but for small ones:
    a loss that depends on their numbers, such as float16's range, is not told.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        targets: Formats to look at; all that can be written if these and `profiles` are left out.
        profiles: Runtimes to look at, as ``profile=`` of a format takes them; with neither, all
            that formats know.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages.
        options: Options of the source's format, such as ``input_shapes``.

    Raises:
        FormatError: The bytes are malformed.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that the source's format needs is not installed.
        OptionError: An option is unknown or missing, or there is no such format or runtime.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of the source cannot be read; all of them are listed.

    Example:
        >>> found = serde.route("net.onnx", targets=["nnef"], profiles=["webnn"])
        >>> [(each.name, each.sentence) for each in found]
        [('nnef', 'keeps all operators'), ('onnx for webnn', 'keeps all operators')]
    """
    report = Report() if report is None else report
    wanted = list(_wanted(targets, profiles))
    bridge = source_bridge(source, format)
    _, model = read_model(bridge, source, params, bridge.bind_import(options), report)
    return _find_all(model, wanted, report)


def find_routes(model: RelayModel, report: Report) -> list[Route]:
    """Return what every target would make of a model."""
    return _find_all(model, _wanted(None, None), report)


def _find_all(
    model: RelayModel, wanted: Iterable[tuple[AnyBridge, AnyValue]], report: Report
) -> list[Route]:
    params = {name: _unread(weight) for name, weight in model.params.items()}
    model = replace(model, params=params)
    return [_find(model, writer, options, report) for writer, options in wanted]


_READ_BYTES = 2**12
"""Weights of so many bytes are read: numbers on which the graph may depend."""


class _Unread(Weight):
    """A weight that stands for another, of which nothing is read; its numbers are zeros."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, dtype

    def rows(self, start: int, stop: int) -> Array:
        """Return zeros."""
        rows = (stop - start, *self.shape[1:]) if self.shape else ()
        return np.zeros(rows, numpy_dtype(self.dtype))


def _unread(weight: Weight) -> Weight:
    return weight if weight.nbytes <= _READ_BYTES else _Unread(weight.shape, weight.dtype)


def _wanted(
    targets: Iterable[str] | None, profiles: Iterable[str] | None
) -> Iterator[tuple[AnyBridge, AnyValue]]:
    """Yield the formats and runtimes that are asked for, with options; all where none is."""
    allow = frozenset(lossy_steps())
    formats = [get_bridge(name) for name in format_names()]
    # What is written and never read is another format that was compiled.
    written = [each for each in formats if each.export_options and each.import_options]
    known = {name: each for each in written for name in each.profiles()}
    everything = targets is None and profiles is None
    for name in targets or (each.name for each in written if everything and each.name != PIVOT):
        bridge = get_bridge(name)
        if bridge not in written:
            raise OptionError(f"targets: format {name} is not written by itself")
        yield bridge, bridge.bind_export({"allow": allow})
    for profile in profiles or (known if everything else ()):
        holder = known.get(profile) or next(each for each in written if each.profiles())
        options = holder.bind_export({"allow": allow, "profile": profile})
        options.require(run=False)
        yield holder, options


def _find(model: RelayModel, writer: AnyBridge, options: AnyValue, report: Report) -> Route:
    """Return what one target makes of a model, with every loss allowed."""
    own = Report()
    profile = getattr(options, "profile", None) or ""
    refused: Sequence[Issue] = ()
    nodes = 0
    with report.stage(f"{writer.name} {profile}".strip()), counting_decomposed() as lowered:
        try:
            options.require(run=False)
            write_model(writer, model, PrepareOptions(allow=options.allow), options, own)
            nodes = own.after.total()
        except MissingDependency as error:
            refused = [Issue("package", "", str(error))]
        except UnsupportedModelError as error:
            refused = error.report.issues
    outside = own.facts.get("outside", {})
    return Route(
        writer.name, profile, nodes, dict(lowered), tuple(own.allowed), tuple(refused), outside
    )
