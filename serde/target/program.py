"""The order in which regions and parts of the host run, and what goes between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from serde.core import Weight, dataclass, field
from serde.errors import RelayError, Unsupported
from serde.relay.ir import IRModule, SymDim, UniqueNames, all_nodes, leaf_names, value_types
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from serde.relay.ir.leaves import as_leaves
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.types import TensorType, TupleType
from serde.target.cutting import Cutting
from serde.target.nesting import outline
from serde.target.units import UnitGraph, find_units

__all__ = ["Port", "Program", "Schedule", "Step", "compiled_functions", "schedule"]


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that goes in or out: its name and its type."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to run.

    Attributes:
        kind: Whether it is a region or a part of the host.
        name: Name of the region or part.
        inputs: Names of the values that it takes, weights aside.
        outputs: Names of the values that it gives.
    """

    kind: Literal["host", "region"]
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, in order.

    Attributes:
        inputs: What the whole takes, tuples field by field.
        results: Names of the values that it gives.
        outputs: What the results are called.
        steps: The steps.
    """

    inputs: tuple[Port, ...]
    results: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Schedule:
    """A program with what its steps run.

    Attributes:
        program: The program.
        hosts: The parts of the host as models of their own.
        calls: The call of each region, by the name of its step, or that the host calls it by.
        others: Global functions that parts of the host call.
    """

    program: Program
    hosts: dict[str, RelayModel] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    others: dict[GlobalVar, Function] = field(default_factory=dict)


def compiled_functions(mod: IRModule, compiler: str) -> dict[str, Function]:
    """Return the global functions that are for a compiler, by name."""
    return {
        variable.name_hint: function
        for variable, function in mod.functions.items()
        if isinstance(function, Function) and function.attrs.get("Compiler") == compiler
    }


def schedule(model: RelayModel, compiler: str) -> Schedule:
    """Return the order in which ``main`` of a partitioned model runs.

    Args:
        model: A typed model whose ``main`` calls regions.
        compiler: Name of the compiler whose regions are meant.

    Raises:
        Unsupported: A region is called inside another function.
        RelayError: A value of ``main`` is no tensor.
    """
    regions = compiled_functions(model.mod, compiler)
    graph = find_units(model.main, lambda _root, _operands: False)
    _check_calls(model, regions)
    return _Scheduler(model, graph, regions).run()


def _called_region(node: Expr, regions: Mapping[str, Function]) -> str:
    """Return the region that an expression calls; empty where it calls none."""
    if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op.name_hint in regions:
        return node.op.name_hint
    return ""


def _check_calls(model: RelayModel, regions: Mapping[str, Function]) -> None:
    roots = [f for f in model.mod.functions.values() if f is not model.main]
    for node in all_nodes(*(f for f in roots if isinstance(f, Function))):
        name = _called_region(node, regions)
        if name:
            raise Unsupported(f"region {name} is called inside another function")


class _Scheduler:
    """Orders the units of one ``main``: parts of the host, and regions between them."""

    def __init__(
        self, model: RelayModel, graph: UnitGraph, regions: Mapping[str, Function]
    ) -> None:
        self._model = model
        self._graph = graph
        self._regions = regions
        self._inputs = model.inputs()
        self._names: dict[Expr, str] = {}
        self._fields: dict[Expr, list[str]] = {}
        self._taken = UniqueNames()
        # Steps share names with the functions of the module in what is stored.
        self._steps = {variable.name_hint for variable in model.mod.functions}
        self._counts: Counter[str] = Counter()

    def run(self) -> Schedule:
        """Return the schedule."""
        inputs = self._name_inputs()
        kinds, groups = self._group()
        cutting = Cutting(self._model, self._graph, groups)
        others = {
            variable: function
            for variable, function in self._model.mod.functions.items()
            if variable.name_hint != "main" and variable.name_hint not in self._regions
        }
        found = Schedule(Program((), (), (), ()), others=others)
        steps = []
        for number, region in enumerate(kinds):
            if region:
                steps.append(self._region_step(cutting, number, region, found))
            else:
                steps.append(self._host_step(cutting, number, found))
        constant = self._constant_step(found)
        if constant is not None:
            steps.append(constant)
        results = tuple(self._names[leaf] for leaf in self._graph.results)
        outputs = _output_names(self._model, len(results))
        found.program = Program(tuple(inputs), results, outputs, tuple(steps))
        return found

    def _name_inputs(self) -> list[Port]:
        """Name the inputs, of tuples the fields, and return them."""
        ports = []
        for param in self._inputs:
            type_ = param.checked_type
            types = value_types(type_)
            for name, each in zip(leaf_names(param.name_hint, type_), types, strict=True):
                ports.append(Port(self._taken.reserve(name), _tensor(each, name)))
            names = [port.name for port in ports[len(ports) - len(types) :]]
            if isinstance(type_, TupleType):
                self._fields[param] = names
            else:
                self._names[param] = names[0]
        return ports

    def _name_step(self, base: str) -> str:
        """Return a name for a step that no function and no other step has."""
        count = self._counts[base]
        while f"{base}_{count}" in self._steps:
            count += 1
        self._counts[base] = count + 1
        self._steps.add(f"{base}_{count}")
        return f"{base}_{count}"

    def _group(self) -> tuple[list[str], list[int | None]]:
        """Return the region of each group, empty for one of the host, and each unit's group."""
        turns: list[int] = []  # Twice the number of regions before, plus one for a region.
        members: dict[int, str] = {}
        count = 0
        for unit in self._graph.units:
            before = [self._graph.producer(leaf) for leaf in unit.operands]
            latest = max((turns[each.number] for each in before if each is not None), default=0)
            region = _called_region(unit.root, self._regions)
            if region:
                count += 1
                turns.append(2 * count - 1)
            else:
                turns.append(latest + latest % 2)
            members[turns[-1]] = region
        dense = {turn: index for index, turn in enumerate(sorted(members))}
        return [members[turn] for turn in sorted(members)], [dense[turn] for turn in turns]

    def _region_step(self, cutting: Cutting, number: int, region: str, found: Schedule) -> Step:
        call = cutting.members[number][0].root
        if not isinstance(call, Call):
            raise RelayError(f"{call!r} is no call of a region")
        name = self._name_step(region) if region in found.calls else region
        found.calls[name] = call
        inputs = [
            self._value(leaf)
            for arg in call.args
            for leaf in as_leaves([arg])
            if not isinstance(leaf, Constant) and not cutting.is_weight(leaf)
        ]
        count = len(value_types(call.type))
        outputs = [self._taken.reserve(each) for each in output_names(name, count)]
        if isinstance(call.type, TupleType):
            for leaf in cutting.outputs[number]:
                if isinstance(leaf, TupleGetItem):
                    self._names[leaf] = outputs[leaf.index]
        else:
            self._names[call] = outputs[0]
        return Step("region", name, tuple(inputs), tuple(outputs))

    def _host_step(self, cutting: Cutting, number: int, found: Schedule) -> Step:
        name = self._name_step("host")
        part = cutting.part(number, name, others=found.others)
        shown = self._find_hidden(part)
        if shown:
            cutting.inputs[number].update(dict.fromkeys(shown))
            part = cutting.part(number, name, others=found.others)
        found.hosts[name] = outline(part, lambda call: self._take_region(call, found))
        inputs = tuple(self._value(leaf) for leaf in cutting.fed(number))
        outputs = tuple(self._taken.reserve(each) for each in part.meta.outputs)
        self._names.update(zip(cutting.outputs[number], outputs, strict=True))
        return Step("host", name, inputs, outputs)

    def _take_region(self, call: Call, found: Schedule) -> str:
        """Note the call of a region inside a branch or a loop, and return the region's name."""
        region = _called_region(call, self._regions)
        if not region:
            return ""
        name = self._name_step(region) if region in found.calls else region
        found.calls[name] = call
        return name

    def _find_hidden(self, part: RelayModel) -> list[Var]:
        """Return the inputs of the model that show lengths which a part needs and cannot see."""
        types = (value_types(param.type) for param in part.main.params)
        seen = {name for each in types for type_ in each for name in _plain_symbols(type_)}
        calls = [node for node in all_nodes(part.main.body) if isinstance(node, Call)]
        told = [value for call in calls for value in call.attrs.values()]
        regions = (call for call in calls if _called_region(call, self._regions))
        results = (type_ for call in regions for type_ in value_types(call.type))
        told += [each.shape for each in results if isinstance(each, TensorType)]
        needed = _symbols(tuple(told)) - seen
        found = []
        for param in self._inputs if needed else ():
            shows = _plain_symbols(param.type) & needed
            if shows:
                needed -= shows
                found.append(param)
        return found

    def _constant_step(self, found: Schedule) -> Step | None:
        """Return the step that gives results which nothing computes: constants and weights."""
        weights = self._model.params
        leaves = [
            leaf
            for leaf in dict.fromkeys(self._graph.results)
            if isinstance(leaf, Constant) or (isinstance(leaf, Var) and leaf.name_hint in weights)
        ]
        if not leaves:
            return None
        name = self._name_step("host")
        params = [leaf for leaf in leaves if isinstance(leaf, Var)]
        body: Expr = leaves[0] if len(leaves) == 1 else Tuple(leaves)
        names = output_names(name, len(leaves))
        mod = IRModule({"main": Function(params, body)}, checked=True)
        own: dict[str, Weight] = {each.name_hint: weights[each.name_hint] for each in params}
        found.hosts[name] = RelayModel(mod, own, ModelMeta((), tuple(names)))
        outputs = tuple(map(self._taken.reserve, names))
        self._names.update(zip(leaves, outputs, strict=True))
        return Step("host", name, (), outputs)

    def _value(self, leaf: Expr) -> str:
        """Return the name of a value that a step takes."""
        if leaf not in self._names and isinstance(leaf, TupleGetItem):
            fields = self._fields.get(leaf.tuple_value)
            if fields is not None:
                self._names[leaf] = fields[leaf.index]
        if leaf not in self._names:
            raise RelayError(f"{leaf!r} is computed nowhere")
        return self._names[leaf]


def output_names(name: str, count: int) -> list[str]:
    """Return the names of what a step gives."""
    short = name.removeprefix("tvmgen_default_").replace("_main_", "_")
    return [f"{short}_o{index}" for index in range(count)]


def _plain_symbols(type_: object) -> set[str]:
    """Return the symbols that axes of a tensor are long."""
    dims = type_.shape if isinstance(type_, TensorType) else ()
    return {dim.name for dim in dims if isinstance(dim, SymDim) and dim.name is not None}


def _symbols(value: object) -> set[str]:
    """Return the symbols in an attribute."""
    if isinstance(value, tuple):
        return {name for item in value for name in _symbols(item)}
    return value.symbols() if isinstance(value, SymDim) else set()


def _tensor(type_: object, name: str) -> TensorType:
    if not isinstance(type_, TensorType):
        raise Unsupported(f"input {name}: expected a tensor, found {type_!r}")
    return type_


def _output_names(model: RelayModel, count: int) -> tuple[str, ...]:
    names = model.meta.outputs
    return names if len(names) == count else tuple(f"output{index}" for index in range(count))
