"""What matches a pattern of a toolchain as one operator of its own domain.

Such an operator is a call of ``serde.foreign`` that carries what it stands for, so passes leave it
as it is, Relay's interpreter runs it, and ONNX has both: a node of the domain, and a local function
of its name for all who do not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any as AnyValue, Final

from serde.core import Array, Report, Weight, dataclass
from serde.errors import OptionError, RelayError
from serde.onnx.custom_operators import Composite, custom_name, require_custom
from serde.onnx.judge import Judge
from serde.onnx.profile import SupportedOperators
from serde.relay.ir import Foreign, IRModule, OpDef, RelayModel, TensorType, value_types
from serde.relay.ir.bodies import map_bodies
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import Call, Constant, Expr, Function, Span, Tuple, TupleGetItem, Var
from serde.relay.ir.foreign import PIVOT_FRAMEWORK, foreign_calls, is_foreign
from serde.relay.ir.leaves import as_leaves
from serde.relay.ir.types import TupleType, is_complete
from serde.relay.ir.visit import free_vars, post_order, rewrite
from serde.relay.text.parser import parse_expr
from serde.relay.transform.editing import TOLD_BY_WEIGHTS
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline_calls import ToGraphNormalForm
from serde.relay.tvm.dataflow_pattern.grouping import Group, find_groups
from serde.relay.tvm.dataflow_pattern.language import (
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    wildcard,
)
from serde.relay.tvm.dataflow_pattern.patterns import ConstantPattern, DFPattern
from serde.target.cutting import keep

__all__ = ["inline_composite", "merge_composites", "read_composites"]

Attributes = Mapping[str, AnyValue]

_MARKS: Final = ("Composite", "Primitive", "PartitionedFromPattern", "Inline", "hash")
"""Attributes of functions that are no operator's."""


def read_composites(given: Iterable[AnyValue]) -> tuple[Composite, ...]:
    """Return composites of Python, checked: a name, a pattern, perhaps what is told of a match.

    Raises:
        OptionError: One is something else.
    """
    found = []
    for each in given if isinstance(given, (list, tuple)) else (given,):
        entry = tuple(each) if isinstance(each, (tuple, list)) else ()
        if not 2 <= len(entry) <= 3 or not isinstance(entry[1], (str, Function, DFPattern)):
            expected = "a name, a pattern and perhaps a function that says what is told of a match"
            raise OptionError(f"composites: expected {expected}, found {each!r}"[:300])
        require_custom(entry[0], "composites: ")
        found.append(Composite(*entry))
    return tuple(found)


class _Held(Constant):
    """A weight where patterns look for a constant; it is read when someone asks for its values."""

    __slots__ = ("variable", "weight")

    def __init__(self, variable: Var, weight: Weight) -> None:
        self.variable, self.weight = variable, weight
        self.below, self.type, self.span = (), variable.type, variable.span

    @property
    def data(self) -> Array:  # type: ignore[override]
        """The values."""
        return self.weight.array()


@dataclass(frozen=True)
class _Rule:
    """A composite that can be looked for.

    Attributes:
        name: Its name.
        pattern: The pattern.
        tell: Returns the attributes of a match, or None where it is not taken.
        operands: The patterns of its operands in order; if left out, what the pattern leaves open
            in the order in which it is read.
    """

    name: str
    pattern: DFPattern
    tell: Callable[[Group], Attributes | None]
    operands: tuple[DFPattern, ...] = ()


def merge_composites(
    model: RelayModel, supported: SupportedOperators, judge: Judge, report: Report
) -> RelayModel:
    """Return the model with a toolchain's composites as operators.

    Args:
        model: A typed model.
        supported: What the toolchain takes. Composite functions that are in its list by their name
            become operators, too.
        judge: Judges each operator; what it refuses stays as it was.
        report: Gets a note of what matches nothing, and of listed operators that are not there.

    Raises:
        OptionError: A pattern cannot be read, or its function fails.
    """
    merger = _Merger(model, supported, judge, report)
    held: dict[Expr, Expr] = {
        each: _Held(each, model.params[each.name_hint])
        for each in model.main.params
        if each.name_hint in model.params
    }
    main = model.main.evolve(body=rewrite(model.main.body, keep, dict(held)))
    for rule in map(_rule_of, supported.composites):
        main = merger.merge(main, rule)
    main = merger.restore(main)
    for name in [each for each in supported.operators or () if "::" in each]:
        if not any(name == custom_name(Foreign.of(call)) for call in foreign_calls(model)):
            merger.unused.setdefault(name, f"no operator of the model is {name}")
    report.notes += [note for name, note in merger.unused.items() if name not in merger.made]
    return model.evolve(mod=model.mod.with_main(main)) if merger.made else model


class _Merger:
    def __init__(
        self, model: RelayModel, supported: SupportedOperators, judge: Judge, report: Report
    ) -> None:
        self._supported = supported
        self._judge = judge
        self._report = report
        self._bodies: dict[AnyValue, Function] = {}
        self.made: set[str] = set()
        self.unused: dict[str, str] = {}

    def merge(self, function: Function, rule: _Rule) -> Function:
        """Return a function, and those that it carries, with the matches of a rule replaced."""
        self.unused.setdefault(rule.name, f"composite {rule.name}: its pattern matches nothing")

        def replace_in(inside: Function) -> Function:
            groups = find_groups(rule.pattern, inside)
            memo: dict[Expr, Expr] = {}

            def replace(node: Expr, new: Expr) -> Expr:
                group = groups.get(node)
                return new if group is None else self._match(rule, group, new, memo)

            return _function(rewrite(inside, replace, memo)) if groups else inside

        return replace_in(map_bodies(function, replace_in))

    def restore(self, function: Function) -> Function:
        """Return a function with its weights, and composites that are listed by name replaced."""

        def replace(_node: Expr, new: Expr) -> Expr:
            if isinstance(new, _Held):
                return new.variable
            if not isinstance(new, Call) or not isinstance(new.op, Function):
                return new
            name = str(new.op.attrs.get("Composite", ""))
            if self._supported.custom_rule(name) is None or "::" not in name or free_vars(new.op):
                return new
            attrs = {key: value for key, value in new.op.attrs.items() if key not in _MARKS}
            held = [x for x in post_order(new.op.body) if isinstance(x, Constant) and x.data.size > 1]
            pairs = [*zip(new.op.params, new.args, strict=True), *((x, x) for x in held)]
            return self._operator(name, new.op.body, pairs, attrs, new)

        return _function(rewrite(map_bodies(function, self.restore), replace))

    def _match(self, rule: _Rule, group: Group, new: Expr, memo: Mapping[Expr, Expr]) -> Expr:
        """Return the operator for a match, or what it was where it is not taken."""
        if group.root in group.args or not isinstance(group.root, (Call, Tuple, TupleGetItem)):
            return new
        told = rule.tell(group)
        if told is None:
            self.unused[rule.name] = f"composite {rule.name}: its function takes no match"
            return new
        inside = dict(zip(group.args, group.function.params, strict=True))
        if rule.operands:
            leaves = [group.matches[each][0] for each in rule.operands]
        else:
            of = {variable: leaf for leaf, variable in inside.items()}
            asked = {
                each
                for pattern, found in group.matches.items()
                if isinstance(pattern, ConstantPattern)
                for each in found
            }
            order = post_order(group.function.body)
            leaves = [of.get(each, each) for each in order if each in of or each in asked]
        pairs = [(inside.get(each, each), memo[each]) for each in leaves]
        return self._operator(rule.name, group.function.body, pairs, told, new)

    def _operator(
        self,
        name: str,
        body: Expr,
        pairs: Sequence[tuple[Expr, Expr]],
        attributes: Attributes,
        old: Expr,
    ) -> Expr:
        """Return the call of an operator that stands for `body`, or `old` if it is refused.

        Args:
            name: The operator.
            body: What it stands for.
            pairs: What is in the body for each operand, and the operand.
            attributes: Its attributes.
            old: What it replaces.
        """
        domain, _, op = name.partition("::")
        types = value_types(old.type)
        results = tuple(each for each in types if isinstance(each, TensorType))
        single = isinstance(old.type, TupleType) and len(types) == 1
        args = [each.variable if isinstance(each, _Held) else each for _, each in pairs]
        if len(results) < len(types) or single or not _are_tensors(args):
            self.unused[name] = f"composite {name}: matches something else than tensors"
            return old
        params = [Var(f"x{index}", each.type) for index, each in enumerate(args)]
        memo: dict[Expr, Expr] = {
            inner: param for (inner, _), param in zip(pairs, params, strict=True)
        }
        function = _typed(Function(params, rewrite(body, keep, memo)))
        try:
            call = Foreign(
                framework=PIVOT_FRAMEWORK, name=op, domain=domain, version=1,
                attributes=dict(attributes), results=results,
            ).build(args, old.span or Span(op), body=function)  # fmt: skip
        except RelayError as error:
            raise OptionError(f"composite {name}: {error}") from error
        gaps = self._judge.judge(call, tuple(as_leaves(args))).gaps
        if gaps:
            self.unused[name] = f"composite {name}: is not taken where it matches: {gaps[0].reason}"
            return old
        key = name, call.attrs["attributes"], tuple(each.type for each in args)
        if not structural_equal(self._bodies.setdefault(key, function), function):
            note = f"composite {name}: matches that differ have the same attributes"
            self._report.notes += [note] if note not in self._report.notes else []
        self.made.add(name)
        return call


def _are_tensors(args: Sequence[Expr]) -> bool:
    return all(isinstance(each.type, TensorType) for each in args)


def _function(found: Expr) -> Function:
    return found if isinstance(found, Function) else Function((), found)


def _typed(function: Function) -> Function:
    return InferType().run(IRModule.from_expr(function))[0]["main"]


def _rule_of(composite: Composite) -> _Rule:
    if isinstance(composite.pattern, DFPattern):
        return _Rule(composite.name, composite.pattern, lambda group: _ask(composite, group.root))
    try:
        return _rule_of_function(composite)
    except RelayError as error:
        raise OptionError(f"composite {composite.name}: {error}") from error


def _ask(composite: Composite, root: Expr) -> Attributes | None:
    """Return what a user's function says of a match: its attributes, None if it is not taken."""
    if composite.told is None:
        return {}
    try:
        said = composite.told(root)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise OptionError(f"composite {composite.name}: its function fails: {what}") from error
    if isinstance(said, Mapping):
        return said
    if said is None or isinstance(said, bool):
        return {} if said else None
    expected = "attributes by name, or whether the match is taken"
    raise OptionError(f"composite {composite.name}: expected {expected}, found {said!r}"[:300])


def _rule_of_function(composite: Composite) -> _Rule:
    """Return the rule of a function in Relay: what its parameters stand for are the operands."""
    given = composite.pattern
    source = parse_expr(given) if isinstance(given, str) else given
    if not isinstance(source, Function):
        expected = "a function such as fn (%x) { nn.relu(%x) }"
        raise OptionError(f"composite {composite.name}: expected {expected}")
    source = ToGraphNormalForm()(IRModule.from_expr(source))["main"]
    free = tuple(composite.told or ())
    patterns: dict[Expr, DFPattern] = {}
    tellers: list[tuple[str, DFPattern]] = []
    for node in post_order(source.body):
        if isinstance(node, OpDef):
            continue
        patterns[node] = _pattern_of(composite, node, patterns, free)
        if isinstance(node, Call):
            tellers += [(name, patterns[node]) for name in free if name in node.attrs]
    lost = [each.name_hint for each in source.params if each not in patterns]
    lost += sorted(set(free) - {name for name, _ in tellers})
    if lost or len(tellers) > len(free):
        what = f"{lost[0]} is not in the pattern" if lost else "several calls have an attribute"
        raise OptionError(f"composite {composite.name}: {what}")

    def tell(group: Group) -> Attributes:
        matched = ((name, group.matches[pattern][0]) for name, pattern in tellers)
        return {name: each.attrs[name] for name, each in matched if isinstance(each, Call)}

    operands = tuple(patterns[each] for each in source.params)
    return _Rule(composite.name, patterns[source.body], tell, operands)


def _pattern_of(
    composite: Composite, node: Expr, known: Mapping[Expr, DFPattern], free: Sequence[str]
) -> DFPattern:
    if isinstance(node, Var):
        declared = node.type_annotation
        return wildcard().has_type(declared) if is_complete(declared) else wildcard()
    if isinstance(node, Constant):
        return is_expr(node)
    if isinstance(node, Tuple):
        return is_tuple([known[each] for each in node.fields])
    if isinstance(node, TupleGetItem):
        return is_tuple_get_item(known[node.tuple_value], node.index)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.carries:
        raise OptionError(f"composite {composite.name}: a pattern cannot have {node!r}"[:300])
    attrs = {
        name: value
        for name, value in node.attrs.items()
        if name not in free and not (value is None and name in TOLD_BY_WEIGHTS)
    }
    return is_op(node.op.name)(*(known[each] for each in node.args)).has_attr(attrs)


def inline_composite(_node: Expr, new: Expr) -> Expr:
    """Return what a composite stands for in its place; of anything else, itself."""
    if not isinstance(new, Call) or not is_foreign(new):
        return new
    body = new.attrs["body"]
    if body is None or not new.attrs["domain"]:
        return new
    (given,) = new.args
    fields = given.fields if isinstance(given, Tuple) else ()
    memo: dict[Expr, Expr] = dict(zip(body.params, fields, strict=True))
    return rewrite(body.body, keep, memo)
