"""Runs Relay on the operators' NumPy kernels.

Nothing here recurses: calls are frames on a list, and inside a frame nodes
wait on a list of their own, so that neither a long chain of calls nor a deep
recursion of the program meets a limit. A value is dropped after its last use
in its frame; a call in tail position replaces its frame.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import EvaluationError, RelayError, Unsupported
from serde.relay.ir import Constructor, IRModule, Match, OpDef, SymDim, substitute
from serde.relay.ir.bodies import Apply, Blank, Kernel
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.types import SequenceType, TensorType, TupleType, Type
from serde.relay.ir.visit import children, free_vars
from serde.relay.run.arithmetic import Application, Arithmetic
from serde.relay.run.binding import as_value, bind_dims, has_symbols, resolve_dims
from serde.relay.run.values import apply_reference, choose_clause, construct

__all__ = ["apply_kernel", "evaluate", "run", "run_with"]

_NEW, _OPEN, _TAKE, _DONE = range(4)
_REFUSALS = (ValueError, IndexError, ArithmeticError, Unsupported)
"""What kernels raise where operands are none that they take."""


class _Closure:
    """A function and the values of the variables it takes from around it."""

    __slots__ = ("env", "function", "lengths")

    def __init__(
        self, function: Function, env: dict[Var, AnyValue], lengths: Mapping[str, int]
    ) -> None:
        self.function = function
        self.env = env
        self.lengths = lengths


class _Plan:
    """The nodes of one scope, numbered; functions inside it are leaves that take variables.

    Attributes:
        nodes: The nodes; number 0 is the scope's result.
        below: Numbers of the nodes that each node holds on to.
        first: How many of these must be known before the node can go on (an ``If``
            waits for its condition, a ``Let`` for its value).
        uses: How many nodes hold on to each.
        slots: Number of each variable that occurs.
        own: For a function, the let-bound variables that hold the function itself.
        symbolic: Numbers of the calls whose attributes have symbols.
    """

    __slots__ = ("below", "first", "nodes", "own", "slots", "symbolic", "uses")

    def __init__(self, root: Expr) -> None:
        self.nodes: list[Expr] = []
        self.below: list[tuple[int, ...]] = []
        self.first: list[int] = []
        self.own: dict[Expr, list[Var]] = {}
        self.slots: dict[Var, int] = {}
        self.symbolic: set[int] = set()
        self._number(root)
        self.uses = [0] * len(self.nodes)
        self.uses[0] = 1
        for below in self.below:
            for number in below:
                self.uses[number] += 1

    def _number(self, root: Expr) -> None:
        numbers: dict[Expr, int] = {root: 0}
        self.nodes.append(root)
        for node in self.nodes:  # grows while it is walked
            held = self._find_operands(node)
            for child in held:
                if child not in numbers:
                    numbers[child] = len(self.nodes)
                    self.nodes.append(child)
            self.below.append(tuple(numbers[child] for child in held))
            self.first.append(1 if isinstance(node, (If, Let, Match)) else len(held))
            if isinstance(node, Var):
                self.slots[node] = numbers[node]
            elif isinstance(node, Call) and any(map(_is_symbolic, node.attrs.values())):
                self.symbolic.add(numbers[node])

    def _find_operands(self, node: Expr) -> Sequence[Expr]:
        if isinstance(node, Call):
            named = isinstance(node.op, (Op, GlobalVar, Constructor))
            return node.args if named else (*node.args, node.op)
        if isinstance(node, Tuple):
            return node.fields
        if isinstance(node, TupleGetItem):
            return (node.tuple_value,)
        if isinstance(node, Let):
            if isinstance(node.value, Function):
                self.own.setdefault(node.value, []).append(node.var)
            return (node.value, node.body)
        if isinstance(node, If):
            return (node.cond, node.true_branch, node.false_branch)
        if isinstance(node, Function):
            own = self.own.get(node, ())
            return [variable for variable in free_vars(node) if variable not in own]
        if isinstance(node, Match):
            return (node.data, *(clause.rhs for clause in node.clauses))
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return children(node)
        return ()


def _is_symbolic(value: AnyValue) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_symbolic, value))
    return isinstance(value, SymDim)


class _Frame:
    """One scope while it runs."""

    __slots__ = ("lengths", "plan", "root", "stack", "states", "uses", "values")

    def __init__(self, plan: _Plan, env: Mapping[Var, AnyValue], lengths: Mapping[str, int]):
        count = len(plan.nodes)
        self.plan = plan
        self.lengths = lengths
        self.root = 0
        self.stack = [0]
        self.states = bytearray(count)
        self.values: list[AnyValue] = [None] * count
        self.uses = plan.uses.copy()
        for variable, value in env.items():
            number = plan.slots.get(variable)
            if number is not None:
                self.values[number] = value
                self.states[number] = _DONE

    def finish(self, number: int, value: AnyValue) -> None:
        """Note the value of a node on top of the stack, and let go of what it was made from."""
        self.values[number] = value
        self.states[number] = _DONE
        self.stack.pop()

    def bind(self, variable: Var, value: AnyValue) -> None:
        """Give a variable its value, where it occurs."""
        slot = self.plan.slots.get(variable)
        if slot is not None:
            self.values[slot] = value
            self.states[slot] = _DONE

    def release(self, numbers: Sequence[int]) -> None:
        """Drop one use of each; what nobody uses is dropped, with what only it would have used."""
        pending = list(numbers)
        while pending:
            number = pending.pop()
            self.uses[number] -= 1
            if self.uses[number]:
                continue
            self.values[number] = None
            if self.states[number] == _NEW:
                pending.extend(self.plan.below[number])


class _KernelFrame:
    """A kernel that runs functions, while it runs.

    Attributes:
        kernel: The kernel.
        answer: What it asked for last, once that is known.
        lengths: Of the symbols where it is called.
        where: What errors call it.
    """

    __slots__ = ("answer", "kernel", "lengths", "where")

    def __init__(self, kernel: Kernel[AnyValue], lengths: Mapping[str, int], where: str) -> None:
        self.kernel = kernel
        self.answer: AnyValue = None
        self.lengths = lengths
        self.where = where


class _Machine:
    """Runs scopes of one module; plans are made once a function."""

    def __init__(self, mod: IRModule | None, arithmetic: Arithmetic | None = None) -> None:
        self._mod = mod
        self._arithmetic = Arithmetic() if arithmetic is None else arithmetic
        self._plans: dict[Expr, _Plan] = {}
        self._symbolic: dict[Expr, bool] = {}
        self._globals: dict[GlobalVar, _Closure] = {}

    def plan(self, root: Expr) -> _Plan:
        found = self._plans.get(root)
        if found is None:
            found = self._plans[root] = _Plan(root)
        return found

    def start(self, closure: _Closure, args: Sequence[AnyValue]) -> _Frame:
        function = closure.function
        if len(args) != len(function.params):
            raise RelayError(
                f"{function!r}: expected {len(function.params)} arguments, found {len(args)}"
            )
        lengths = closure.lengths
        if function not in self._symbolic:
            self._symbolic[function] = has_symbols(param.type for param in function.params)
        if self._symbolic[function]:
            lengths = {**lengths, **bind_dims(function.params, args)}
        env = {**closure.env, **dict(zip(function.params, args, strict=True))}
        return _Frame(self.plan(function.body), env, lengths)

    def run(self, first: _Frame | _KernelFrame) -> AnyValue:
        """Run a frame, and those it calls, to the value of its result."""
        frames = [first]
        with np.errstate(all="ignore"):
            while True:
                frame = frames[-1]
                called: _Frame | _KernelFrame | None
                value: AnyValue = None
                if isinstance(frame, _KernelFrame):
                    called, value = self._resume(frame)
                else:
                    called = self._advance(frame)
                if called is not None:
                    if isinstance(frame, _Frame) and not frame.stack:
                        frames.pop()
                    frames.append(called)
                    continue
                if isinstance(frame, _Frame):
                    value = frame.values[frame.root]
                frames.pop()
                if not frames:
                    return value
                caller = frames[-1]
                if isinstance(caller, _KernelFrame):
                    caller.answer = value
                else:
                    caller.finish(caller.stack[-1], value)

    def _resume(self, frame: _KernelFrame) -> tuple[_Frame | None, AnyValue]:
        """Run a kernel until it calls a function (its frame) or is done (its result)."""
        while True:
            try:
                asked = frame.kernel.send(frame.answer)
            except StopIteration as done:
                return None, self._arithmetic.result(_as_arrays(done.value))
            except _REFUSALS as error:
                raise EvaluationError(f"{frame.where}: {error}") from error
            closure = _Closure(asked.function, {}, frame.lengths)
            called = self.start(closure, asked.args)
            if isinstance(asked, Apply):
                return called, None
            frame.answer = self._arithmetic.result(_blank(asked, called.lengths))

    def _advance(self, frame: _Frame) -> _Frame | _KernelFrame | None:
        """Run until the frame's result is known (None) or something is called (its frame)."""
        plan, stack, states = frame.plan, frame.stack, frame.states
        while stack:
            number = stack[-1]
            state = states[number]
            if state == _DONE:
                stack.pop()
                continue
            below = plan.below[number]
            if state == _NEW:
                states[number] = _OPEN
                first = below[: plan.first[number]]
                waiting = [child for child in reversed(first) if states[child] != _DONE]
                if waiting:
                    stack.extend(waiting)
                    continue
            node = plan.nodes[number]
            if isinstance(node, (Let, If, Match)):
                self._enter(frame, number, node)
                continue
            if isinstance(node, Call):
                called = self._call(frame, number, node)
                if called is not None:
                    return called
                continue
            frame.finish(number, self._value(frame, node, below))
            frame.release(below)
        return None

    def _enter(self, frame: _Frame, number: int, node: Let | If | Match) -> None:
        """Go on with the body of a let, the chosen branch or clause, or take its value."""
        if frame.states[number] == _TAKE:
            source = frame.values[number]
            frame.finish(number, frame.values[source])
            frame.release((source,))
            return
        below = frame.plan.below[number]
        decided = frame.values[below[0]]
        if isinstance(node, Let):
            target, dropped = below[1], below[:1]
            frame.bind(node.var, decided)
        elif isinstance(node, Match):
            chosen, bound = choose_clause(node, decided)
            target = below[chosen + 1]
            dropped = below[: chosen + 1] + below[chosen + 2 :]
            for variable, value in bound.items():
                frame.bind(variable, value)
        else:
            taken = bool(_scalar(self._arithmetic.result(decided), node))
            target, dropped = (below[1], (below[0], below[2])) if taken else (below[2], below[:2])
        if number == frame.root:
            frame.root = target
            frame.states[number] = _DONE
            frame.stack.pop()
        else:
            frame.states[number] = _TAKE
            frame.values[number] = target
        frame.stack.append(target)
        frame.release(dropped)

    def _call(self, frame: _Frame, number: int, node: Call) -> _Frame | _KernelFrame | None:
        """Run a kernel at once, or enter the frame of a function."""
        below = frame.plan.below[number]
        args = [frame.values[child] for child in below[: len(node.args)]]
        callee = self._callee(frame, node, below)
        if isinstance(callee, OpDef):
            attrs: Mapping[str, AnyValue] = node.attrs
            if number in frame.plan.symbolic:
                attrs = {name: resolve_dims(value, frame.lengths) for name, value in attrs.items()}
            where = "" if node.span is None else f" ({node.span.source_name})"
            try:
                value = self._arithmetic.apply(
                    Application(node, callee, args, attrs, _kernel_value)
                )
            except _REFUSALS as error:
                raise EvaluationError(f"{callee.name}{where}: {error}") from error
            if isinstance(value, Generator):
                frame.release(below)
                return _KernelFrame(value, frame.lengths, f"{callee.name}{where}")
            frame.finish(number, value)
            frame.release(below)
            return None
        if isinstance(callee, Constructor):
            frame.finish(number, construct(callee, args))
            frame.release(below)
            return None
        if not isinstance(callee, _Closure):
            raise RelayError(f"{node!r}: what is called is no function")
        called = self.start(callee, args)
        frame.release(below)
        if number == frame.root:
            frame.stack.clear()
        return called

    def _callee(self, frame: _Frame, node: Call, below: Sequence[int]) -> AnyValue:
        if isinstance(node.op, (OpDef, Constructor)):
            return node.op
        if isinstance(node.op, GlobalVar):
            return self._global(node.op)
        return frame.values[below[-1]]

    def _value(self, frame: _Frame, node: Expr, below: Sequence[int]) -> AnyValue:
        if isinstance(node, Constant):
            return np.asarray(node.data)
        if isinstance(node, Tuple):
            return tuple(frame.values[child] for child in below)
        if isinstance(node, TupleGetItem):
            return frame.values[below[0]][node.index]
        if isinstance(node, Function):
            env = {frame.plan.nodes[child]: frame.values[child] for child in below}
            closure = _Closure(node, env, frame.lengths)  # type: ignore[arg-type]
            closure.env.update(dict.fromkeys(frame.plan.own.get(node, ()), closure))
            return closure
        if isinstance(node, GlobalVar):
            return self._global(node)
        if isinstance(node, (OpDef, Constructor)):
            return node
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return apply_reference(node, [frame.values[child] for child in below])
        raise RelayError(f"{node!r} has no value")

    def _global(self, variable: GlobalVar) -> _Closure:
        found = self._globals.get(variable)
        if found is None:
            if self._mod is None:
                raise RelayError(f"{variable!r} needs a module")
            key: str | GlobalVar = variable
            if variable not in self._mod.functions:
                key = variable.name_hint
            found = self._globals[variable] = _Closure(self._mod[key], {}, {})
        return found


def _scalar(value: AnyValue, node: Expr) -> AnyValue:
    if not isinstance(value, np.ndarray) or value.size != 1:
        raise RelayError(f"{node!r}: a condition must be a scalar")
    return value.reshape(())


def apply_kernel(
    definition: OpDef, args: Sequence[AnyValue], attrs: Mapping[str, AnyValue]
) -> AnyValue:
    """Return what an operator yields for evaluated arguments.

    Args:
        definition: The operator.
        args: An array for each operand; a tuple of arrays for a tuple operand, an empty
            tuple for an optional operand that is absent.
        attrs: All attributes, without symbols.

    Raises:
        EvaluationError: The kernel refuses its operands.
    """
    try:
        value = _kernel_value(definition, args, attrs)
    except _REFUSALS as error:
        raise EvaluationError(f"{definition.name}: {error}") from error
    if isinstance(value, Generator):
        return _Machine(None).run(_KernelFrame(value, {}, definition.name))
    return value


def _kernel_value(
    definition: OpDef, args: Sequence[AnyValue], attrs: Mapping[str, AnyValue]
) -> AnyValue:
    operands = [
        None if operand.optional and isinstance(value, tuple) and not value else value
        for operand, value in zip(definition.operands, args, strict=True)
    ]
    value = definition.kernel(*operands, **attrs)
    return value if isinstance(value, Generator) else _as_arrays(value)


def _as_arrays(value: AnyValue) -> AnyValue:
    """Return a result as an array, a list of arrays for a sequence, or a tuple of both."""
    if isinstance(value, tuple):
        return tuple(map(_as_arrays, value))
    if isinstance(value, list):
        return [np.asarray(item) for item in value]
    return np.asarray(value)


def _blank(asked: Blank, lengths: Mapping[str, int]) -> AnyValue:
    """Return zeros of the types that a function returns."""
    function = asked.function
    result = function.ret_type if function.ret_type is not None else function.body.checked_type
    if isinstance(result, TupleType):
        return tuple(_zeros(field, lengths) for field in result.fields)
    return _zeros(result, lengths)


def _zeros(type_: Type, lengths: Mapping[str, int]) -> AnyValue:
    if isinstance(type_, SequenceType):
        return []
    if not isinstance(type_, TensorType):
        raise RelayError(f"expected a tensor, found {type_!r}")
    known = [substitute(dim, dict(lengths)) for dim in type_.shape]
    return np.zeros([dim if isinstance(dim, int) else 0 for dim in known], numpy_dtype(type_.dtype))


def run_with(
    arithmetic: Arithmetic,
    function: Function,
    arguments: Sequence[AnyValue],
    *,
    mod: IRModule | None = None,
) -> AnyValue:
    """Call `function` with another arithmetic than the one that its types declare.

    Args:
        arithmetic: What kernels are given, and what their results become.
        function: A function without free variables.
        arguments: A value for each parameter, not compared with the declared types; a
            :class:`~serde.core.weights.Weight` is read where it is used and not kept.
        mod: Where the global functions it calls are.

    Raises:
        RelayError: As for :func:`run`.
    """
    machine = _Machine(mod, arithmetic)
    result = machine.run(machine.start(_Closure(function, {}, {}), arguments))
    return _require_tensors(arithmetic.result(result))


def run(
    function: Function,
    arguments: Sequence[AnyValue],
    *,
    env: Mapping[Var, AnyValue] | None = None,
    mod: IRModule | None = None,
) -> AnyValue:
    """Call `function` and return its result: an array, or a nested tuple of arrays.

    A sequence is a list of arrays.

    Args:
        function: A function.
        arguments: An array, or a nested tuple of arrays, for each parameter.
        env: Likewise for each of its free variables.
        mod: Where the global functions it calls are.

    Raises:
        RelayError: An argument does not have the declared type, one symbol would have
            two lengths, or a kernel refuses its operands.
    """
    if len(arguments) != len(function.params):
        names = ", ".join(param.name_hint for param in function.params)
        raise RelayError(
            f"expected {len(function.params)} arguments ({names}), found {len(arguments)}"
        )
    values = [
        as_value(value, param.type, f"argument {param.name_hint}")
        for param, value in zip(function.params, arguments, strict=True)
    ]
    around = _environment(env or {})
    lengths = bind_dims(list(around), list(around.values()))
    machine = _Machine(mod)
    return _require_tensors(machine.run(machine.start(_Closure(function, around, lengths), values)))


def evaluate(
    expr: Expr,
    env: Mapping[Var, AnyValue] | None = None,
    *,
    mod: IRModule | None = None,
    functions: bool = False,
) -> AnyValue:
    """Return the value of `expr`, given those of its free variables.

    Args:
        expr: Any expression but a function.
        env: An array, or a nested tuple of arrays, for each free variable.
        mod: Where the global functions it calls are.
        functions: Whether the value may be a function; it is a callable then.

    Raises:
        RelayError: As for :func:`run`, or a variable has no value.
    """
    values = _environment(env or {})
    machine = _Machine(mod)
    lengths = bind_dims(list(values), list(values.values()))
    found = machine.run(_Frame(machine.plan(expr), values, lengths))
    if functions and isinstance(found, _Closure):
        return partial(_call_closure, machine, found)
    return _require_tensors(found)


def _call_closure(machine: _Machine, closure: _Closure, *args: AnyValue) -> AnyValue:
    values = [
        as_value(value, param.type, f"argument {param.name_hint}")
        for param, value in zip(closure.function.params, args, strict=False)
    ]
    return _require_tensors(machine.run(machine.start(closure, values[: len(args)])))


def _environment(env: Mapping[Var, AnyValue]) -> dict[Var, AnyValue]:
    return {
        variable: as_value(value, variable.type, f"variable {variable.name_hint}")
        for variable, value in env.items()
    }


def _require_tensors(value: AnyValue) -> AnyValue:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, (tuple, list)):
            pending.extend(item)
        elif isinstance(item, (_Closure, Constructor, OpDef)):
            raise RelayError("the result is a function, not a tensor")
    return value
