"""What matches a pattern of a toolchain becomes one operator of its own domain.

Such an operator is a call of ``serde.foreign`` that carries what it stands for: no pass changes it,
and ONNX gets a node of the domain with a local function of its name, for all who do not know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Final, TypeAlias

from serde.core import Array, ArrayWeight, Report, Weight
from serde.errors import OptionError, RelayError, SerdeError
from serde.onnx.custom_operators import Composite, is_custom
from serde.onnx.judge import Judge
from serde.onnx.profile import SupportedOperators
from serde.relay.ir import Foreign, IRModule, RelayModel, TensorType, value_types
from serde.relay.ir.bodies import inner_first, instantiate, map_bodies
from serde.relay.ir.expr import Call, Constant, Expr, Function, Span, Var
from serde.relay.ir.foreign import PIVOT_FRAMEWORK, foreign_calls, is_foreign
from serde.relay.ir.visit import free_vars, post_order, rewrite
from serde.relay.text.parser import parse_expr
from serde.relay.transform.compose import Match
from serde.relay.transform.editing import replace_calls
from serde.relay.transform.infer_type import InferType
from serde.relay.transform.inline_calls import ToGraphNormalForm
from serde.relay.tvm.passes.merge_composite import MergeComposite
from serde.target.cutting import keep
from serde.target.nesting import find_captured

__all__ = ["inline_composite", "merge_composites"]

_Attributes: TypeAlias = Mapping[str, AnyValue]
_Pairs: TypeAlias = Sequence[tuple[Expr, Expr]]

_MARKS: Final = ("Composite", "Inline", "PartitionedFromPattern", "Primitive", "hash")
"""Attributes of functions that are no operator's."""


def inline_composite(_node: Expr, new: Expr) -> Expr:
    """Return what a composite stands for in its place; of anything else, itself."""
    if not is_foreign(new) or not new.attrs["domain"] or new.attrs["body"] is None:
        return new
    return instantiate(new.attrs["body"], new.args[0].below)


def merge_composites(
    model: RelayModel, supported: SupportedOperators, judge: Judge, report: Report
) -> RelayModel:
    """Return a typed model with a toolchain's composites as operators.

    Composite functions that are in the list by their name become operators, too; what the judge
    refuses stays as it was. The report gets a note of what is nowhere in the model.

    Raises:
        OptionError: A pattern cannot be read, or its function fails.
    """
    merger = _Merger(supported, judge)
    for each in supported.composites:
        if isinstance(each.pattern, str):
            model = merger.replace_text(model, each)
    model = merger.replace_patterns(model)
    there = {Foreign.of(call).written_name for call in foreign_calls(model)}
    wanted = {**{x.name: 0 for x in supported.composites}, **(supported.operators or {})}
    for name in [each for each in filter(is_custom, wanted) if each not in there]:
        why = merger.refused.get(name, "nothing in the model is it, or matches its pattern")
        report.notes.append(f"{name}: {why}")
    return model


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


class _Merger:
    def __init__(self, supported: SupportedOperators, judge: Judge) -> None:
        self._supported = supported
        self._judge = judge
        self._patterns = {
            each.name: each for each in supported.composites if not isinstance(each.pattern, str)
        }
        self._captured: Mapping[Expr, Expr] = {}
        self.refused: dict[str, str] = {}

    def replace_text(self, model: RelayModel, composite: Composite) -> RelayModel:
        """Return the model with an operator for all that a function of Relay's text is like."""
        where, told = f"composite {composite.name}: ", composite.told
        try:
            mod = ToGraphNormalForm()(IRModule.from_expr(parse_expr(composite.pattern)))
        except RelayError as error:
            raise OptionError(f"{where}{error}") from error
        source, template = mod["main"], mod["main"].body
        nodes = post_order(template)
        calls = [each for each in nodes if isinstance(each, Call)]
        lost = [each.name_hint for each in source.params if each not in nodes]
        lost += [name for name in told if sum(name in each.attrs for each in calls) != 1]
        if lost or not isinstance(template, Call):
            what = f"one call with {lost[0]}" if lost else "a function that ends in a call"
            raise OptionError(f"{where}expected {what}")

        def build(match: Match) -> Expr | None:
            pairs = [(match.bound[param.name_hint],) * 2 for param in source.params]
            matched = [(name, match.nodes[x]) for x in calls for name in told if name in x.attrs]
            attrs = {name: node.attrs[name] for name, node in matched if isinstance(node, Call)}
            return self._operator(composite.name, match.root, pairs, attrs)

        self._captured = find_captured(model.main)
        found = replace_calls(model.mod, template, build, told)
        return model if found is None else model.evolve(mod=found)

    def replace_patterns(self, model: RelayModel) -> RelayModel:
        """Return the model with an operator for each match of a pattern, and listed function."""
        held = self._hold_weights(model)
        made = (call.attrs["body"] for call in foreign_calls(model))
        whole = {x for body in made if body is not None for x in (body, *inner_first(body))}
        back: dict[Expr, Expr] = {constant: variable for variable, constant in held.items()}
        table = [(x.name, x.pattern, partial(self._ask, x)) for x in self._patterns.values()]

        def merge(function: Function) -> Function:
            if function in whole:
                return function
            given = function.evolve(body=rewrite(function.body, keep, dict(held)))
            mod = model.mod.with_main(given, checked=False)
            found = MergeComposite(table).run(mod)[0]["main"]
            body = rewrite(found.body, lambda _node, new: self._replace_call(new))
            return found.evolve(body=rewrite(body, keep, dict(back)))

        main = merge(map_bodies(model.main, merge))
        return model.evolve(mod=InferType().run(model.mod.with_main(main, checked=False))[0])

    def _hold_weights(self, model: RelayModel) -> dict[Expr, Expr]:
        """Return a constant for each variable that is a weight, those in bodies of loops too."""
        self._captured = find_captured(model.main)
        named: dict[Expr, Weight | None] = {
            each: model.params.get(each.name_hint) for each in model.main.params
        }
        held: dict[Expr, Expr] = {}
        for variable, value in (*zip(named, named, strict=True), *self._captured.items()):
            weight = ArrayWeight(value.data) if isinstance(value, Constant) else named.get(value)
            if weight is not None and isinstance(variable, Var):
                held[variable] = _Held(variable, weight)
        return held

    def _ask(self, composite: Composite, root: Expr) -> tuple[dict[str, AnyValue], ...]:
        """Return the attributes of the operator for a match; nothing where it is not taken."""
        try:
            said = True if composite.told is None else composite.told(root)
            found = () if said is None or said is False else ({} if said is True else dict(said),)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise OptionError(f"composite {composite.name}: its function fails: {what}") from error
        if not found:
            self.refused[composite.name] = "its function takes no match"
        return found

    def _replace_call(self, node: Expr) -> Expr:
        """Return the operator for the call of a Composite function that has one."""
        if not isinstance(node, Call) or not isinstance(node.op, Function):
            return node
        function, name = node.op, str(node.op.attrs.get("Composite", ""))
        if not is_custom(name) or self._supported.custom_rule(name) is None or free_vars(function):
            return node
        own = self._patterns.get(name)
        attrs = {key: value for key, value in function.attrs.items() if key not in _MARKS}
        args: dict[Expr, Expr] = dict(zip(function.params, node.args, strict=True))
        inner = [each for each in post_order(function.body) if each in args or _is_large(each)]
        pairs = [(each, args.get(each, each)) for each in inner]
        for told in [attrs] if own is None else self._ask(own, function.body):
            made = self._operator(name, function.body, pairs, told)
            if made is not None:
                return made
        return node if own is None else instantiate(function, node.args)

    def _operator(self, name: str, body: Expr, pairs: _Pairs, told: _Attributes) -> Call | None:
        """Return the operator for `body`, None where it is not taken.

        Pairs are what stands for an operand in the body, and the operand.
        """
        domain, _, op = name.partition("::")
        results = tuple(each for each in value_types(body.type) if isinstance(each, TensorType))
        args = [each.variable if isinstance(each, _Held) else each for _, each in pairs]
        params = [Var(f"x{index}", each.type) for index, each in enumerate(args)]
        memo: dict[Expr, Expr] = {own: x for (own, _), x in zip(pairs, params, strict=True)}
        function = Function(params, rewrite(body, keep, memo))
        try:
            node = Foreign(
                framework=PIVOT_FRAMEWORK, name=op, domain=domain, version=1,
                attributes=told, results=results,
            )  # fmt: skip
            call = node.build(args, body.span or Span(op), body=function)
            outer = [self._captured.get(each, each) for each in args]
            gaps = self._judge.judge(node.build(outer, body=function), outer).gaps
        except SerdeError as error:
            raise OptionError(f"composite {error}") from error
        if gaps or call.type != body.type:
            reason = gaps[0].reason if gaps else "gives something else than tensors"
            self.refused[name] = f"is not taken where it matches: {reason}"
            return None
        return call


def _is_large(node: Expr) -> bool:
    """Whether a node is a weight, or a constant that may be one."""
    return isinstance(node, _Held) or (isinstance(node, Constant) and node.data.size > 1)
