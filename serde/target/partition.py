"""Partition of a model into regions for a toolchain, and what stays on the host.

The rule for what is not a plain operator on tensors of fixed shapes:

- A conditional, or a loop that an operator of Relay carries, is one unit with all that only it
  needs: it goes into a region if ONNX has it at the operator set and the toolchain takes every
  node of its bodies, and stays on the host otherwise. Then parts of its bodies may be regions.
- Recursion stays likewise, with regions inside its functions. Functions as values and calls of
  other global functions stay on the host, and so does what works on sequences.
- A dimension that is not a number goes into a region like any other, unless the list says
  ``dynamic_shapes = false``; then every node that has one stays on the host.
- A function that is marked Composite or Primitive is never cut.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.bridge.formats import PIVOT, get_bridge
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core import Report, Weight, dataclass, pause_garbage_collection, replace
from serde.errors import OptionError, UnsupportedModelError
from serde.onnx.builder import walk_nodes
from serde.onnx.custom_operators import is_custom, operator_name
from serde.onnx.export_context import MAX_LEVEL
from serde.onnx.exporter import write_lowered
from serde.onnx.judge import LISTED, Gap, Judge, Verdict, lower_part
from serde.onnx.lowering import arrange
from serde.onnx.profile import read_supported
from serde.onnx.schemas import newest_opset
from serde.onnx.versions import DEFAULT_TARGET, LOWEST_TARGET
from serde.relay.ir import Foreign, IRModule, RelayModel, free_vars, rewrite, tensor_type
from serde.relay.ir.bodies import map_bodies
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, TupleGetItem, Var
from serde.relay.ir.foreign import is_foreign
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.integer_widths import narrow_integers
from serde.relay.transform.weight_folding import fold_weights
from serde.target.composites import inline_composite, merge_composites
from serde.target.costs import Candidate, Cost, find_losses
from serde.target.cutting import Cutting, keep
from serde.target.layering import Layering, Tensor, assign_regions
from serde.target.nesting import Inside, enter
from serde.target.units import Unit, UnitGraph, find_units

__all__ = [
    "OPSET_KEY", "Partition", "PlacedNode", "Region", "partition_for_onnx", "partition_model",
]  # fmt: skip

OPSET_KEY: Final = "onnx_opset"
"""Attribute of a region's function, of ``main`` where there is none: the operator set to write."""

COMPILER: Final = "onnx"


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a model that goes to the toolchain.

    Attributes:
        name: Name of its global function.
        calls: Number of Relay's operators in it.
        nodes: Operators of ONNX that are written for it, with their number.
        inputs: Number of tensors that it is handed, weights aside.
        outputs: Number of tensors that it gives.
    """

    name: str
    calls: int
    nodes: Counter[str]
    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """What is not cut, and where it went.

    Attributes:
        op: The operator of Relay, or what it is instead.
        name: Its name in the source.
        calls: Number of Relay's operators in it.
        region: Number of its region; None on the host.
        gaps: Why the toolchain does not take it; empty on the host, too, where only its region
            would have been too small.
        sources: Places of the nodes that it reads, in the order of evaluation.
    """

    op: str
    name: str
    calls: int
    region: int | None
    gaps: tuple[Gap, ...]
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Partition:
    """A model in regions.

    Attributes:
        model: The model: ``main`` calls a global function for each region.
        regions: The regions, in the order of evaluation.
        nodes: All that was placed, in the order of evaluation; what is inside others comes last.
        opset: Version of the operator set that regions are written in.
        toolchain: Name of the list of what is supported; empty where it has none.
    """

    model: RelayModel
    regions: tuple[Region, ...]
    nodes: tuple[PlacedNode, ...]
    opset: int
    toolchain: str = ""

    @property
    def staying(self) -> list[PlacedNode]:
        """What stays on the host."""
        return [node for node in self.nodes if node.region is None]

    @property
    def is_whole(self) -> bool:
        """Whether everything went into regions."""
        return not self.staying

    def wins(self) -> dict[str, int]:
        """Return how many operators of Relay each operator of ONNX would win if it were taken.

        Those are counted of which nothing else is missing; the most come first.
        """
        counts: Counter[str] = Counter()
        for node in self.staying:
            ops = {gap.op for gap in node.gaps} - {""}
            if len(ops) == 1 and all(gap.op for gap in node.gaps):
                counts[next(iter(ops))] += node.calls
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def partition_for_onnx(
    mod: AnyValue,
    params: Mapping[str, AnyValue] | None = None,
    mod_name: str = "default",
    *,
    report: Report | None = None,
    **options: AnyValue,
) -> IRModule:
    """Return a module whose parts that an ONNX toolchain takes are functions of their own.

    As TVM's functions of this kind: regions are global functions with ``Compiler="onnx"``,
    ``global_symbol`` and ``Primitive``, which ``main`` calls, and `params` become constants.

    Args:
        mod: A module or a function.
        params: Values of parameters of ``main`` by name.
        mod_name: Stands in the names of regions: ``tvmgen_<mod_name>_onnx_main_0``.
        report: Filled with notes.
        options: Those of :func:`partition_model`, such as ``opset`` and ``supported``.

    Raises:
        OptionError: An option cannot be used, or `supported` has a mistake.
    """
    report = Report() if report is None else report
    model = as_model(mod, params, report)
    return bind_weights(partition_model(model, mod_name=mod_name, report=report, **options).model)


def as_model(mod: AnyValue, params: Mapping[str, AnyValue] | None, report: Report) -> RelayModel:
    """Return a module or a function with its weights as a model."""
    bridge = get_bridge(PIVOT)
    own = bridge.bind_import({})
    model: RelayModel = bridge.to_relay(bridge.load(mod, params, own), own, report=report)
    return model


@pause_garbage_collection()
def partition_model(
    model: RelayModel,
    *,
    opset: int = DEFAULT_TARGET,
    supported: AnyValue = None,
    min_nodes: int = 1,
    cost: Cost | None = None,
    mod_name: str = "default",
    passes: PrepareOptions | None = None,
    report: Report | None = None,
) -> Partition:
    """Return a model in regions for an ONNX toolchain; its weights stay where they are.

    Args:
        model: The model.
        opset: Version of the operator set that regions are written in.
        supported: What the toolchain takes: see :mod:`serde.onnx.profile`.
        min_nodes: Least number of Relay's operators in a region.
        cost: Returns what a candidate costs on the chip, transfers included, less what it costs
            on the host; see :mod:`serde.target.costs`.
        mod_name: Stands in the names of regions.
        passes: What is done to the model before.
        report: Filled with notes.

    Raises:
        OptionError: An option cannot be used, or `supported` has a mistake.
    """
    report = Report() if report is None else report
    if type(opset) is not int or not LOWEST_TARGET <= opset <= newest_opset():
        raise OptionError(f"opset {opset}: expected {LOWEST_TARGET} to {newest_opset()}")
    if type(min_nodes) is not int or min_nodes < 1:
        raise OptionError(f"min_nodes: expected a number from 1 on, found {min_nodes!r}")
    if not isinstance(mod_name, str) or not _MOD_NAME.fullmatch(mod_name):
        raise OptionError(f"mod_name: expected letters, digits and _, found {mod_name!r}"[:200])
    rules = read_supported(supported)
    rules.require_opset(opset)
    model = prepare(model, passes or PrepareOptions(), report=report)
    if not rules.int64:
        model = narrow_integers(model, report)
    judge = Judge(rules, opset, model.params)
    if rules.composites or any(map(is_custom, rules.operators or ())):
        model = model.evolve(mod=InferType().run(model.mod)[0])
        model = merge_composites(model, rules, judge, report)
    model = arrange(model, opset, keep_functions=True, takes=judge.takes)
    model = fold_weights(model, report=report, share=False)
    model = model.evolve(mod=InferType().run(model.mod)[0])
    judge = Judge(rules, opset, model.params)
    names = _region_names(model, mod_name)
    return _Partitioner(model, _Choices(judge, opset, min_nodes, cost, names, rules.name)).run()


@dataclass(frozen=True, slots=True)
class _Choices:
    """What is asked of a partition; see :func:`partition_model`."""

    judge: Judge
    opset: int
    min_nodes: int
    cost: Cost | None
    names: Iterator[str]
    toolchain: str


class _Partitioner:
    """Partitions one model, or a part of one so many levels inside."""

    def __init__(self, model: RelayModel, choices: _Choices, level: int = 0) -> None:
        self._model = model
        self._choices = choices
        self._level = level
        self._opset = choices.opset
        self._judge = choices.judge
        self._graph = find_units(model.main, self._fuses, self._judge.takes_kept)
        self._verdicts = [self._judge_unit(unit) for unit in self._graph.units]

    def run(self) -> Partition:
        """Make regions until each, as it is written, is taken by the toolchain."""
        while True:
            cutter = Cutting(self._model, self._graph, self._assign())
            refused: dict[int, Gap] = {}
            parts: list[tuple[RelayModel, Counter[str]]] = []
            for number in range(len(cutter.members)):
                part, nodes, gaps = self._write(cutter, number)
                if gaps:
                    refused |= self._find_refused(cutter, number)
                parts.append((part, nodes))
            if not refused:
                return self._finish(cutter, parts)
            for unit, gap in refused.items():
                self._verdicts[unit] = Verdict(self._verdicts[unit].nodes, (gap,))

    def _fuses(self, root: Call, operands: tuple[Expr, ...]) -> bool:
        return not self._judge.judge(root, operands).gaps

    def _judge_unit(self, unit: Unit) -> Verdict:
        if not unit.may_leave:
            if is_foreign(unit.root):
                return Verdict((), (self._judge.unlisted(Foreign.of(unit.root).written_name),))
            return Verdict((), (Gap("", "stays on the host"),))
        return self._judge.judge(unit.root, unit.operands)

    def _assign(self) -> list[int | None]:
        """Return the region of each unit."""
        inside: list[bool] = []
        for unit, verdict in zip(self._graph.units, self._verdicts, strict=True):
            here = not verdict.gaps
            if here and not verdict.nodes:
                # What is written as nothing goes with what it passes on.
                source = self._graph.producer(unit.operands[0]) if unit.operands else None
                here = source is not None and inside[source.number]
            inside.append(here)
        sizes = list(map(_count, self._graph.units))
        while True:
            layering = _layering(self._graph, inside)
            regions = assign_regions(layering, sizes, self._choices.min_nodes)
            if self._choices.cost is None:
                return regions
            lost = find_losses(layering, regions, self._cost)
            if not lost:
                return regions
            inside = [here and unit not in lost for unit, here in enumerate(inside)]

    def _cost(self, units: set[int]) -> float:
        """Return what units cost in one region, as the user's function says."""
        numbers = [0 if each.number in units else None for each in self._graph.units]
        cutting = Cutting(self._model, self._graph, numbers)
        candidate = Candidate(
            tuple(node for unit in sorted(units) for node in self._verdicts[unit].nodes),
            tuple(call for unit in cutting.members[0] for call in unit.inner),
            tuple(map(tensor_type, cutting.fed(0))),
            tuple(map(tensor_type, cutting.outputs[0])),
        )
        try:
            found = float(self._choices.cost(candidate))  # type: ignore[misc]
        except Exception as error:
            raise OptionError(f"cost: {type(error).__name__}: {error}") from error
        if math.isnan(found):
            raise OptionError("cost: expected a number, found nan")
        return found

    def _write(
        self, cutter: Cutting, number: int, *, numbered: bool = False
    ) -> tuple[RelayModel, Counter[str], list[tuple[str, Gap]]]:
        """Return a region, the operators that are written for it, and nodes that may not be."""
        part = cutter.part(number, f"{COMPILER}_{number}", numbered=numbered)
        part = lower_part(part, self._opset, self._judge.takes)
        try:
            native = write_lowered(part, self._opset, Report(), fallback=LISTED)
        except UnsupportedModelError as error:
            issues = error.report.issues
            return part, Counter(), [(issue.node, Gap("", issue.reason)) for issue in issues]
        gaps = [(node.name, gap) for node, gap in self._judge.find_gaps(native)]
        return part, Counter(map(operator_name, walk_nodes(native.proto.graph.node))), gaps

    def _find_refused(self, cutter: Cutting, number: int) -> dict[int, Gap]:
        """Return the units that make a region one that cannot be written, all if it is not seen.

        The region is written once more, every node under the number of its unit.
        """
        named = self._write(cutter, number, numbered=True)[2]
        found: dict[int, Gap] = {}
        members = {unit.number for unit in cutter.members[number]}
        for name, gap in named:
            match = _NUMBERED.match(name)
            if match is not None and int(match[1]) in members:
                found[int(match[1])] = gap
        if found:
            return found
        reason = "; ".join(sorted({gap.reason for _, gap in named})) or "the region is refused"
        return dict.fromkeys(members, Gap("", reason))

    def _finish(
        self, cutter: Cutting, parts: Sequence[tuple[RelayModel, Counter[str]]]
    ) -> Partition:
        names = list(itertools.islice(self._choices.names, len(parts)))
        regions = [
            Region(
                names[number],
                sum(map(_count, cutter.members[number])),
                nodes,
                len(cutter.fed(number)),
                len(cutter.outputs[number]),
            )
            for number, (_part, nodes) in enumerate(parts)
        ]
        nodes = [self._place(unit, cutter.groups[unit.number]) for unit in self._graph.units]
        inside: dict[Expr, Inside] = {}

        def partition_inside(model: RelayModel, is_open: bool) -> RelayModel | None:
            judge = self._judge if is_open else self._judge.of_weights(model.params)
            choices = replace(self._choices, judge=judge)
            found = _Partitioner(model, choices, self._level + 1).run()
            if not found.regions:
                return None
            before, first = len(nodes), len(regions)
            for each in found.nodes:
                region = None if each.region is None else each.region + first
                sources = tuple(source + before for source in each.sources)
                nodes.append(replace(each, region=region, sources=sources))
            regions.extend(found.regions)
            return found.model

        for unit in self._graph.units if self._level < MAX_LEVEL else ():
            if cutter.groups[unit.number] is None:
                inside[unit.root] = enter(unit, self._model, partition_inside)
        model = _assemble(cutter, [part for part, _ in parts], names, self._opset, inside)
        return Partition(model, tuple(regions), tuple(nodes), self._opset, self._choices.toolchain)

    def _place(self, unit: Unit, region: int | None) -> PlacedNode:
        before = (self._graph.producer(leaf) for leaf in unit.operands)
        sources = dict.fromkeys(each.number for each in before if each is not None)
        verdict = self._verdicts[unit.number]
        gaps = verdict.gaps
        if region is None and not gaps and not verdict.nodes:
            gaps = (Gap("", "is written as nothing, and what it passes on is not in a region"),)
        name = unit.root.span.source_name if unit.root.span is not None else ""
        return PlacedNode(unit.name, name, _count(unit), region, gaps, tuple(sources))


def _count(unit: Unit) -> int:
    """Return the number of Relay's operators in a unit, a whole function or conditional as one."""
    return max(len(unit.inner), 1)


_MOD_NAME: Final = re.compile("[A-Za-z0-9_]{1,60}")
_NUMBERED: Final = re.compile(r"unit([0-9]+)(?![0-9])")


def _region_names(model: RelayModel, mod_name: str) -> Iterator[str]:
    """Yield names of the regions' functions, none of which a function has already."""
    taken = {variable.name_hint for variable in model.mod.functions}
    names = (f"tvmgen_{mod_name}_{COMPILER}_main_{number}" for number in itertools.count())
    return (name for name in names if name not in taken)


def _layering(graph: UnitGraph, inside: list[bool]) -> Layering:
    """Return units and the tensors between them as numbers."""
    tensors: list[Tensor] = []
    numbers: dict[Expr, int] = {}
    reads: list[list[int]] = []
    gives: list[list[int]] = [[] for _ in graph.units]

    def number_of(leaf: Expr) -> int:
        if leaf not in numbers:
            unit = graph.producer(leaf)
            numbers[leaf] = len(tensors)
            tensors.append(Tensor(None if unit is None else unit.number))
            if unit is not None:
                gives[unit.number].append(numbers[leaf])
        return numbers[leaf]

    for unit in graph.units:
        own = [number_of(leaf) for leaf in unit.operands if not isinstance(leaf, Constant)]
        own = [number for number in own if tensors[number].producer != unit.number]
        for number in own:
            tensors[number].consumers.append(unit.number)
        reads.append(own)
    for leaf in graph.results:
        if not isinstance(leaf, Constant):
            tensors[number_of(leaf)].is_result = True
    return Layering(inside, reads, gives, tensors)


def _assemble(
    cutting: Cutting, parts: Sequence[RelayModel], names: list[str], opset: int,
    inside: Mapping[Expr, Inside],
) -> RelayModel:  # fmt: skip
    """Return the model in which ``main`` calls the regions, `inside` what they became too."""
    model = cutting.model
    weights = dict(model.params)
    variables = {each.name_hint: each for each in model.main.params}
    functions: dict[GlobalVar, Function] = {}
    memo: dict[Expr, Expr] = {}
    for part in [part for _, parts_inside in inside.values() for part in parts_inside]:
        functions |= {v: f for v, f in part.mod.functions.items() if v.name_hint != "main"}
        for param in part.main.params:
            if param.name_hint in part.params:
                memo[param] = _weight_variable(param, part, weights, variables)

    def replace_inside(node: Expr, new: Expr) -> Expr:
        found = inside[node][0] if node in inside else node
        if found is not node:
            return rewrite(found, inline_composite, memo)
        return inline_composite(node, new)

    for number, part in enumerate(parts):
        function = _region_function(names[number], part, opset)
        variable = GlobalVar(names[number], function.type)
        functions[variable] = function
        by_name = dict(zip(part.meta.inputs, cutting.fed(number), strict=True))
        args: list[Expr] = []
        for param in function.params:
            if param.name_hint in by_name:
                args.append(rewrite(by_name[param.name_hint], replace_inside, memo))
            else:
                args.append(_weight_variable(param, part, weights, variables))
        call = Call(variable, args)
        call.type = function.body.type
        outputs = list(cutting.outputs[number])
        for index, leaf in enumerate(outputs):
            memo[leaf] = call if len(outputs) == 1 else TupleGetItem(call, index)
    main = cutting.graph.function
    body = rewrite(main.body, replace_inside, memo)
    used = {each.name_hint for each in free_vars(body)}
    params = [each for name, each in variables.items() if name not in weights or name in used]
    # Without a region, nothing else tells for what the model was partitioned.
    attrs = main.attrs if functions else {**main.attrs, OPSET_KEY: opset}
    new = Function(params, body, main.ret_type, attrs=attrs, span=main.span)
    new = map_bodies(new, lambda each: each.evolve(body=rewrite(each.body, inline_composite)))
    others = {v: f for v, f in model.mod.functions.items() if v.name_hint != "main"}
    entry = model.mod.get_global_var("main")
    mod = model.mod.with_functions({entry: new, **others, **functions})
    used &= weights.keys()
    return model.evolve(mod=mod, params={name: weights[name] for name in variables if name in used})


def _region_function(name: str, part: RelayModel, opset: int) -> Function:
    attrs = {
        "Primitive": 1,
        "Inline": 1,
        "Compiler": COMPILER,
        "global_symbol": name,
        OPSET_KEY: opset,
    }
    main = part.main
    return Function(main.params, main.body, main.body.type, attrs=attrs)


def _weight_variable(
    param: Var, part: RelayModel, weights: dict[str, Weight], variables: dict[str, Var]
) -> Var:
    """Return the parameter of ``main`` for a weight of a region, a new one for a new weight."""
    weight = part.params[param.name_hint]
    name = param.name_hint
    while name in variables and weights.get(name) is not weight:
        name = f"{name}_"
    if name not in variables:
        weights[name] = weight
        variables[name] = Var(name, param.type, param.span)
    return variables[name]


def bind_weights(model: RelayModel) -> IRModule:
    """Return the module of a partitioned model with its weights as constants."""
    main = model.main
    values: dict[Expr, Expr] = {
        param: Constant(model.params[param.name_hint].array())
        for param in main.params
        if param.name_hint in model.params
    }
    if not values:
        return model.mod
    known = {variable.name_hint: function for variable, function in model.mod.functions.items()}
    functions: dict[GlobalVar, Function] = {}

    def replace(_node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar):
            return new
        function = known[new.op.name_hint]
        if function.attrs.get("Compiler") != COMPILER:
            return new
        variable, inner, call = _bind_call(function, new)
        functions[variable] = known[variable.name_hint] = inner
        return call

    body = rewrite(main.body, replace, dict(values))
    params = [param for param in main.params if param not in values]
    known["main"] = Function(params, body, main.ret_type, attrs=main.attrs, span=main.span)
    named = {variable.name_hint: variable for variable in (*model.mod.functions, *functions)}
    return model.mod.with_functions({named[name]: function for name, function in known.items()})


def _bind_call(function: Function, call: Call) -> tuple[GlobalVar, Function, Call]:
    """Return a region whose arguments that are constants are its own, and the call of it."""
    pairs = list(zip(function.params, call.args, strict=True))
    bound: dict[Expr, Expr] = {param: arg for param, arg in pairs if isinstance(arg, Constant)}
    params = [param for param in function.params if param not in bound]
    inner = function.evolve(params=params, body=rewrite(function.body, keep, dict(bound)))
    variable = GlobalVar(str(getattr(call.op, "name_hint", "")), inner.type)
    new = Call(variable, [arg for param, arg in pairs if param not in bound], span=call.span)
    new.type = call.type
    return variable, inner, new
