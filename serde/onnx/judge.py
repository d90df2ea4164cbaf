"""Whether a toolchain takes what the exporter would write for a part of a model.

A part is written as a small model of its own, by the exporter that writes the whole, with its
types, attributes and constants; then the nodes are looked at. What was found is kept by all that
the exporter sees, so that equal layers are written once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any as AnyValue, Final

import numpy as np
import onnx
from onnx import helper

from serde.core import Report, Weight, dataclass
from serde.core.texts import near_names
from serde.errors import TypeInferenceError, Unsupported, UnsupportedModelError
from serde.onnx.alternatives import expansion_of
from serde.onnx.builder import walk_nodes
from serde.onnx.custom_operators import custom_form, is_custom, operator_name
from serde.onnx.elements import ELEMENTS
from serde.onnx.exporter import write_lowered
from serde.onnx.functions import structure_of
from serde.onnx.interface import value_type_proto
from serde.onnx.lowering import Takes, arrange, spell_out, take_all
from serde.onnx.model import OnnxModel
from serde.onnx.profile import Bounds, OperatorRule, SupportedOperators
from serde.relay.ir import (
    ModelMeta,
    OpDef,
    RelayModel,
    all_nodes,
    carried,
    children,
    holds_values,
    rewrite,
    value_types,
)
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.foreign import Foreign, is_foreign
from serde.relay.ir.leaves import as_leaves
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.transform.merge_equal_nodes import exact_key
from serde.walk.export_fallback import ExportFallback

__all__ = ["LISTED", "Gap", "Judge", "Verdict", "lower_part", "nodes_inside", "write_part"]

RESULT: Final = "serde.result"
"""Name of the results of small models, which no node of a model has."""


def lower_part(
    model: RelayModel, opset: int, takes: Takes = take_all, report: Report | None = None
) -> RelayModel:
    """Return a part of a model in the operators that ONNX has.

    No layers are raised in it: that is done once, where the whole model is seen. What is lowered
    already stays as it is.

    Args:
        model: The part, as a model of its own.
        opset: Version of the operator set that is written.
        takes: Which operators that can be made of others may be written as they are.
        report: Gets notes on large weights.
    """
    report = Report() if report is None else report
    model = arrange(model, opset, keep_functions=False, takes=None)
    return spell_out(model, opset, report, takes=takes, expansion=expansion_of, share=False)


def write_part(
    model: RelayModel, opset: int, takes: Takes = take_all, report: Report | None = None
) -> OnnxModel:
    """Return a part of a model as ONNX.

    Raises:
        UnsupportedModelError: ONNX cannot say some of it at that version.
    """
    report = Report() if report is None else report
    return write_lowered(lower_part(model, opset, takes, report), opset, report, fallback=LISTED)


class _Listed(ExportFallback):
    """Writes operators of other frameworks, too: what is in a part was listed by its name."""

    def require_consent(self, node: Foreign, report: Report, where: str) -> None:
        """Refuse nothing."""


LISTED: Final = _Listed("onnx")


@dataclass(frozen=True, slots=True, order=True)
class Gap:
    """Why a toolchain does not take something.

    Attributes:
        op: The operator of ONNX; empty where nothing can be written at all.
        reason: Why.
        listed: Whether the operator is in the list, so that a constraint on it is to blame.
    """

    op: str
    reason: str
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is written for a part, and what a toolchain does not take of it.

    Attributes:
        nodes: Operators that are written, in order.
        gaps: What is not taken; empty where everything is.
    """

    nodes: tuple[str, ...]
    gaps: tuple[Gap, ...]


class Judge:
    """Tells which parts of a model a toolchain takes.

    Args:
        supported: What the toolchain takes.
        opset: Version of the operator set that is written.
        weights: The weights of the model, by name.
    """

    def __init__(
        self, supported: SupportedOperators, opset: int, weights: Mapping[str, Weight]
    ) -> None:
        self._supported = supported
        self._opset = opset
        self._weights = weights
        self._known: dict[Hashable, Verdict] = {}
        self._taken: dict[Hashable, bool] = {}

    def judge(self, root: Expr, operands: Sequence[Expr]) -> Verdict:
        """Return the verdict on an expression.

        Args:
            root: The expression.
            operands: Where it ends: tensors that are computed elsewhere, weights and constants.
        """
        if not self._supported.dynamic_shapes:
            moving = _find_dynamic(root, operands)
            if moving is not None:
                return Verdict((), (Gap("", f"the shape of {moving!r} is not fixed"),))
        key = self._key(root, operands)
        found = None if key is None else self._known.get(key)
        if found is None:
            found = self._write(root, operands)
            if key is not None:
                self._known[key] = found
        return found

    def takes(self, node: Call) -> bool:
        """Whether a toolchain takes the operator of a call as it is, and not what spells it out."""
        if self._supported.operators is None:
            return True
        operands = list(as_leaves(node.args))
        key = self._key(node, operands)
        found = None if key is None else self._taken.get(key)
        if found is None:
            found = not self._write(node, operands, lowered=True).gaps
            if key is not None:
                self._taken[key] = found
        return found

    def leaves_whole(self, node: Call) -> bool:
        """Whether a call is better written as it is: it is taken, or nothing that spells it out."""
        return self.takes(node) or bool(self.judge(node, list(as_leaves(node.args))).gaps)

    def find_gaps(self, native: OnnxModel) -> list[tuple[onnx.NodeProto, Gap]]:
        """Return the nodes of a model that the toolchain does not take, and why."""
        rules = self._supported.operators
        if rules is None:
            return []
        found = []
        types: dict[str, _ValueType] | None = None
        constants = {each.name for each in native.proto.graph.initializer} | set(native.weights)
        for node in walk_nodes(native.proto.graph.node):
            op = operator_name(node)
            rule = self._supported.custom_rule(op) if is_custom(op) else rules.get(op)
            if rule is None:
                found.append((node, self.unlisted(op)))
                continue
            if types is None and (rule.reads_types or not self._supported.dynamic_shapes):
                types = _infer_types(native)
            if is_custom(op):
                known = {each.domain: each.version for each in native.proto.opset_import}
                schema = custom_form(op, known[node.domain], len(node.input), len(node.output))
            else:
                schema = onnx.defs.get_schema(op, self._opset, "")
            reason = self._fault(node, rule, schema, types or {}, constants)
            if reason is None and self._supported.largest_constant is not None:
                reason = self._large(node, native.weights)
            if reason is not None:
                found.append((node, Gap(op, reason, listed=True)))
        return found

    def unlisted(self, op: str) -> Gap:
        """Return the gap of an operator that is not in the list, and what of it is alike."""
        known = self._supported.operators or () if is_custom(op) else ()
        near = near_names(op, filter(is_custom, known))
        return Gap(op, f"is not in the list.{near}" if near else "is not in the list")

    def takes_kept(self, node: Call) -> bool:
        """Whether an operator that Relay does not know is one of the toolchain's own."""
        return self._supported.custom_rule(Foreign.of(node).written_name) is not None

    def of_weights(self, weights: Mapping[str, Weight]) -> Judge:
        """Return a judge of models that have other weights."""
        return Judge(self._supported, self._opset, weights)

    def _key(self, root: Expr, operands: Sequence[Expr]) -> Hashable | None:
        """Return all that the exporter sees of a call of an operator or two; None of others."""
        numbers: dict[Expr, Hashable] = {}
        for index, leaf in enumerate(operands):
            numbers.setdefault(leaf, self._leaf_key(index, leaf))
        return _structure(root, numbers)

    def _leaf_key(self, index: int, leaf: Expr) -> Hashable:
        if isinstance(leaf, Constant):
            data = np.ascontiguousarray(leaf.data)
            values = data.tobytes()
            return ("constant", data.dtype, leaf.data.shape, values if len(values) < 64 else
                    hashlib.sha256(values).digest())  # fmt: skip
        return ("weight" if self._is_weight(leaf) else "input", index, leaf.type)

    def _is_weight(self, leaf: Expr) -> bool:
        """Whether it is a weight, and no variable of a let that is called as one."""
        weight = self._weights.get(leaf.name_hint) if isinstance(leaf, Var) else None
        return weight is not None and leaf.type == TensorType(weight.shape, weight.dtype)

    def _write(self, root: Expr, operands: Sequence[Expr], *, lowered: bool = False) -> Verdict:
        try:
            model = self._as_model(root, operands)
            if lowered:
                native = write_lowered(model, self._opset, Report(), fallback=LISTED)
            else:
                native = write_part(model, self._opset, self.takes)
        except UnsupportedModelError as error:
            issues = error.report.issues
            gaps = {Gap("", f"{issue.op}: {issue.reason}") for issue in issues}
            return Verdict((), tuple(sorted(gaps)))
        except (Unsupported, TypeInferenceError) as error:
            return Verdict((), (Gap("", str(error)),))
        gaps = {gap for node, gap in self.find_gaps(native) if not is_naming(node)}
        nodes = (node for node in walk_nodes(native.proto.graph.node) if not is_naming(node))
        return Verdict(tuple(node.op_type for node in nodes), tuple(sorted(gaps)))

    def _as_model(self, root: Expr, operands: Sequence[Expr]) -> RelayModel:
        """Return a model of an expression; one of weights alone takes them as inputs."""
        closed = all(isinstance(leaf, Constant) or self._is_weight(leaf) for leaf in operands)
        params: dict[str, Weight] = {}
        memo: dict[Expr, Expr] = {}
        for leaf in operands:
            if isinstance(leaf, Constant) or leaf in memo:
                memo[leaf] = memo.get(leaf, leaf)
                continue
            variable = Var(f"x{len(memo)}", leaf.type)
            memo[leaf] = variable
            if not closed and isinstance(leaf, Var) and self._is_weight(leaf):
                params[variable.name_hint] = self._weights[leaf.name_hint]
        body = rewrite(root, lambda _node, new: new, memo)
        variables = [each for each in memo.values() if isinstance(each, Var)]
        mod = IRModule({"main": Function(variables, body)}, checked=True)
        inputs = tuple(each.name_hint for each in variables if each.name_hint not in params)
        count = len(body.type.fields) if isinstance(body.type, TupleType) else 1
        names = tuple(f"{RESULT}{index}" for index in range(count))
        return RelayModel(mod, params, ModelMeta(inputs, names))

    def _fault(
        self,
        node: onnx.NodeProto,
        rule: OperatorRule,
        schema: AnyValue,
        types: Mapping[str, _ValueType],
        constants: set[str],
    ) -> str | None:
        """Return what a rule says against a node."""
        if rule.versions is not None and schema.since_version not in rule.versions:
            return f"version {schema.since_version}"
        given = [name for name in node.input if name]
        if rule.max_inputs is not None and len(given) > rule.max_inputs:
            return f"{len(given)} inputs"
        reason = _attribute_fault(node, rule, schema)
        if reason is not None:
            return reason
        inputs = list(_with_formals(node.input, schema.inputs))
        if not self._supported.dynamic_shapes:
            for name in (*node.input, *node.output):
                if name and name in types and not types[name][2]:
                    return f"the shape of {name} is not fixed"
        for name, formal in inputs:
            if formal.name in rule.constant and name not in constants:
                return f"{formal.name} is no constant"
        outputs = list(_with_formals(node.output, schema.outputs))
        return _type_fault(inputs, outputs, rule, schema, types) if rule.reads_types else None

    def _large(self, node: onnx.NodeProto, weights: Mapping[str, Weight]) -> str | None:
        """Return what is said of a weight that is larger than the toolchain takes."""
        sizes = {name: weights[name].nbytes for name in node.input if name in weights}
        most = max(sizes, key=lambda name: sizes[name], default="")
        is_large = bool(sizes) and sizes[most] > (self._supported.largest_constant or 0)
        return f"{most} has {sizes[most]:,} bytes" if is_large else None


def is_naming(node: onnx.NodeProto) -> bool:
    """Whether a node only gives a result of a small model its name."""
    return node.op_type == "Identity" and node.name.startswith(RESULT)


_ValueType = tuple[str, int | None, bool]
"""dtype, rank and whether the shape is fixed of a value; without a dtype where it is no tensor."""


def nodes_inside(root: Expr, operands: Sequence[Expr]) -> Iterator[Expr]:
    """Yield the nodes of an expression down to its operands, those of bodies included."""
    seen = set(operands)
    stack = [root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        stack += children(node)
        for body in carried(node):
            yield from all_nodes(body)


def _find_dynamic(root: Expr, operands: Sequence[Expr]) -> AnyValue:
    """Return a type of an operand or a result, or of a value inside, that is not fixed."""
    for node in (*operands, *nodes_inside(root, operands)):
        if holds_values(node.type):
            for each in value_types(node.type):
                if not isinstance(each, TensorType) or each.concrete_shape is None:
                    return each
    return None


def _structure(root: Expr, numbers: Mapping[Expr, Hashable]) -> Hashable | None:
    """Return a key of a small expression; None for one that carries functions."""
    known = numbers.get(root)
    if known is not None:
        return known
    if isinstance(root, Tuple):
        parts = tuple(_structure(field, numbers) for field in root.fields)
        return None if None in parts else ("tuple", parts)
    if isinstance(root, TupleGetItem):
        inner = _structure(root.tuple_value, numbers)
        return None if inner is None else ("field", root.index, inner)
    whole = is_foreign(root) or not carried(root)
    if not isinstance(root, Call) or not isinstance(root.op, OpDef) or not whole:
        return None
    parts = tuple(_structure(each, numbers) for each in root.args)
    if None in parts:
        return None
    attrs = tuple(
        (name, structure_of(value) if isinstance(value, Function) else exact_key(value))
        for name, value in root.attrs.items()
    )
    return (root.op.name, attrs, parts, root.type)


def _infer_types(native: OnnxModel) -> dict[str, _ValueType]:
    """Return dtype and rank of every value that ONNX's own inference knows."""
    skeleton = onnx.ModelProto()
    skeleton.CopyFrom(native.proto)
    for name, weight in native.weights.items():
        type_ = TensorType(weight.shape, weight.dtype)
        skeleton.graph.input.append(value_type_proto(name, type_))
    typed = onnx.shape_inference.infer_shapes(skeleton)
    found: dict[str, _ValueType] = {}
    graphs = [typed.graph]
    while graphs:
        graph = graphs.pop()
        for tensor in graph.initializer:
            found[tensor.name] = (_dtype_of(tensor.data_type), len(tensor.dims), True)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.HasField("tensor_type"):
                tensor_type = value.type.tensor_type
                shape = tensor_type.shape.dim if tensor_type.HasField("shape") else None
                rank = None if shape is None else len(shape)
                fixed = shape is not None and all(dim.HasField("dim_value") for dim in shape)
                found[value.name] = (_dtype_of(tensor_type.elem_type), rank, fixed)
        for node in graph.node:
            graphs += [each.g for each in node.attribute if each.HasField("g")]
    return found


def _dtype_of(code: int) -> str:
    element = ELEMENTS.get(code)
    return "" if element is None else element.dtype


def _with_formals(
    names: Sequence[str], formals: Sequence[AnyValue]
) -> Iterator[tuple[str, AnyValue]]:
    """Yield the values of a node that are given, with what its schema calls them."""
    for index, name in enumerate(names):
        if name and formals:
            yield name, formals[min(index, len(formals) - 1)]


def _attribute_fault(node: onnx.NodeProto, rule: OperatorRule, schema: AnyValue) -> str | None:
    if not rule.attributes:
        return None
    given = {each.name: _plain(helper.get_attribute_value(each)) for each in node.attribute}
    for name, allowed in rule.attributes.items():
        if name in given:
            value = given[name]
        elif name not in schema.attributes:
            continue
        else:
            default = schema.attributes[name].default_value
            if default.type == onnx.AttributeProto.UNDEFINED:
                continue
            value = _plain(helper.get_attribute_value(default))
        if not _allows(allowed, value):
            return f"{name} = {list(value) if isinstance(value, tuple) else value!s}"
    return None


def _plain(value: AnyValue) -> AnyValue:
    """Return an attribute's value in the forms that a list has."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (str, int, float)):
        return value
    return tuple(map(_plain, value)) if isinstance(value, Iterable) else value


def _allows(allowed: tuple[AnyValue, ...] | Bounds, value: AnyValue) -> bool:
    if isinstance(allowed, Bounds):
        return allowed.holds(value)
    return any(_is_same(each, value) for each in allowed)


def _is_same(one: AnyValue, other: AnyValue) -> bool:
    """Compare values, floats as ONNX stores them."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        if not isinstance(one, tuple) or not isinstance(other, tuple) or len(one) != len(other):
            return False
        return all(map(_is_same, one, other))
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return bool(np.float32(one) == np.float32(other))


@cache
def _open_variables(op: str, since: int) -> frozenset[str]:
    """Return the variables of an operator's types that may be more than one type."""
    if is_custom(op):
        return frozenset("T")
    schema = onnx.defs.get_schema(op, since, "")
    return frozenset(
        each.type_param_str for each in schema.type_constraints if len(each.allowed_type_strs) > 1
    )


def _type_fault(
    inputs: Sequence[tuple[str, AnyValue]],
    outputs: Sequence[tuple[str, AnyValue]],
    rule: OperatorRule,
    schema: AnyValue,
    types: Mapping[str, _ValueType],
) -> str | None:
    open_ = _open_variables(schema.name, schema.since_version)
    for index, (name, formal) in enumerate([*inputs, *outputs]):
        if name not in types:
            return f"{formal.name} has a type that is not known"
        dtype, rank, _ = types[name]
        own = rule.dtypes.get(formal.type_str)
        allowed = rule.dtypes.get("") if own is None and formal.type_str in open_ else own
        if allowed is not None and dtype not in allowed:
            return f"{formal.name} is {dtype or 'no tensor'}"
        ranks = rule.ranks.get(formal.name, rule.ranks.get("") if index == 0 and inputs else None)
        if ranks is not None and rank not in ranks:
            return f"{formal.name} has {_rank_text(rank)}"
        if rule.max_rank is not None and (rank is None or rank > rule.max_rank):
            return f"{formal.name} has {_rank_text(rank)}"
    return None


def _rank_text(rank: int | None) -> str:
    return "a rank that is not known" if rank is None else f"rank {rank}"
