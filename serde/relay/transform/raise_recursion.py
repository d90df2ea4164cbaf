"""Functions that call themselves last, as loops.

What is looked for is a let-bound or global function of the shape ::

    fn (params) { if (cond(params)) { itself(new(params)) } else { result(params) } }

with the branches in either order, lets around any part, and any choice among new values by an
``if``. It is TVM's ``while_loop`` and the decomposition of ``serde.loop``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from serde.core.records import dataclass
from serde.errors import RelayError
from serde.relay.ir import Any, IRModule, OpDef, call, infer_function, is_call
from serde.relay.ir.bodies import all_nodes, map_bodies, substitute
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from serde.relay.ir.types import SequenceType, TensorType, accepts
from serde.relay.ir.visit import (
    add_reached,
    children,
    free_vars,
    kinds,
    post_order,
    rewrite,
    rewrite_function,
)
from serde.relay.transform.base import Pass
from serde.relay.transform.fold_shape import shape_value
from serde.relay.transform.inline_calls import ToGraphNormalForm
from serde.relay.transform.loop_to_scan import as_scan
from serde.relay.transform.purity import is_unrepeatable

__all__ = ["RaiseRecursion"]

_COUNT = TensorType((), "int64")


class RaiseRecursion(Pass):
    """Replace functions that call themselves last by ``serde.loop`` or ``serde.scan``.

    A parameter that never changes and a variable from around the function become captures; one
    that is counted up to a bound gives the loop its limit; one that grows by a row in each call
    becomes a stacked result; one that nothing depends on goes. A loop that only walks along
    tensors of its own length is a scan. The types of the module must be known; a function that
    is not of the shape stays as it is.
    """

    name: ClassVar[str] = "RaiseRecursion"

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Raise let-bound functions, inner ones first, then global ones."""
        functions: dict[GlobalVar, Function] = {}
        changed = False
        for variable, function in mod.functions.items():
            raised = _raise_lets(map_bodies(function, _raise_lets))
            functions[variable] = _raise_global(variable, raised)
            changed |= functions[variable] is not function
        return (mod.with_functions(functions), True) if changed else (mod, False)


def _raise_lets(function: Function) -> Function:
    if Let not in kinds(function):
        return function
    return rewrite_function(function, lambda _node, new: _without_recursion(new))


def _without_recursion(node: Expr) -> Expr:
    """Return what stands for a let that binds a recursive function; any other node as it is."""
    called = node.op if isinstance(node, Call) else None
    if isinstance(node, Call) and isinstance(called, Let) and called.body is called.var:
        inner = Call(called.var, node.args, span=node.span)
        inner.type = node.type
        raised = _without_recursion(Let(called.var, called.value, inner, called.span))
        return node if isinstance(raised, Let) else raised
    if not isinstance(node, Let) or not isinstance(node.value, Function):
        return node
    # First, as it looks at the function alone, and few of many are recursive.
    found = _parse_recursion(node.value, node.var)
    if found is None:
        return node
    nodes = post_order(node.body)
    calls = [each for each in nodes if isinstance(each, Call) and each.op is node.var]
    if not calls or any(node.var in _values(each) for each in nodes):
        return node
    memo: dict[Expr, Expr] = {}
    for each in calls:
        arguments = [rewrite(argument, lambda _old, new: new, memo) for argument in each.args]
        loop = _loop(found, arguments)
        if loop is None or loop.type is None or each.type is None:
            return node
        if not accepts(each.type, loop.type):
            return node
        memo[each] = loop
    return rewrite(node.body, lambda _old, new: new, memo)


def _raise_global(variable: GlobalVar, function: Function) -> Function:
    if GlobalVar not in kinds(function):
        return function
    used = (node.op for node in post_order(function.body) if isinstance(node, Call))
    own = next((u for u in used if _is_self(u, variable)), None)
    found = None if own is None else _parse_recursion(function, own)
    body = None if found is None else _loop(found, function.params)
    if body is None or body.type is None or function.body.type is None:
        return function
    if not accepts(function.body.type, body.type):
        return function
    return function.evolve(body=body)


def _is_self(node: Expr, own: Expr) -> bool:
    """Whether `node` refers to a function; one object of a global variable is like another."""
    if isinstance(node, GlobalVar) and isinstance(own, GlobalVar):
        return node.name_hint == own.name_hint
    return node is own


def _values(node: Expr) -> tuple[Expr, ...]:
    """Return the children of a node but for what it calls."""
    return node.args if isinstance(node, Call) else children(node)


@dataclass(frozen=True)
class _Recursion:
    """A function of the shape, taken apart.

    Attributes:
        params: Its parameters.
        lets: The lets around its ``if``.
        going: What must hold for it to call itself.
        again: The branch that calls it.
        leaves: The calls in that branch.
        result: The other branch.
    """

    params: tuple[Var, ...]
    lets: tuple[Let, ...]
    going: Expr
    again: Expr
    leaves: tuple[Call, ...]
    result: Expr

    def new(self, index: int) -> list[Expr]:
        """Return what a parameter becomes, in each call."""
        return [leaf.args[index] for leaf in self.leaves]

    def reached(self, roots: Iterable[Expr], seen: set[Expr] | None = None) -> set[Expr]:
        """Return the nodes below `roots`, the values of the lets around the ``if`` included."""
        seen = set() if seen is None else seen
        add_reached(seen, roots, {let.var: let.value for let in self.lets})
        return seen

    def within_lets(self, value: Expr) -> Expr:
        """Return `value` inside those lets around the ``if`` that it needs."""
        needed = self.reached([value])
        for let in reversed(self.lets):
            if let.var in needed:
                value = Let(let.var, let.value, value, let.span)
        return value


def _parse_recursion(function: Function, own: Expr) -> _Recursion | None:
    """Return `function`, whose name inside is `own`, taken apart; None if it has another shape."""
    function = ToGraphNormalForm().transform(function)
    lets, choice = _peel_lets(function.body)
    if not isinstance(choice, If):
        return None
    leaves = _tail_calls(choice.true_branch, own)
    again, result, going = choice.true_branch, choice.false_branch, choice.cond
    if leaves is None:
        leaves = _tail_calls(choice.false_branch, own)
        again, result = result, again
        going = _negate(choice.cond)
    if leaves is None or any(len(leaf.args) != len(function.params) for leaf in leaves):
        return None
    tails = set(leaves)
    for node in all_nodes(function.body):
        if any(_is_self(value, own) for value in _values(node)):
            return None
        if isinstance(node, Call) and _is_self(node.op, own) and node not in tails:
            return None
    outside = [variable for variable in free_vars(function) if variable is not own]
    held = (TensorType, SequenceType)
    if not all(isinstance(each.type, held) for each in (*function.params, *outside)):
        return None
    found = _Recursion(function.params, lets, going, again, leaves, result)
    twice = found.reached([going]) & found.reached([again, result])
    if any(isinstance(node, Call) and is_unrepeatable(node) for node in twice):
        return None
    return found


def _peel_lets(body: Expr) -> tuple[tuple[Let, ...], Expr]:
    lets = []
    while isinstance(body, Let):
        lets.append(body)
        body = body.body
    return tuple(lets), body


def _negate(cond: Expr) -> Expr:
    """Return the opposite of a condition; comparisons of integers turn round."""
    opposite = {"greater_equal": "less", "greater": "less_equal", "less": "greater_equal",
                "less_equal": "greater"}  # fmt: skip
    if isinstance(cond, Call) and isinstance(cond.op, OpDef):
        if cond.op.name == "logical_not":
            return cond.args[0]
        if cond.op.name in opposite and _is_integer(cond.args[0]) and _is_integer(cond.args[1]):
            return call(opposite[cond.op.name], *cond.args, span=cond.span)
    return call("logical_not", cond)


def _is_integer(node: Expr) -> bool:
    return isinstance(node.type, TensorType) and node.type.dtype.startswith(("int", "uint"))


def _tail_calls(branch: Expr, own: Expr) -> tuple[Call, ...] | None:
    """Return the calls of `own` that a branch ends with, or None if it ends in another way."""
    found: dict[Call, None] = {}
    pending = [branch]
    while pending:
        _, end = _peel_lets(pending.pop())
        if isinstance(end, If):
            pending += [end.true_branch, end.false_branch]
        elif isinstance(end, Call) and _is_self(end.op, own):
            found[end] = None
        else:
            return None
    return tuple(found)


@dataclass(frozen=True)
class _Roles:
    """What the parameters of a recursion are to the loop, by index.

    Attributes:
        fixed: Never change.
        limit: What bounds the loop, in terms of the start, or None.
        number: Counted from 0 with the iterations and not part of the result, or None.
        going: What must hold besides the limit, in parts.
        stacks: For one that grows by a row, the row and whether it goes in front.
        states: Carried from iteration to iteration.
        checked: Those whose new values `going` needs.
    """

    fixed: frozenset[int]
    limit: Expr | None
    number: int | None
    going: Expr | None
    stacks: Mapping[int, tuple[Expr, bool]]
    states: tuple[int, ...]
    checked: frozenset[int]


def _loop(found: _Recursion, starts: Sequence[Expr]) -> Expr | None:
    """Return the value of a call of the recursion with `starts`, as a loop; None if it cannot."""
    try:
        return _build_loop(found, starts, _roles(found, starts))
    except RelayError:
        return None


def _roles(found: _Recursion, starts: Sequence[Expr]) -> _Roles:
    """Tell which parameters count, stay fixed, are stacks or are states."""
    indices = range(len(found.params))
    fixed = frozenset(
        index for index in indices if all(n is found.params[index] for n in found.new(index))
    )
    limit, counter, going = _limit(found, fixed, starts)
    in_result = found.reached([found.result])
    counters = [
        index
        for index in indices
        if _is_zero(starts[index])
        and found.params[index] not in in_result
        and all(_is_next(new, found.params[index]) for new in found.new(index))
    ]
    number = counter if counter in counters else next(iter(counters), None)
    parts = [] if going is None else [going]
    checking = found.reached(parts)
    checked = frozenset(i for i in indices if i not in fixed and found.params[i] in checking)
    stacks = _stacks(found, [i for i in indices if i not in fixed and i not in checked])
    needed = [found.params[i] in in_result and i not in stacks for i in indices]
    pending = [i for i in indices if needed[i] or i in checked]
    seen = found.reached([*(row for row, _ in stacks.values()), *_choices(found)])
    pending += [i for i in indices if found.params[i] in seen]
    states = {i for i in indices if needed[i] or found.params[i] in seen}
    done: set[int] = set()
    while pending:
        index = pending.pop()
        if index in done:
            continue
        done.add(index)
        found.reached(found.new(index), seen)
        reached = [i for i in indices if i not in done and found.params[i] in seen]
        pending += reached
        states.update(i for i in indices if found.params[i] in seen)
    states -= {*fixed, *stacks} | ({number} if number is not None else set())
    return _Roles(fixed, limit, number, going, stacks, tuple(sorted(states)), checked)


def _choices(found: _Recursion) -> list[Expr]:
    """Return what decides between the calls of the branch, and the lets around them."""
    parts: list[Expr] = []
    pending = [found.again]
    while pending:
        lets, end = _peel_lets(pending.pop())
        parts += [let.value for let in lets]
        if isinstance(end, If):
            parts.append(end.cond)
            pending += [end.true_branch, end.false_branch]
    return parts


def _is_zero(start: Expr) -> bool:
    return isinstance(start, Constant) and start.type == _COUNT and not start.data.any()


def _limit(
    found: _Recursion, fixed: frozenset[int], starts: Sequence[Expr]
) -> tuple[Expr | None, int | None, Expr | None]:
    """Return the number of iterations that a counter allows, its index, and what else must hold."""
    parts = _conjuncts(found.going)
    for place, part in enumerate(parts):
        bound = _read_comparison(found, part, fixed)
        if bound is None:
            continue
        index, stop, inclusive = bound
        values = {param: starts[i] for i, param in enumerate(found.params) if i in fixed}
        limit = _distance(substitute(stop, values), starts[index], inclusive)
        rest: Expr | None = None
        for other in (*parts[:place], *parts[place + 1 :]):
            rest = other if rest is None else call("logical_and", rest, other)
        return limit, index, rest
    return None, None, found.going


def _conjuncts(going: Expr) -> list[Expr]:
    parts: list[Expr] = []
    pending = [going]
    while pending:
        node = pending.pop()
        scalar = all(arg.type == TensorType((), "bool") for arg in children(node))
        if scalar and is_call(node, "logical_and"):
            pending.extend(reversed(node.args))
        else:
            parts.append(node)
    return parts


def _read_comparison(
    found: _Recursion, part: Expr, fixed: frozenset[int]
) -> tuple[int, Expr, bool] | None:
    """Return which parameter is counted up by one, to what, and whether that is included."""
    if not isinstance(part, Call):
        return None
    if is_call(part, "less", "less_equal"):
        counted, stop = part.args
    elif is_call(part, "greater", "greater_equal"):
        stop, counted = part.args
    else:
        return None
    if counted not in found.params or not isinstance(counted, Var):
        return None
    if counted.type not in (_COUNT, TensorType((), "int32")) or stop.type != counted.type:
        return None
    index = found.params.index(counted)
    below = post_order(stop)
    moving = {param for i, param in enumerate(found.params) if i not in fixed}
    moving |= {let.var for let in found.lets}
    if any(node in moving or isinstance(node, (Let, Function)) for node in below):
        return None
    if any(isinstance(node, Call) and not isinstance(node.op, OpDef) for node in below):
        return None
    if not all(_is_next(new, counted) for new in found.new(index)):
        return None
    return index, stop, is_call(part, "less_equal", "greater_equal")


def _is_next(node: Expr, counted: Var) -> bool:
    if not is_call(node, "add") or counted not in node.args:
        return False
    step = node.args[1] if node.args[0] is counted else node.args[0]
    return isinstance(step, Constant) and step.type == counted.type and int(step.data) == 1


def _distance(stop: Expr, start: Expr, inclusive: bool) -> Expr:
    """Return how many numbers there are from `start` to `stop`; below 1 for none."""
    offset = int(start.data) - inclusive if isinstance(start, Constant) else None
    if offset is not None and isinstance(stop, Constant):
        return const(int(stop.data) - offset, "int64")
    wide = stop if stop.type == _COUNT else call("cast", stop, dtype="int64")
    if offset is not None:
        return call("subtract", wide, const(offset, "int64")) if offset else wide
    first = start if start.type == _COUNT else call("cast", start, dtype="int64")
    count = call("subtract", wide, first)
    return call("add", count, const(1, "int64")) if inclusive else count


def _stacks(found: _Recursion, candidates: Sequence[int]) -> dict[int, tuple[Expr, bool]]:
    """Return the parameters that only grow by a row along axis 0, with the row."""
    if len(found.leaves) != 1 or isinstance(_peel_lets(found.again)[1], If):
        return {}
    rows = {index: _row(found.params[index], found.new(index)[0]) for index in candidates}
    stacks = {index: row for index, row in rows.items() if row is not None}
    while True:
        others = [i for i in range(len(found.params)) if i not in stacks]
        roots = [found.going, *_choices(found), *(row for row, _ in stacks.values())]
        read = found.reached([*roots, *(found.new(index)[0] for index in others)])
        kept = {i: row for i, row in stacks.items() if found.params[i] not in read}
        if len(kept) == len(stacks):
            return kept
        stacks = kept


def _row(param: Var, new: Expr) -> tuple[Expr, bool] | None:
    """Return what is appended to a parameter, and whether it goes in front."""
    if not is_call(new, "concatenate") or new.attrs["axis"] != 0:
        return None
    joined = new.args[0]
    if not isinstance(joined, Tuple) or len(joined.fields) != 2 or param not in joined.fields:
        return None
    front = joined.fields[1] is param
    added = joined.fields[0] if front else joined.fields[1]
    if not is_call(added, "expand_dims"):
        return None
    if added.attrs["axis"] != 0 or added.attrs["num_newaxis"] != 1:
        return None
    row = added.args[0]
    if not isinstance(row.type, TensorType) or any(isinstance(d, Any) for d in row.type.shape):
        return None
    return row, front


def _build_loop(found: _Recursion, starts: Sequence[Expr], roles: _Roles) -> Expr:
    """Return the ``serde.loop`` that does what the recursion does."""
    body, captured = _body(found, starts, roles)
    going = None
    if roles.going is not None:
        values = dict(zip(found.params, starts, strict=True))
        going = substitute(found.within_lets(roles.going), values)
        if isinstance(going, Constant) and bool(going.data):
            going = None
    state = tuple(starts[index] for index in roles.states)
    loop = call("serde.loop", roles.limit, going, state, tuple(captured), body=body)
    loop = as_scan(loop) or loop
    fields: list[Expr] = [
        TupleGetItem(loop, index) for index in range(len(state) + len(roles.stacks))
    ]
    finals: dict[Var, Expr] = {found.params[i]: starts[i] for i in roles.fixed}
    finals |= {found.params[i]: each for i, each in zip(roles.states, fields, strict=False)}
    for (index, (_, front)), stack in zip(roles.stacks.items(), fields[len(state) :], strict=True):
        finals[found.params[index]] = _concatenate_rows(starts[index], stack, front)
    result = substitute(found.within_lets(found.result), finals)
    whole = isinstance(result, Tuple) and len(result.fields) == len(fields)
    if whole and all(a is b for a, b in zip(children(result), fields, strict=True)):
        return loop
    return result


def _concatenate_rows(start: Expr, stack: Expr, front: bool) -> Expr:
    """Return a parameter that grew from `start` by the rows of `stack`."""
    if front:
        stack = call("reverse", stack, axis=0)
    if _is_empty(start):
        return stack
    return call("concatenate", [stack, start] if front else [start, stack], axis=0)


def _is_empty(start: Expr) -> bool:
    """Whether a tensor is known to have no rows."""
    if is_call(start, "dyn.zeros"):
        shape = shape_value(start.args[0])
        return shape is not None and shape[0] == 0
    return isinstance(start.type, TensorType) and start.type.shape[0] == 0


def _body(found: _Recursion, starts: Sequence[Expr], roles: _Roles) -> tuple[Function, list[Expr]]:
    """Return the body of the loop, and what its captures are around it."""
    number = Var("i", _COUNT)
    states = {i: _fresh(found.params[i]) for i in roles.states}
    inside: dict[Var, Expr] = {found.params[i]: variable for i, variable in states.items()}
    if roles.number is not None:
        inside[found.params[roles.number]] = number
    around: dict[Var, Expr] = {}
    kept: dict[Var, Expr] = {}
    for index in sorted(roles.fixed):
        _capture(found.params[index], starts[index], kept, around)
    roots = [found.again, found.going, *(let.value for let in found.lets)]
    for variable in free_vars(*roots):
        if variable not in found.params and isinstance(variable.type, TensorType):
            _capture(variable, variable, kept, around)
    wanted = [*roles.states, *(i for i in sorted(roles.checked) if i not in states)]
    following = _following(found, roles, wanted)
    count = len(wanted) + len(roles.stacks)
    lets, value = _peel_lets(substitute(found.within_lets(following), {**inside, **kept}))
    fields = _fields(value, count)
    new: dict[Var, Expr] = {found.params[i]: each for i, each in zip(wanted, fields, strict=False)}
    going: Expr = const(True, "bool")
    if roles.going is not None:
        going = substitute(found.within_lets(roles.going), {**kept, **new})
    yielded = [*fields[: len(roles.states)], *fields[len(wanted) :]]
    result: Expr = Tuple([going, *yielded])
    for let in reversed(lets):
        result = Let(let.var, let.value, result, let.span)
    unbound = set(free_vars(result))
    used = {variable: outer for variable, outer in around.items() if variable in unbound}
    function = infer_function(Function([number, *states.values(), *used], result))
    return Function(function.params, function.body), list(used.values())


def _following(found: _Recursion, roles: _Roles, wanted: Sequence[int]) -> Expr:
    """Return the branch with a tuple of what is wanted in place of each call."""
    rows = [row for row, _ in roles.stacks.values()]
    memo: dict[Expr, Expr] = {
        leaf: Tuple([*(leaf.args[index] for index in wanted), *rows]) for leaf in found.leaves
    }
    if found.again in memo:
        return memo[found.again]
    stack = [found.again]
    while stack:
        node = stack[-1]
        below = [node.body] if isinstance(node, Let) else list(children(node))[1:]
        waiting = [each for each in below if each not in memo]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if isinstance(node, Let):
            memo[node] = Let(node.var, node.value, memo[node.body], node.span)
        elif isinstance(node, If):
            left, right = memo[node.true_branch], memo[node.false_branch]
            memo[node] = If(node.cond, left, right, node.span)
    return memo[found.again]


def _fields(value: Expr, count: int) -> list[Expr]:
    if isinstance(value, Tuple):
        return list(value.fields)
    infer_function(Function(free_vars(value), value))
    return [TupleGetItem(value, index) for index in range(count)]


def _fresh(variable: Var) -> Var:
    return Var(variable.name_hint, variable.type, variable.span)


def _capture(variable: Var, outer: Expr, kept: dict[Var, Expr], around: dict[Var, Expr]) -> None:
    """Note what stands for a variable inside: a constant itself, or a capture of what it is."""
    if isinstance(outer, Constant) and not outer.data.ndim:
        kept[variable] = outer
        return
    inner = Var(variable.name_hint, outer.type, variable.span)
    kept[variable] = inner
    around[inner] = outer
