"""Annotated regions as functions of the module, for external compilers to run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any as AnyValue, ClassVar

from serde.core.records import dataclass, field
from serde.errors import RelayError
from serde.relay.ir import IRModule, UniqueNames, call, infer_module, map_bodies, set_type
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from serde.relay.ir.visit import rewrite_function
from serde.relay.op.contrib.register import get_region_optimizer
from serde.relay.transform.base import Pass
from serde.relay.tvm.dataflow_pattern.graph import inputs_of, rebuild_with
from serde.relay.tvm.passes.annotated_regions import (
    DEFAULT_TARGET,
    END,
    AnnotatedRegion,
    AnnotatedRegionSet,
    compiler_of,
    is_begin,
    is_end,
)

__all__ = ["PartitionGraph"]


@dataclass(frozen=True)
class PartitionGraph(Pass):
    """Move each annotated region into a function of the module, and call it there.

    The function has the attributes ``Compiler``, the target, ``global_symbol``, its name, and
    ``Primitive`` and ``Inline``, both 1. Its name is made of ``tvmgen``, the name of the module,
    the target, the name of the function that it comes from, and the number of the region;
    characters that are neither letters nor digits become ``_``. A region with several outputs
    yields a tuple; tuples that leave a region do so field by field. Regions of ``default`` stay
    where they are. Every function that an external compiler runs is named anew, those that were
    there before too.

    Args:
        mod_name: The name of the module.
        bind_constants: Whether constants that a region takes become part of its function.

    Raises:
        RelayError: A region depends on itself, over nodes that are not in it.
    """

    name: ClassVar[str] = "PartitionGraph"

    mod_name: str = "default"
    bind_constants: bool = True

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Make the functions, and find the types of everything."""
        names = _Names(mod, "_".join(filter(None, ("tvmgen", self.mod_name))))
        functions: dict[GlobalVar, Function] = {}
        for variable, function in mod.functions.items():
            plain = _flatten_tuples(_remove_defaults(function))
            partitioner = _Partitioner(plain, variable.name_hint, names, self.bind_constants)
            functions[variable] = partitioner.run()
            functions.update(partitioner.functions)
        functions = names.rename(functions)
        same = functions.keys() == mod.functions.keys()
        if same and all(functions[v] is mod.functions[v] for v in functions):
            return mod, False
        return infer_module(mod.with_functions(functions, checked=False))[0], True


class _Names:
    """Names of functions that external compilers run."""

    def __init__(self, mod: IRModule, prefix: str) -> None:
        self._prefix = prefix
        self._taken = UniqueNames(variable.name_hint for variable in mod.functions)
        self._outside = [v for v, each in mod.functions.items() if "Compiler" in each.attrs]

    def choose(self, name: str) -> str:
        """Return the full name of a function, one that is not taken."""
        unique = self._taken.reserve(name)
        while self._mangle(unique) in self._taken:
            unique = self._taken.reserve(name)
        self._taken.take(self._mangle(unique))
        return self._mangle(unique)

    def _mangle(self, name: str) -> str:
        return re.sub("[^A-Za-z0-9]", "_", f"{self._prefix}_{name}")

    def rename(self, functions: dict[GlobalVar, Function]) -> dict[GlobalVar, Function]:
        """Return functions with new names for those that were there before."""
        if not self._outside:
            return functions
        renamed = {old: GlobalVar(self._mangle(old.name_hint), old.type) for old in self._outside}
        result: dict[GlobalVar, Function] = {}

        def rename_calls(function: Function) -> Function:
            return rewrite_function(function, lambda _node, new: _rename_call(new, renamed))

        for variable, function in functions.items():
            new = rename_calls(map_bodies(function, rename_calls))
            if variable in renamed:
                new = new.with_attr("global_symbol", renamed[variable].name_hint)
            result[renamed.get(variable, variable)] = new
        return result


def _rename_call(node: Expr, renamed: dict[GlobalVar, GlobalVar]) -> Expr:
    """Return a call of a function under the name it has now."""
    if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op in renamed:
        return _call_by_name(renamed[node.op], node.args, node)
    return node


def _call_by_name(callee: GlobalVar, args: AnyValue, like: Expr) -> Call:
    return set_type(Call(callee, args, span=like.span))


def _remove_defaults(function: Function) -> Function:
    """Return a function without annotations of what no external compiler runs."""

    def replace(_node: Expr, new: Expr) -> Expr:
        annotated = is_begin(new) or is_end(new)
        if annotated and compiler_of(new) == DEFAULT_TARGET and isinstance(new, Call):
            return new.args[0]
        return new

    return rewrite_function(function, replace)


def _flatten_tuples(function: Function) -> Function:
    """Return a function in which tuples leave regions field by field."""

    def replace(_node: Expr, new: Expr) -> Expr:
        if not is_end(new) or not isinstance(new, Call) or not isinstance(new.args[0], Tuple):
            return new
        target = compiler_of(new)
        fields = new.args[0].fields
        return Tuple([call(END, each, compiler=target) for each in fields], new.args[0].span)

    return rewrite_function(function, replace)


def _is_constant(node: Expr) -> bool:
    """Whether a node is a constant, or a tuple of constants alone."""
    fields = node.fields if isinstance(node, Tuple) else (node,)
    return all(isinstance(each, Constant) for each in fields)


@dataclass
class _Interface:
    """What the function of one region takes and yields.

    Attributes:
        inputs: What stands inside for each value from outside, annotations aside.
        params: Its parameters.
        arguments: What they stand for.
        outputs: What stands outside for each node that leaves the region.
    """

    inputs: dict[Expr, Expr] = field(default_factory=dict)
    params: list[Var] = field(default_factory=list)
    arguments: list[Expr] = field(default_factory=list)
    outputs: dict[Expr, Expr] = field(default_factory=dict)


class _Partitioner:
    """Moves the regions of one function out of it.

    Attributes:
        functions: The functions of the regions.
    """

    def __init__(self, function: Function, name: str, names: _Names, bind: bool) -> None:
        self.functions: dict[GlobalVar, Function] = {}
        self._function = function
        self._names = names
        self._bind = bind
        self._regions = AnnotatedRegionSet(function, func_name=name)
        self._interfaces = {region: _Interface() for region in self._regions}
        self._places = {
            begin: index for region in self._regions for index, begin in enumerate(region.args)
        }
        self._done: dict[Expr, Expr] = {}
        self._first: dict[AnnotatedRegion, Expr] = {}

    def run(self) -> Function:
        """Return the function with calls in place of regions."""
        if not len(self._regions):
            return self._function
        stack: list[tuple[Expr, Iterator[Expr]]] = [
            (self._function, self._find_needs(self._function))
        ]
        waiting: set[Expr] = {self._function}
        while stack:
            node, pending = stack[-1]
            child = next((each for each in pending if each not in self._done), None)
            if child is None:
                stack.pop()
                waiting.discard(node)
                self._done[node] = self._replace(node)
            elif child in waiting:
                raise self._describe_cycle(child, node)
            else:
                waiting.add(child)
                stack.append((child, self._find_needs(child)))
        result = self._done[self._function]
        return result if isinstance(result, Function) else self._function

    def _find_needs(self, node: Expr) -> Iterator[Expr]:
        """Return what must be replaced before a node; the first output of a region needs all."""
        if not is_end(node):
            return iter(inputs_of(node))
        region = self._find_region(node)
        others = region.rets if self._first.setdefault(region, node) is node else []
        return iter((*inputs_of(node), *(end.args[0] for end in others)))

    def _describe_cycle(self, inside: Expr, node: Expr) -> RelayError:
        region = self._regions.get_region(inside)
        return RelayError(f"{region!r} depends on itself, over {node!r}")

    def _find_region(self, node: Expr) -> AnnotatedRegion:
        region = self._regions.get_region(node)
        assert region is not None, "an annotation is in a region"
        return region

    def _replace(self, node: Expr) -> Expr:
        if is_begin(node) and isinstance(node, Call):
            return self._enter(node)
        if is_end(node) and isinstance(node, Call):
            region = self._find_region(node)
            interface = self._interfaces[region]
            if not interface.outputs:
                if self._first[region] is not node:
                    raise self._describe_cycle(node, node)
                self._make_function(region, interface)
            return interface.outputs[node.args[0]]
        return rebuild_with(node, self._done)

    def _enter(self, begin: Call) -> Expr:
        """Return what a value is inside the region that it enters."""
        region = self._find_region(begin)
        given = self._done[begin.args[0]]
        if not region.rets:  # Nothing leaves it, so it is no region.
            return given
        origin = begin.args[0]
        while (is_begin(origin) or is_end(origin)) and isinstance(origin, Call):
            origin = origin.args[0]
        interface = self._interfaces[region]
        if origin not in interface.inputs:
            if self._bind and _is_constant(given):
                interface.inputs[origin] = given
            else:
                param = Var(f"{region.target}_{region.id}_i{self._places[begin]}", begin.type)
                interface.params.append(param)
                interface.arguments.append(given)
                interface.inputs[origin] = param
        return interface.inputs[origin]

    def _make_function(self, region: AnnotatedRegion, interface: _Interface) -> None:
        leaving = list(dict.fromkeys(end.args[0] for end in region.rets))
        results = [self._done[node] for node in leaving]
        body = results[0] if len(results) == 1 else Tuple(results)
        function = Function(interface.params, body, body.type)
        name = self._names.choose(f"{region.target}_{region.name}_{region.id}")
        optimizer = get_region_optimizer(region.target)
        if optimizer is not None:
            function = optimizer(infer_module(IRModule.from_expr(function))[0])["main"]
        marks = {"global_symbol": name, "Primitive": 1, "Compiler": region.target, "Inline": 1}
        variable = GlobalVar(name, function.type)
        self.functions[variable] = function.with_attr(marks)
        result = _call_by_name(variable, interface.arguments, body)
        for index, node in enumerate(leaving):
            alone = len(leaving) == 1
            interface.outputs[node] = result if alone else TupleGetItem(result, index)
