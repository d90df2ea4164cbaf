"""Calls of functions of a module of Relax: read where they are called, or as recursion."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any as AnyValue, ClassVar, Final

import serde.relay as relay
from serde.core.report import Report
from serde.errors import FormatError, TypeInferenceError, Unsupported
from serde.relax.framework import Framework
from serde.relax.import_context import ImportContext
from serde.relax.import_walk import (
    Closure,
    ImportWalk,
    Values,
    has_hole,
    join_fields,
    split_fields,
    tensor_type,
)
from serde.relax.loops import Loops, Repetition
from serde.relax.model import RelaxModel
from serde.relax.options import RelaxImportOptions
from serde.relax.reflection import (
    attributes_of,
    called_functions,
    handle_of,
    leaves_of,
    name_of,
    plain_value,
)
from serde.relax.tir.calls import legalize, run_function
from serde.relax.tir.known import as_operator
from serde.relay.ir import Any, Call, Constant, Expr, Function, Let, Span, Var, call, const, get
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type
from serde.relay.op.control.body import close
from serde.walk.holes import Hole, Incomplete
from serde.walk.importer import Graph

__all__ = ["FunctionWalk"]

_BEFORE: Final = "give the module as it is before legalisation (relax.transform.LegalizeOps)"


class FunctionWalk(ImportWalk):
    """The walk through calls of functions."""

    def __init__(self, model: RelaxModel, options: RelaxImportOptions, report: Report) -> None:
        super().__init__(model, options, report)
        self._reading: dict[str, Var] = {}
        self._open: set[int] = set()

    def call_function(
        self, callee: AnyValue, args: Sequence[AnyValue], scope: Values, label: str
    ) -> AnyValue:
        """Return what a function gives.

        Raises:
            Unsupported: Relay cannot say it.
        """
        found = self.value(callee, scope, label)
        if isinstance(found, Hole):
            return found
        if isinstance(found, Closure):
            return self._call_closure(found, args, label)
        if not isinstance(found, self.framework.relax.GlobalVar):
            name = found if isinstance(found, str) else name_of(callee)
            raise Unsupported(f"a packed function, which only TVM can run: {name}", hint=_BEFORE)
        name = name_of(found)
        function = self._functions.get(name)
        if name in self._programs:
            return self._call_number(self._programs[name], args, label)
        if function is None:
            raise Unsupported(f"a call of {name}, which is no function of Relax", hint=_BEFORE)
        if name in self._reading:
            return self._call_recursive(self._reading[name], function, args, label)
        outside = Values(source=scope.source, depth=scope.depth)
        repetition = self._loops.find(name)
        if repetition is not None:
            found = self._read_loop(repetition, args, outside, label)
            if found is not None:
                return found
        if name not in self._cycles:
            return self._expand(function, args, outside, {}, label)
        return self._begin_recursion(name, function, args, outside, label)

    def _call_closure(self, closure: Closure, args: Sequence[AnyValue], label: str) -> AnyValue:
        own = handle_of(closure.function)
        if own in self._open:
            hint = "make it a function of the module"
            raise Unsupported("a function inside another that calls itself", hint=hint)
        self._open.add(own)
        try:
            return self._expand(closure.function, args, closure.scope, closure.names, label)
        finally:
            self._open.discard(own)

    def _expand(
        self,
        function: AnyValue,
        args: Sequence[AnyValue],
        scope: Values,
        names: Mapping[int, str],
        label: str,
    ) -> AnyValue:
        """Return the result of a function, read for these arguments."""
        if len(args) != len(function.params):
            raise FormatError(f"{label}: {len(args)} arguments for {len(function.params)}")
        inner = scope.inner(label)
        before = self.lengths.names
        self.lengths.names = dict(names)
        try:
            for param, value in zip(function.params, args, strict=True):
                self.cast(value, self.framework.type_of(param))
                inner.define(handle_of(param), self.note(param, value))
            known = len(self.report.issues)
            found = self.run(Graph([], self.nodes(function.body), [function.body]), inner)[0]
            if len(self.report.issues) > known:
                raise Incomplete
            return found
        finally:
            self.lengths.names = before

    # Functions of TIR.

    def _call_number(self, function: AnyValue, args: Sequence[AnyValue], label: str) -> AnyValue:
        """Return what a function of TIR gives that takes numbers and gives one."""
        kind, params = type(function.body).__name__, function.params
        if kind not in ("Evaluate", "Return") or len(params) != len(args):
            raise Unsupported("a function of TIR that is called as one of Relax", hint=_BEFORE)
        scope = Values(dict(zip(map(handle_of, params), args, strict=True)))
        return self._number(function.body.value, scope, label)

    def _call_tir(self, call: AnyValue, scope: Values, label: str) -> AnyValue:
        """Return what a function of TIR gives, or that by which TVM computes an operator."""
        args = [self.value(each, scope, label) for each in call.args]
        if any(map(has_hole, args)):
            return Hole()
        if name_of(call.op).startswith("relax.call_tir"):
            return self._run_tir(call, args, label, self._programs)
        legal, programs = legalize(self.framework, call)
        rest = [self.value(each, scope, label) for each in legal.args[2:]]
        return self._run_tir(legal, [legal.args[0], args, *rest], label, programs)

    def _run_tir(
        self, call: AnyValue, args: Sequence[AnyValue], label: str, programs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Return what one of some functions of TIR gives, refused if Relay cannot say it.

        It gets the function, a list of tensors, and shapes.
        """
        framework, results = self.framework, self.result_types(call)
        callee, given, *rest = (*args, None, None)[: max(len(args), 2)]
        name = name_of(callee)
        function = programs.get(name)
        if not isinstance(callee, framework.relax.GlobalVar) or function is None:
            raise Unsupported(f"a call of {name}, which is no function of TIR")
        if not isinstance(given, list):
            raise Unsupported(f"arguments of {name} that are no tuple")
        types = leaves_of(framework, framework.type_of(call.args[1]))
        known = as_operator(framework, function, name, types)
        if known is not None:
            return self._expand(known, given, Values(), {}, label)
        context = ImportContext(label, len(results), self.lengths, self, None)
        inplace = attributes_of(framework, call).get("inplace_indices")
        before = self.lengths.names
        try:
            found = run_function(framework, context, function, given, results, rest, inplace)
        except (Unsupported, TypeInferenceError) as error:
            reason = error.reason if isinstance(error, Unsupported) else str(error)
            raise Unsupported(f"{name}, a function of TIR: {reason}", hint=_BEFORE) from error
        finally:
            self.lengths.names = before
        type_ = framework.type_args(call)[0]
        return _regroup(framework, type_, iter(map(self.assembly.fold, found)))

    calls: ClassVar[Mapping[str, AnyValue]] = {
        **ImportWalk.calls,
        "relax.call_tir": _call_tir,
        "relax.call_tir_inplace": _call_tir,
        "relax.call_tir_with_grad": _call_tir,
        "relax.layout_transform": _call_tir,
    }

    # Functions that make turns of a loop.

    def _read_loop(
        self, repetition: Repetition, args: Sequence[AnyValue], scope: Values, label: str
    ) -> AnyValue:
        """Return what a function gives that makes turns, None where their number is not known."""
        if any(map(has_hole, args)):
            return Hole()
        given = [self.as_tensor(each) for each in args]
        limit = repetition.count
        if repetition.asks:
            level = given.pop(0)
            if not isinstance(level, Constant):
                return None
            limit = 2 ** int(level.data) if repetition.bounded else None
        carried = repetition.carried
        turn = self._functions[repetition.turn]
        states = self._states(turn, given[:carried])
        found = self._expand(turn, [*states, *given[carried:]], scope, {}, f"{label}/turn")
        if has_hole(found):
            return Hole()
        yielded = self.leaves([found])
        going = yielded[1] if repetition.asks else const(True, "bool")
        rows = [_only_row(each) for each in yielded[carried:]]
        body, captures = close(
            [Var("turn", TensorType((), "int64")), *states], [going, *yielded[:carried], *rows]
        )
        bound = None if limit is None else const(limit, "int64")
        made = call("serde.loop", bound, None, tuple(given[:carried]), captures, body=body)
        made.span = Span(label)
        fields = split_fields(made)
        return fields if len(fields) > 1 else fields[0]

    def _states(self, turn: AnyValue, given: Sequence[Expr]) -> list[Var]:
        """Return variables for what goes round; lengths that stay are those of the beginning."""
        result = self.framework.result_type(turn)
        several = isinstance(result, self.framework.TupleType)
        later = list(result.fields) if several else [result]
        states = []
        for param, after, first in zip(turn.params, later, given, strict=False):
            before = self.framework.type_of(param)
            stays = self._same_shape(before, after)
            type_ = first.checked_type if stays else self._loose_type(before)
            states.append(Var(name_of(param), type_))
        return states

    def _same_shape(self, one: AnyValue, other: AnyValue) -> bool:
        before, after = map(self.framework.lengths, (one, other))
        if before is None or after is None or len(before) != len(after):
            return False
        pairs = zip(before, after, strict=True)
        return all(self.framework.are_equal(*pair) for pair in pairs)

    # Functions that call themselves.

    def _begin_recursion(
        self, name: str, function: AnyValue, args: Sequence[AnyValue], scope: Values, label: str
    ) -> AnyValue:
        """Return a call of a function that calls itself, which is bound where it is called."""
        params = [self._parameter(each) for each in function.params]
        result = self._loose_type(self.framework.result_type(function))
        variable = Var(name, FuncType([each.checked_type for each in params], result))
        self._reading[name] = variable
        try:
            found = self._expand(function, params, scope, {}, f"{label}/{name}")
        finally:
            del self._reading[name]
        if has_hole(found):
            return Hole()
        body = Function(params, join_fields(self.leaves([found])), result)
        return self._call_recursive(Let(variable, body, variable), function, args, label)

    def _call_recursive(
        self, callee: Expr, function: AnyValue, args: Sequence[AnyValue], label: str
    ) -> AnyValue:
        type_ = self.framework.result_type(function)
        made = Call(callee, [self.as_tensor(each) for each in args], span=Span(label))
        made.type = self._loose_type(type_)
        return _regroup(self.framework, type_, iter(split_fields(made)))

    def _parameter(self, variable: AnyValue) -> Var:
        """Return a variable for a parameter of a function that calls itself."""
        type_ = self.framework.type_of(variable)
        if not isinstance(type_, (self.framework.TensorType, self.framework.PrimType)):
            raise Unsupported(f"a function that calls itself and takes {type_!s:.100}, no tensor")
        return Var(name_of(variable), self._loose_type(type_))

    def _loose_type(self, type_: AnyValue) -> Type:
        """Return a type of Relax, in which lengths that are not fixed are anonymous."""
        leaves: list[Type] = []
        for each in leaves_of(self.framework, type_):
            if isinstance(each, self.framework.PrimType):
                leaves.append(tensor_type((), str(each.dtype)))
                continue
            tensor = isinstance(each, self.framework.TensorType)
            if not tensor or each.ndim < 0 or not each.dtype:
                raise Unsupported(f"a function that calls itself, with {each!s:.100}")
            lengths = self.framework.lengths(each)
            lengths = [None] * each.ndim if lengths is None else lengths
            known = [plain_value(self.framework, length) for length in lengths]
            shape = [dim if isinstance(dim, int) else Any() for dim in known]
            leaves.append(tensor_type(shape, str(each.dtype)))
        return leaves[0] if len(leaves) == 1 else TupleType(leaves)

    @cached_property
    def _loops(self) -> Loops:
        return Loops(self.framework, self._functions)

    @cached_property
    def _functions(self) -> Mapping[str, AnyValue]:
        return {
            name_of(variable): each
            for variable, each in self.model.module.functions.items()
            if isinstance(each, self.framework.relax.Function)
        }

    @cached_property
    def _programs(self) -> Mapping[str, AnyValue]:
        functions = self.model.module.functions.items()
        kind = self.framework.tir.PrimFunc
        return {name_of(variable): each for variable, each in functions if isinstance(each, kind)}

    @cached_property
    def _cycles(self) -> frozenset[str]:
        """The functions that call themselves, maybe through others."""
        callees = {
            name: frozenset(called_functions(self.framework, function))
            for name, function in self._functions.items()
        }
        return frozenset(name for name in callees if name in _reachable(callees, name))


def _only_row(rows: Expr) -> Expr:
    """Return the one row of a stack."""
    if isinstance(rows, Call) and rows.op == get("expand_dims"):
        attributes = get("expand_dims").bind(rows.attrs)
        if attributes["axis"] == 0 and attributes["num_newaxis"] == 1:
            return rows.args[0]
    return relay.squeeze(rows, axis=[0])


def _reachable(callees: Mapping[str, Collection[str]], start: str) -> set[str]:
    """Return what is called from a function, directly or not."""
    found: set[str] = set()
    pending = list(callees[start])
    while pending:
        each = pending.pop()
        if each in callees and each not in found:
            found.add(each)
            pending.extend(callees[each])
    return found


def _regroup(framework: Framework, type_: AnyValue, leaves: Iterator[Expr]) -> AnyValue:
    """Return leaves in lists as a type of Relax has tuples."""
    if isinstance(type_, framework.TupleType):
        return [_regroup(framework, each, leaves) for each in type_.fields]
    return next(leaves)
