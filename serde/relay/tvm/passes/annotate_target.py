"""Annotation of what targets can run: where regions of them begin and end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from serde.core.records import dataclass
from serde.relay.ir import IRModule, OpDef, RefCreate, RefRead, RefWrite, call, infer_module
from serde.relay.ir.expr import Call, Expr, Function, If, Let, Tuple, TupleGetItem, Var, is_absent
from serde.relay.ir.visit import children, post_order, rebuild, rewrite_function
from serde.relay.transform.base import Pass, is_marked
from serde.relay.tvm.passes.annotated_regions import (
    BEGIN,
    DEFAULT_TARGET,
    END,
    compiler_of,
    is_begin,
    is_end,
)

__all__ = ["AnnotateTarget"]


@dataclass(frozen=True, init=False)
class AnnotateTarget(Pass):
    """Put each operator between annotations that name the target that runs it.

    An operator goes to the first target whose attribute ``target.<name>`` of it is a function that
    accepts the call; a composite function to the target that its name begins with; everything
    else to ``default``. What an earlier run gave to a target stays there.

    Args:
        targets: The targets, the preferred one first, or one alone.
        include_non_call_ops: Whether tuples, their fields and calls of variables are annotated
            too, for the target of all that they are made of, or for ``default``.
    """

    name: ClassVar[str] = "AnnotateTarget"

    targets: tuple[str, ...]
    include_non_call_ops: bool = True

    def __init__(self, targets: str | Iterable[str], include_non_call_ops: bool = True) -> None:
        given = (targets,) if isinstance(targets, str) else tuple(targets)
        object.__setattr__(self, "targets", given)
        object.__setattr__(self, "include_non_call_ops", include_non_call_ops)

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Annotate every function that no external compiler runs."""
        mod = infer_module(mod)[0]
        functions = {}
        for variable, function in mod.functions.items():
            functions[variable] = function
            if not is_marked(function):
                functions[variable] = self._annotate_function(function)
        changed = any(functions[v] is not mod.functions[v] for v in functions)
        return infer_module(mod.with_functions(functions, checked=False))[0], changed

    def _annotate_function(self, function: Function) -> Function:
        annotator = _Annotator(self.targets, self.include_non_call_ops)
        # Composite functions go to a target whole.
        whole = [n for n in post_order(function) if isinstance(n, Function) and _composite(n)]
        memo: dict[Expr, Expr] = dict(zip(whole, whole, strict=True))
        return rewrite_function(function, annotator.replace, memo)


_HOLDERS = (Tuple, TupleGetItem, RefCreate, RefRead, RefWrite)
"""Nodes that compute nothing and hold values."""


def _composite(node: Expr) -> str | None:
    """Return the name of a composite function; None of any other node."""
    found = node.attrs.get("Composite") if isinstance(node, Function) else None
    return None if found is None else str(found)


def _annotate(name: str, node: Expr, target: str) -> Expr:
    return call(name, node, compiler=target)


class _Annotator:
    """Annotates nodes, inputs first; knows the target of each that it has made."""

    def __init__(self, targets: Sequence[str], all_nodes: bool) -> None:
        self._targets = targets
        self._all_nodes = all_nodes
        self._target_of: dict[Expr, str] = {}

    def replace(self, node: Expr, new: Expr) -> Expr:
        """Return what a node becomes.

        Args:
            node: The node as it was.
            new: The node with inputs that are annotated.
        """
        if isinstance(node, Call) and isinstance(new, Call):
            return self._replace_call(node, new)
        if isinstance(new, _HOLDERS):
            return self._replace_holder(new)
        if isinstance(new, Function):
            return rebuild(new, [*new.params, self._end(new.body)])
        if isinstance(new, Let):
            return self._replace_let(new)
        if isinstance(new, If):
            return rebuild(new, [self._end(each) for each in children(new)])
        return new

    def _replace_call(self, node: Call, new: Call) -> Expr:
        if is_begin(node):
            return new
        if is_end(node):
            target = self._target_of.setdefault(new.args[0], compiler_of(new))
            stays = target == compiler_of(new) or compiler_of(new) != DEFAULT_TARGET
            return new if stays else _annotate(END, new.args[0], target)
        if node.args and is_begin(node.args[0]) and compiler_of(node.args[0]) != DEFAULT_TARGET:
            return new
        if isinstance(node.op, Var) and not self._all_nodes:
            return _with_args(new, [self._end(arg) for arg in new.args])
        target = self._choose(node)
        result = _with_args(new, self._begin_all(new.args, target)[1])
        self._target_of[result] = target
        return result

    def _choose(self, node: Call) -> str:
        """Return the first target that can run a call."""
        if isinstance(node.op, OpDef):
            for target in self._targets:
                check = node.op.get_attr(f"target.{target}")
                if check is not None and check(node):
                    return target
            return DEFAULT_TARGET
        prefix, dot, _ = (_composite(node.op) or "").partition(".")
        return prefix if dot and prefix in self._targets else DEFAULT_TARGET

    def _replace_holder(self, new: Expr) -> Expr:
        fields = children(new)
        if not fields:
            return new
        target = None
        if self._all_nodes:
            target, parts = self._begin_all(fields)
        else:
            parts = [self._end(field) for field in fields]
        result = rebuild(new, parts)
        if target is not None:
            self._target_of[result] = target
        return result

    def _replace_let(self, new: Let) -> Expr:
        value = new.value
        if not isinstance(value, Function):
            value = self._begin_all([value])[1][0]
        return rebuild(new, [new.var, value, self._end(new.body)])

    def _begin_all(self, args: Sequence[Expr], target: str | None = None) -> tuple[str, list[Expr]]:
        """Return arguments as they enter a node, and its target.

        Args:
            args: The arguments.
            target: The target; without it that which all arguments share, or else the default.
        """
        common: set[str] = set()
        ended: list[tuple[Expr, bool]] = []
        for arg in args:
            if is_absent(arg):
                ended.append((arg, True))
                continue
            origin = DEFAULT_TARGET
            if is_begin(arg) and isinstance(arg, Call):
                before = arg.args[0]
                keep = compiler_of(arg) != DEFAULT_TARGET
                ended.append((arg if keep else before, keep))
                if is_end(before):
                    origin = compiler_of(before)
            elif arg in self._target_of:
                origin = self._target_of[arg]
                alone = isinstance(arg, Call) and not arg.args
                ended.append((arg if alone else _annotate(END, arg, origin), False))
            else:
                ended.append((arg, False))
            common.add(origin)
        if target is None:
            target = next(iter(common)) if len(common) == 1 else DEFAULT_TARGET
        begun = [arg if done else _annotate(BEGIN, arg, target) for arg, done in ended]
        return target, begun

    def _end(self, node: Expr) -> Expr:
        """Return a node as it leaves its region; what is computed of nothing is in none."""
        if is_end(node) and isinstance(node, Call) and compiler_of(node) == DEFAULT_TARGET:
            node = node.args[0]
        elif node not in self._target_of or (isinstance(node, Call) and not node.args):
            return node
        target = self._target_of[node]
        result = _annotate(END, node, target)
        self._target_of[result] = target
        return result


def _with_args(node: Call, args: Sequence[Expr]) -> Expr:
    return rebuild(node, [*args, *children(node)[len(args) :]])
