"""What differs between two models, both read as Relay."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any as AnyValue

import numpy as np

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import PIVOT, source_bridge
from serde.bridge.options import bind_options, option_names, refuse_options
from serde.bridge.summary import TensorSummary
from serde.conversion.locations import Locations
from serde.conversion.signature import takes_options
from serde.core import Array, Report, Weight, asdict, dataclass, field
from serde.errors import OptionError
from serde.relay.ir import Call, Function, IRModule, OpDef, RelayModel, TupleType, Var, post_order
from serde.relay.ir.compare import first_difference

__all__ = ["DiffSide", "ModelDiff", "PortDiff", "WeightDiff", "diff", "diff_sides"]


@dataclass(frozen=True, slots=True)
class PortDiff:
    """An input or output that differs; a side is None where the model does not have it."""

    kind: str
    name: str
    left: TensorSummary | None
    right: TensorSummary | None


@dataclass(frozen=True, slots=True)
class WeightDiff:
    """A weight that differs.

    Attributes:
        name: Its name on the left; on the right, where the left does not have it.
        renamed: Its name on the right where its bytes are the same under another name.
        shapes: Shape on the left and on the right; None where a side does not have it.
        dtypes: dtype on either side; None where a side does not have it.
        max_abs: Largest absolute difference of two elements, infinite where a NaN or infinity
            meets something else; None where the shapes differ or a side is missing.
        elements: Number of elements that differ, likewise.
    """

    name: str
    renamed: str | None = None
    shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    dtypes: tuple[str | None, str | None] = (None, None)
    max_abs: float | None = None
    elements: int | None = None


@dataclass(frozen=True)
class ModelDiff:
    """What differs between two models; empty where nothing does.

    Attributes:
        formats: Format of either.
        versions: Version of the format, or of what wrote it, of either.
        ports: Inputs and outputs that differ.
        ordered: Whether the inputs and outputs of equal names are in the same order.
        operators: Operators whose count differs, with the count in either: those of the format
            if both have the same, else those of Relay.
        operator_set: Name of the format that the operators are of, the pivot or another.
        graph: Where the graphs first differ and how, as Relay; None if they do not. Names of
            values and weights do not count.
        weights: Weights that differ, renamed ones among them.
        same_weights: Number of weights that are equal in name, shape, dtype and bytes; None
            where weights were not compared.
    """

    formats: tuple[str, str]
    versions: tuple[str, str]
    ports: tuple[PortDiff, ...] = ()
    ordered: bool = True
    operators: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    operator_set: str = PIVOT
    graph: str | None = None
    weights: tuple[WeightDiff, ...] = ()
    same_weights: int | None = None

    @property
    def equal(self) -> bool:
        """Whether the models compute the same by the same names.

        Their formats and versions do not count, nor does a version's own spelling of an operator.
        """
        return not self.ports and self.ordered and self.graph is None and not self.weights

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return not self.equal

    def _repr_html_(self) -> str:
        """Return what differs for a notebook."""
        from serde.core.markup import escaped, figure, table

        ports = [(p.kind, p.name, str(p.left), str(p.right)) for p in self.ports]
        counts = [(name, left, right) for name, (left, right) in self.operators.items()]
        weights = [
            (w.name, w.renamed or "", "" if w.max_abs is None else f"{w.max_abs:.2e}")
            for w in self.weights
        ]
        return figure(
            "the models are equal" if self.equal else "the models differ",
            "" if self.graph is None else f"<p>graph: {escaped(self.graph)}</p>",
            table(("", "name", "left", "right"), ports),
            table((f"operator ({self.operator_set})", "left", "right"), counts, right={1, 2}),
            table(("weight that differs", "renamed", "max abs"), weights, right={2}),
        )

    def as_dict(self) -> dict[str, AnyValue]:
        """Return all of it as values that JSON can hold."""
        return {"equal": self.equal, **asdict(self)}


@takes_options(
    reads="", locations=Locations({"left": "left_format", "right": "right_format"}, shared=True)
)
def diff(
    left: AnyValue,
    right: AnyValue,
    *,
    left_format: str | None = None,
    right_format: str | None = None,
    weights: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> ModelDiff:
    """Return what differs between two models of any formats.

    Both are read as Relay, as their formats say it, before any pass. Weights are compared in
    bounded pieces.

    Args:
        left: A path or URL, several of these, bytes or a live object of a framework.
        right: The other model, likewise.
        left_format: Name of the format of `left`; recognised by content if left out.
        right_format: Name of the format of `right`; likewise.
        weights: Whether the values of weights are compared; otherwise only the graphs are, in
            which their shapes and dtypes count.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages.
        options: Options of the formats, such as ``input_shapes``; each model gets those that
            its format has.

    Raises:
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted; all of them are listed.

    Example:
        >>> [weight.name for weight in serde.diff("net.onnx", "other.onnx").weights]
        ['w']
    """
    report = Report() if report is None else report
    bridges = source_bridge(left, left_format), source_bridge(right, right_format)
    bound = _bind(bridges, options)
    sides = [
        _read_side(bridge, source, own, report)
        for bridge, source, own in zip(bridges, (left, right), bound, strict=True)
    ]
    with report.stage("compare"):
        return diff_sides(*sides, weights=weights)


def diff_sides(first: DiffSide, second: DiffSide, *, weights: bool = True) -> ModelDiff:
    """Return what differs between two models that have been read.

    Args:
        first: The model on the left.
        second: The model on the right.
        weights: Whether the values of weights are compared.
    """
    same_format = first.format == second.format
    counts = [
        side.native_operators if same_format else side.relay_operators for side in (first, second)
    ]
    ports = _diff_ports(first.model, second.model)
    graph = first_difference(_canonicalize(first.model), _canonicalize(second.model))
    found, same = ((), None) if not weights else _diff_weights(first.model, second.model)
    return ModelDiff(
        formats=(first.format, second.format), versions=(first.version, second.version),
        ports=tuple(ports), ordered=_same_order(first.model, second.model),
        operators=_diff_counts(*counts), operator_set=first.format if same_format else PIVOT,
        graph=graph, weights=tuple(found), same_weights=same,
    )  # fmt: skip


@dataclass(frozen=True)
class DiffSide:
    """A model that is compared.

    Attributes:
        format: Name of its format.
        version: Version of the format, or of what wrote it.
        native_operators: Count of each operator, as the format calls them.
        model: The model as Relay.
    """

    format: str
    version: str
    native_operators: Counter[str]
    model: RelayModel

    @property
    def relay_operators(self) -> Counter[str]:
        """Count of each operator of Relay."""
        nodes = post_order(*self.model.mod.functions.values())
        calls = (node.op for node in nodes if isinstance(node, Call))
        return Counter(op.name for op in calls if isinstance(op, OpDef))


def _bind(bridges: tuple[AnyBridge, AnyBridge], options: Mapping[str, AnyValue]) -> list[AnyValue]:
    """Return the options of each side; one that neither format has is refused."""
    bound, unknown = [], set(options)
    for bridge in bridges:
        if bridge.import_options is None:
            raise OptionError(f"format {bridge.name} cannot be read")
        own, rest = bind_options(bridge.import_options, options)
        bound.append(own)
        unknown &= set(rest)
    refuse_options(unknown, option_names(*(bridge.import_options for bridge in bridges)))
    return bound


def _read_side(bridge: AnyBridge, source: AnyValue, options: AnyValue, report: Report) -> DiffSide:
    """Load a model and bring it into Relay."""
    with report.stage("load"):
        native = bridge.load(source, None, options)
    operators = Counter(bridge.operators(native))
    report.title, report.nodes = f"{bridge.name} -> relay", operators.total()
    with report.stage(report.title):
        model = bridge.to_relay(native, options, report=report)
    version = bridge.summary(native).version or model.meta.source_version
    return DiffSide(bridge.name, version, operators, model)


def _diff_ports(left: RelayModel, right: RelayModel) -> Iterable[PortDiff]:
    """Yield the inputs and outputs that differ in name, shape or dtype."""
    for kind, read in (("input", _inputs), ("output", _outputs)):
        a, b = read(left), read(right)
        for name in dict.fromkeys((*a, *b)):
            if a.get(name) != b.get(name):
                yield PortDiff(kind, name, a.get(name), b.get(name))


def _inputs(model: RelayModel) -> dict[str, TensorSummary]:
    return {v.name_hint: TensorSummary.of(v.name_hint, v.type) for v in model.inputs()}


def _outputs(model: RelayModel) -> dict[str, TensorSummary]:
    result = model.main.body.type
    types = result.fields if isinstance(result, TupleType) else (result,)
    names = model.meta.outputs or tuple(f"output{i}" for i in range(len(types)))
    return {name: TensorSummary.of(name, type_) for name, type_ in zip(names, types, strict=False)}


def _same_order(left: RelayModel, right: RelayModel) -> bool:
    """Whether the inputs and outputs that both have stand in the same order."""
    for read in (_inputs, _outputs):
        a, b = list(read(left)), list(read(right))
        if [name for name in a if name in b] != [name for name in b if name in a]:
            return False
    return True


def _diff_counts(left: Counter[str], right: Counter[str]) -> dict[str, tuple[int, int]]:
    """Return both counts of each operator of which there are not as many on either side."""
    names = sorted({*left, *right})
    return {name: (left[name], right[name]) for name in names if left[name] != right[name]}


def _canonicalize(model: RelayModel) -> IRModule:
    """Return the module with the weights of ``main`` in the order in which the graph uses them."""
    main = model.main
    given = {param for param in main.params if param.name_hint in model.params}
    used = {v: None for v in post_order(main.body) if isinstance(v, Var) and v in given}
    rest = [param for param in main.params if param in given and param not in used]
    params = [*model.inputs(), *used, *rest]
    function = Function(
        params, main.body, main.ret_type, type_params=main.type_params, attrs=main.attrs
    )
    return model.mod.with_main(function)


def _diff_weights(left: RelayModel, right: RelayModel) -> tuple[list[WeightDiff], int]:
    """Return the weights that differ, and the number of those that do not."""
    a, b = left.params, right.params
    found: list[WeightDiff] = []
    same = 0
    renamed = _match_renamed(
        {name: weight for name, weight in a.items() if name not in b},
        {name: weight for name, weight in b.items() if name not in a},
    )
    for name, weight in a.items():
        other = b.get(name)
        if other is None:
            found.append(_missing_weight(name, weight, None, renamed.get(name)))
            continue
        pair = _compare_weights(name, weight, other)
        same += pair is None
        found += [] if pair is None else [pair]
    taken = set(renamed.values())
    found += [
        _missing_weight(n, None, w, None) for n, w in b.items() if n not in a and n not in taken
    ]
    return found, same


def _missing_weight(
    name: str, left: Weight | None, right: Weight | None, renamed: str | None
) -> WeightDiff:
    """Return the entry of a weight that one side does not have by this name."""
    sides = (left, left if renamed is not None else right)
    shapes = [None if side is None else side.shape for side in sides]
    dtypes = [None if side is None else side.dtype for side in sides]
    return WeightDiff(name, renamed, (shapes[0], shapes[1]), (dtypes[0], dtypes[1]))


def _match_renamed(left: Mapping[str, Weight], right: Mapping[str, Weight]) -> dict[str, str]:
    """Return, by name on the left, the name of the one weight on the right with its bytes."""
    kinds = {_kind(w) for w in left.values()} & {_kind(w) for w in right.values()}
    sides = [_by_bytes(side, kinds) for side in (left, right)]
    return {
        names[0]: sides[1][key][0]
        for key, names in sides[0].items()
        if len(names) == 1 and len(sides[1].get(key, ())) == 1
    }


def _kind(weight: Weight) -> tuple[tuple[int, ...], str]:
    return weight.shape, weight.dtype


def _by_bytes(
    weights: Mapping[str, Weight], kinds: set[tuple[tuple[int, ...], str]]
) -> dict[AnyValue, list[str]]:
    """Return names by shape, dtype and digest of the bytes, of weights of some kinds."""
    found: dict[AnyValue, list[str]] = {}
    for name, weight in weights.items():
        if _kind(weight) not in kinds:
            continue
        digest = blake2b()
        for chunk in weight.chunks():
            digest.update(chunk)
        found.setdefault((*_kind(weight), digest.digest()), []).append(name)
    return found


def _compare_weights(name: str, left: Weight, right: Weight) -> WeightDiff | None:
    """Return how two weights of one name differ; None if they are equal byte by byte."""
    shapes, dtypes = (left.shape, right.shape), (left.dtype, right.dtype)
    if left.shape != right.shape:
        return WeightDiff(name, None, shapes, dtypes)
    largest, count, alike = 0.0, 0, left.dtype == right.dtype
    for start, stop in left.row_ranges():
        a, b = left.rows(start, stop), right.rows(start, stop)
        if alike and a.tobytes() == b.tobytes():
            continue
        worst, differing = _difference(a, b)
        largest, count = max(largest, worst), count + differing
    # Zeros of either sign, and NaNs of any bits, are the same number.
    if alike and not count:
        return None
    return WeightDiff(name, None, shapes, dtypes, largest, count)


def _difference(left: Array, right: Array) -> tuple[float, int]:
    """Return the largest absolute difference, and how many elements differ."""
    whole = {left.dtype.kind, right.dtype.kind} <= set("iub")
    a, b = (side.astype(np.float64) for side in (left, right))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)
    unequal = left != right if whole else ~((a == b) | (np.isnan(a) & np.isnan(b)))
    apart = np.where(np.isnan(apart), math.inf, apart)[unequal]
    if whole:
        # Integers beyond 2**53 may differ and yet be one float64.
        apart = np.maximum(apart, 1.0)
    return float(apart.max(initial=0.0)), int(np.count_nonzero(unequal))
