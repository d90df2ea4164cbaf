"""The Relay function that a walk over a model builds, and what of it is folded meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import Array, Weight, numpy_dtype
from serde.relay.ir import Dim, IRModule, ModelMeta, RelayModel, TensorType, infer_function
from serde.relay.ir.expr import Call, Constant, Expr, Function, Span, Tuple, Var
from serde.relay.ir.unique_names import UniqueNames
from serde.relay.ir.visit import free_vars, post_order, rewrite
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform.evaluate_constants import EvaluateConstants
from serde.relay.transform.fold_shape import MAX_VALUES, ShapeFolder
from serde.relay.transform.purity import compressed, unpacks

__all__ = ["Assembly", "Folder", "closed_over"]


class Folder:
    """Evaluates shape arithmetic and small constants of a graph as it grows.

    Each node is looked at once, however often :meth:`fold` is called on what contains it.
    """

    def __init__(self) -> None:
        self._shapes = ShapeFolder()
        self._constants = EvaluateConstants(max_bytes=8 * MAX_VALUES)
        self._done: dict[Expr, Expr] = {}

    def fold(self, expr: Expr) -> Expr:
        """Return what stands for `expr`: a constant, a static form, or itself."""
        return rewrite(expr, self._replace, self._done)

    def _replace(self, _node: Expr, new: Expr) -> Expr:
        found = self._constants.fold(self._shapes.fold(new))
        self._done[new] = self._done[found] = found
        return found

    def note(self, expr: Expr, data: Array) -> None:
        """Let a small integer tensor, such as a weight, be known to hold `data`."""
        self._shapes.note(expr, data)

    def dims(self, expr: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of a folded integer tensor; None where they are not known."""
        found = self._shapes.value(expr)
        return None if found is None else tuple(found.reshape(-1))

    def value(self, expr: Expr) -> Array | None:
        """Return the value of a folded expression; None where it is not known by numbers."""
        if isinstance(expr, Constant):
            return expr.data
        found: AnyValue = self._shapes.value(expr)
        if found is None or not isinstance(expr.type, TensorType):
            return None
        if not all(type(item) is int for item in found.flat):
            return None
        return np.array(found.tolist(), numpy_dtype(expr.type.dtype)).reshape(found.shape)


class Assembly:
    """What has been made of a model so far.

    Attributes:
        fixed: Values of inputs that a caller fixes.

    Args:
        taken: Names that weights must not get.
        folding: Whether constants are evaluated while the graph grows.
    """

    def __init__(self, taken: Iterable[str] = (), *, folding: bool = True) -> None:
        self.fixed: dict[str, Array] = {}
        self._folding = folding
        self._folder = Folder()
        self._weights: dict[Var, Weight] = {}
        self._names = UniqueNames(taken)

    def take(self, name: str) -> None:
        """Keep a name from weights."""
        self._names.take(name)

    def variable(self, weight: Weight, name: str) -> Var:
        """Return a variable that stands for a weight, called `name` or by it and a number."""
        unique = self._names.reserve(name)
        variable = Var(unique, TensorType(weight.shape, weight.dtype), Span(unique))
        self._weights[variable] = weight
        if len(weight.shape) == 1 and weight.size <= MAX_VALUES and "int" in weight.dtype:
            self._folder.note(variable, weight.array())
        return variable

    def tensor(self, weight: Weight, name: str, *, inline: int = 1) -> Expr:
        """Return a constant of at most `inline` elements, else a variable for the weight."""
        if weight.size <= inline:
            return Constant(weight.array(), Span(name))
        if isinstance(weight, ComputedWeight) and any(map(unpacks, post_order(weight.expr))):
            return self._unpacked(weight, name)
        return self.variable(weight, name)

    def _unpacked(self, weight: ComputedWeight, name: str) -> Expr:
        """Return what a weight is computed from, where that unpacks what is to stay compressed."""
        calls = [x for x in post_order(weight.expr) if isinstance(x, Call) and unpacks(x)]
        known: dict[Expr, Expr] = {}
        for part in (part for x in calls for part in x.args if not isinstance(part, Tuple)):
            sources = {each: weight.sources[each] for each in free_vars(part)}
            own = sources[part] if isinstance(part, Var) else ComputedWeight(part, sources)
            known[part] = self.variable(own, name)
        body = rewrite(weight.expr, lambda _node, new: new, known)
        loose = [each for each in free_vars(body) if each in weight.sources]
        rest: dict[Expr, Expr] = {each: self.variable(weight.sources[each], name) for each in loose}
        return rewrite(body, lambda _node, new: new, rest) if rest else body

    def known(self, x: Expr) -> Array | None:
        """Return the value of a tensor that does not depend on inputs, if it is small."""
        return self._folder.value(x)

    def dims(self, x: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of an integer tensor over symbols."""
        return self._folder.dims(x)

    def weight(self, x: Expr) -> Weight | None:
        """Return the weight that a variable stands for."""
        return self._weights.get(x) if isinstance(x, Var) else None

    def fold(self, x: Expr) -> Expr:
        """Return what stands for a new expression: a constant if it is one."""
        return self._folder.fold(x) if self._folding else x

    def model(
        self,
        inputs: Sequence[Var],
        outputs: Sequence[Expr],
        meta: ModelMeta,
        values: Mapping[str, Expr],
    ) -> RelayModel:
        """Return the model whose ``main`` gives `outputs`, with the weights that bear on them.

        Args:
            inputs: Its inputs.
            outputs: Its outputs; of several it gives a tuple.
            meta: What the model says about itself.
            values: Expressions by the names that the model has for them.
        """
        body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
        used = {node for node in post_order(body) if isinstance(node, Var)}
        weights = {var: weight for var, weight in self._weights.items() if var in used}
        main = Function([*inputs, *weights], body)
        if main.type is None:
            main = infer_function(main)
        params = {var.name_hint: weight for var, weight in weights.items()}
        meta = replace(meta, fixed=self.fixed)
        return RelayModel(IRModule({"main": main}), params, meta, values)


def closed_over(
    params: Sequence[Var], captures: Mapping[Expr, Var], results: Sequence[Expr]
) -> tuple[Function, list[Expr]]:
    """Return the body of a loop as a function without free variables, and what it is handed.

    Compressed weights are unpacked around it, once: the body takes what they are made of as
    parameters, which a target could not know to be constant.

    Args:
        params: Its first parameters.
        captures: What it takes from around it, with the parameters that stand for it; weights
            that it uses are added to them.
        results: What it gives.
    """
    body: Expr = Tuple(results)
    taken = dict(captures)
    bound = {*params, *taken.values()}
    unpacked = compressed(body, lambda variable: variable not in bound)
    taken |= {each: Var(f"unpacked{i}", each.type) for i, each in enumerate(unpacked)}
    body = rewrite(body, lambda _node, new: new, {each: taken[each] for each in unpacked})
    bound.update(taken.values())
    for weight in [each for each in free_vars(body) if each not in bound]:
        taken[weight] = Var(weight.name_hint, weight.type)
    body = rewrite(body, lambda _node, new: new, dict[Expr, Expr](taken))
    return Function([*params, *taken.values()], body), list(taken)
