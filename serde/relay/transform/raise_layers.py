"""Raising of layers that a model spells out: norms, gated activations, dense layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any as AnyValue, ClassVar, Final, TypeGuard

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import (
    Dim,
    Elementwise,
    OpDef,
    TensorType,
    call,
    get,
    has_trait,
    is_call,
    is_float,
)
from serde.relay.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var, const
from serde.relay.ir.visit import children, has_kind, kinds, post_order, rebuild
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.compose import Compose, Match, Pattern, same_calls
from serde.relay.transform.merge_equal_nodes import MergeEqualNodes

__all__ = ["RaiseLayers"]

Supported = Callable[[Call], bool]

_EPSILON, _SCALE, _OTHER, _CAP, _CAP_AGAIN = (
    const(value, "float32") for value in (1e-5, 0.125, 0.25, 50.0, 30.0)
)
_ANY = (_EPSILON, _SCALE, _OTHER, _CAP, _CAP_AGAIN)
"""Stand for any number in a template."""


@dataclass(frozen=True)
class RaiseLayers(FunctionPass):
    """Replace what a layer is made of by the layer, where the target has it.

    ``nn.layer_norm``, ``serde.rms_norm``, ``serde.rotary_embedding``, ``serde.gelu``,
    ``serde.swish``, ``serde.silu``, ``serde.hard_swish``, ``nn.dense`` with its bias and
    ``serde.attention`` are looked for in the forms in which PyTorch, Keras and transformers spell
    them out. The layer is the same function of real numbers, with the same constants to the last
    bit of their dtype, and nothing inside is used from outside. A mask of attention adds finite
    numbers: with infinite ones, a query that attends to nothing gives zeros, and no numbers where
    it is spelled out.

    Args:
        supported: Whether the target has a call in one operator.
        weights: Names of the variables that stand for weights.
        keep: Operators and nodes that stay as they are, in a layer that is not among them.
    """

    name: ClassVar[str] = "RaiseLayers"

    supported: Supported
    weights: Collection[str] = frozenset()
    keep: Collection[str] = frozenset()

    def transform(self, function: Function) -> Function:
        """Replace layers; what one consists of may be others."""
        patterns = tuple(self._bind_template(*each) for each in _templates(function))
        found = Compose(patterns).transform(function)
        if found is function or not has_kind(found, "serde.rotary_embedding"):
            return found
        return MergeEqualNodes().transform(found)  # The layers have their angles in common.

    def transform_body(self, body: Function) -> Function:
        """The weights of a body are its parameters, which is not to be seen there."""
        return RaiseLayers(self.supported, keep=self.keep).transform(body)

    def _bind_template(self, template: Call, build: _Build) -> Pattern:
        def checked(match: Match) -> Expr | None:
            try:
                found = build(match, template, self.weights)
            except TypeInferenceError:
                # What is spelled out broadcasts, or has dtypes, as the layer does not.
                return None
            if found is None:
                return None
            layer, result = found
            return result if self.supported(layer) and not self._stays(match, layer) else None

        name = build.__name__
        captures = frozenset(_constants(template))
        return Pattern(name, template, checked, captures)

    def _stays(self, match: Match, layer: Call) -> bool:
        """Whether something that is to stay as it is would be lost in a layer."""
        if not self.keep or not _names_of(layer).isdisjoint(self.keep):
            return False
        calls = (node for node in match.nodes.values() if isinstance(node, Call))
        return any(not _names_of(each).isdisjoint(self.keep) for each in calls)


_Found = tuple[Call, Expr]
"""A layer, and what stands in the place of the match."""

_Build = Callable[[Match, Call, Collection[str]], _Found | None]


def _constants(template: Expr) -> Iterator[Constant]:
    return (node for node in post_order(template) if isinstance(node, Constant))


def _templates(function: Function) -> Iterator[tuple[Call, _Build]]:
    """Yield the forms of layers of which `function` has a telling operator."""
    names = {each.name for each in kinds(function) if isinstance(each, Op)}
    for telling, forms, build in _LAYERS:
        if not names.isdisjoint(telling):
            yield from ((each, build) for each in _list_forms(forms))


@cache
def _list_forms(forms: Callable[[], Iterator[Call]]) -> tuple[Call, ...]:
    return tuple(forms())


def _op(name: str, *args: Expr) -> Call:
    """Return a call of a template, whose types and attributes nothing asks for."""
    return Call(get(name), args)


def _var(name: str) -> Var:
    return Var(name)


def _halves(x: Expr, chance: Expr) -> list[Call]:
    """Return the ways to multiply a value, a half and a sum."""
    half = const(0.5, "float32")
    return [
        _op("multiply", _op("multiply", x, chance), half),
        _op("multiply", _op("multiply", x, half), chance),
        _op("multiply", x, _op("multiply", chance, half)),
    ]


def _erf_forms() -> Iterator[Call]:
    x, one = _var("x"), const(1.0, "float32")
    for inner in (
        _op("divide", x, const(math.sqrt(2), "float32")),
        _op("multiply", x, const(math.sqrt(0.5), "float32")),
    ):
        yield from _halves(x, _op("add", _op("erf", inner), one))


def _tanh_forms() -> Iterator[Call]:
    x, one = _var("x"), const(1.0, "float32")
    root, share = const(math.sqrt(2 / math.pi), "float32"), const(0.044715, "float32")
    square = _op("multiply", x, x)
    cubes = [_op("power", x, const(3.0, "float32")), _op("multiply", square, x)]
    inner = [_op("multiply", root, _op("add", x, _op("multiply", share, cube))) for cube in cubes]
    first = const(1.0, "float32")
    part = _op("add", first, _op("multiply", _op("multiply", share, x), x))
    squared = _op("add", first, _op("multiply", share, square))
    for each in (part, squared):
        inner.append(_op("multiply", _op("multiply", root, x), each))
        inner.append(_op("multiply", root, _op("multiply", x, each)))
    for each in inner:
        yield from _halves(x, _op("add", _op("tanh", each), one))


def _sigmoid_forms() -> Iterator[Call]:
    x = _var("x")
    yield _op("multiply", x, _op("sigmoid", _op("multiply", x, const(1.702, "float32"))))
    yield _op("multiply", x, _op("sigmoid", x))


def _norm_forms() -> Iterator[Call]:
    x, gamma, beta = _var("x"), _var("gamma"), _var("beta")
    mean = _op("mean", x)
    centred = _op("subtract", x, mean)
    for square in (_op("power", centred, const(2.0, "float32")), _op("multiply", centred, centred)):
        power = _op("add", _op("mean", square), _EPSILON)
        root, inverse = _op("sqrt", power), _op("rsqrt", power)
        for plain in (
            _op("divide", centred, root),
            _op("multiply", centred, inverse),
            _op("multiply", centred, _op("divide", const(1.0, "float32"), root)),
        ):
            scaled = _op("multiply", plain, gamma)
            yield from (plain, scaled, _op("add", scaled, beta))
        # Keras takes factor and shift together before they meet the data.
        factor = _op("multiply", inverse, gamma)
        shift = _op("subtract", beta, _op("multiply", mean, factor))
        yield _op("add", _op("multiply", x, factor), shift)


def _rms_forms() -> Iterator[Call]:
    x, gamma = _var("x"), _var("gamma")
    for square in (_op("power", x, const(2.0, "float32")), _op("multiply", x, x)):
        plain = _op("multiply", x, _op("rsqrt", _op("add", _op("mean", square), _EPSILON)))
        yield _op("multiply", plain, gamma)
        yield _op("multiply", _op("cast", plain), gamma)


def _rotary_forms() -> Iterator[Call]:
    cos, sin, whole = _var("cos"), _var("sin"), _var("x")
    for x in (whole, _op("strided_slice", whole)):
        parts = [_op("strided_slice", x) for _ in range(2)]
        halves = Tuple([_op("negative", parts[0]), parts[1]])
        turned = _op("multiply", _op("concatenate", halves), sin)
        rotated = _op("add", _op("multiply", x, cos), turned)
        kept = Tuple([rotated, _op("strided_slice", whole)])
        yield rotated if x is whole else _op("concatenate", kept)


def _dense_forms() -> Iterator[Call]:
    x, weight, bias = _var("x"), _var("weight"), _var("bias")
    for name in ("serde.matmul", "nn.matmul", "nn.dense"):
        product = _op(name, x, weight)
        yield _op("add", product, bias)
        if name != "nn.dense":
            yield product


def _attention_forms() -> Iterator[Call]:
    query, key, value = _var("query"), _var("key"), _var("value")
    plain = _op("serde.matmul", query, key)
    by_query = [_op(name, query, _SCALE) for name in ("multiply", "divide")]
    # PyTorch gives each side the root of the scale.
    both = _op("serde.matmul", by_query[0], _op("multiply", key, _OTHER))
    scores = [
        both,
        plain,
        *(_op(name, plain, _SCALE) for name in ("multiply", "divide")),
        *(_op("serde.matmul", each, key) for each in by_query),
    ]
    for each in scores:
        yield _op("serde.matmul", _op("nn.softmax", each), value)
    for each in scores[2:4]:
        capped = _op("multiply", _op("tanh", _op("divide", each, _CAP)), _CAP_AGAIN)
        for masked in (_op("add", given, _var("mask")) for given in (each, capped)):
            yield _op("serde.matmul", _op("nn.softmax", masked), value)
            # Of halves, the softmax is computed in float32.
            wide = _op("nn.softmax", _op("cast", masked))
            yield _op("serde.matmul", _op("cast", wide), value)


def _holds(match: Match, template: Call) -> bool:
    """Whether the constants found are those of the template, rounded to their dtype."""
    return all(
        _is_number(match.nodes[each], float(each.data))
        for each in _constants(template)
        if each not in _ANY
    )


def _is_number(node: Expr, value: float) -> bool:
    """Whether a constant is the one of its dtype that is closest to a number, or its neighbour."""
    if not isinstance(node, Constant) or node.data.dtype.kind != "f":
        return False
    found = node.data.reshape(-1)
    wanted = np.array(value, found.dtype)
    return bool((np.abs(found - wanted) <= np.spacing(np.abs(wanted))).all())


def _gelu(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    if not _holds(match, template):
        return None
    tanh = any(is_call(each, "tanh") for each in match.nodes)
    kind = "tanh" if tanh else "none"
    found = call("serde.gelu", match.bound["x"], approximate=kind, span=match.root.span)
    return found, found


def _swish(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    if not _holds(match, template):
        return None
    x, span = match.bound["x"], match.root.span
    quick = any(True for _ in _constants(template))
    found = (
        call("serde.swish", x, alpha=1.702, span=span)
        if quick
        else call("serde.silu", x, span=span)
    )
    return found, found


def _gate_forms() -> Iterator[Call]:
    x, six, sixth = _var("x"), const(6.0, "float32"), const(1 / 6, "float32")
    gate = _op("clip", _op("add", x, const(3.0, "float32")))
    for name, part in (("divide", six), ("multiply", sixth)):
        yield _op("multiply", x, _op(name, gate, part))
        yield _op(name, _op("multiply", x, gate), part)


def _hard_swish(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    calls = (each for each in match.nodes.values() if isinstance(each, Call))
    limits = [each.attrs for each in calls if is_call(each, "clip")]
    if not _holds(match, template) or any((x["a_min"], x["a_max"]) != (0, 6) for x in limits):
        return None
    found = call("serde.hard_swish", match.bound["x"], span=match.root.span)
    return found, found


def _layer_norm(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    """Return the layer norm that is spelled out over one axis or the last ones, or None."""
    x, type_ = match.bound["x"], match.bound["x"].type
    number = match.nodes[_EPSILON]
    if not _holds(match, template) or not isinstance(number, Constant):
        return None
    epsilon = float(str(number.data.reshape(-1)[0]))
    means = [
        node for key, node in match.nodes.items() if is_call(key, "mean") and isinstance(node, Call)
    ]
    axes = _common_axes(means, type_)
    if axes is None or not isinstance(type_, TensorType):
        return None
    lengths = [type_.shape[axis] for axis in axes]
    fixed = tuple(length for length in lengths if isinstance(length, int))
    last = axes == list(range(type_.rank - len(axes), type_.rank))
    if not axes or len(fixed) < len(lengths) or not (last or len(axes) == 1):
        return None
    vectors = {}
    for name, value in (("gamma", 1.0), ("beta", 0.0)):
        given = match.bound.get(name)
        vector = None if given is None else _along(given, type_, axes, fixed)
        if given is not None and vector is None:
            return None
        vectors[name] = const(np.full(fixed, value), type_.dtype) if vector is None else vector
    span = match.root.span
    if len(axes) == 1:
        found = call(
            "nn.layer_norm", x, vectors["gamma"], vectors["beta"], axis=axes[0], epsilon=epsilon,
            center="beta" in match.bound, scale="gamma" in match.bound, span=span,
        )  # fmt: skip
        return found, found
    factors = [vectors["gamma"], *([vectors["beta"]] if "beta" in match.bound else [])]
    inside = np.dtype("float64" if type_.dtype == "float64" else "float32")
    found = call(
        "serde.layer_norm", x, *factors, axis=axes[0], epsilon=epsilon, stash_dtype=inside,
        span=span,
    )  # fmt: skip
    return found, TupleGetItem(found, 0)


def _rms_norm(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    """Return the norm over the last axis; of halves, it is computed in float32."""
    x, number = match.bound["x"], match.nodes[_EPSILON]
    if not _holds(match, template) or not isinstance(number, Constant):
        return None
    axes = _common_axes([node for _, node in _matched(match, "mean")], x.type)
    if axes is None or not isinstance(x.type, TensorType) or axes != [x.type.rank - 1]:
        return None
    for _, narrowed in _matched(match, "cast"):
        if not is_call(x, "cast") or x.args[0].type != narrowed.type:
            return None
        x = x.args[0]
    type_ = x.type
    if not isinstance(type_, TensorType) or not isinstance(type_.shape[-1], int):
        return None
    gamma = _along(match.bound["gamma"], type_, axes, type_.shape[-1:])
    if gamma is None:
        return None
    epsilon = float(str(number.data.reshape(-1)[0]))
    found = call("serde.rms_norm", x, gamma, axis=-1, epsilon=epsilon, span=match.root.span)
    return found, found


def _matched(match: Match, name: str) -> list[tuple[Call, Call]]:
    """Return the calls of an operator in a template, with what they stand for."""
    return [
        (key, node)
        for key, node in match.nodes.items()
        if is_call(key, name) and isinstance(node, Call)
    ]


def _rotary(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    """Features of heads, all or the first, whose halves are rotated by the same angles."""
    x = match.bound["x"]
    width = x.type.shape[-1] if isinstance(x.type, TensorType) and x.type.rank == 4 else 0
    cuts: dict[Expr, tuple[int, int] | None] = {
        node: _cut_of_features(node) for _, node in _matched(match, "strided_slice")
    }
    second = _matched(match, "negative")[0][1].args[0]
    half, end = cuts.get(second) or (0, 0)
    joins = [node.attrs["axis"] for _, node in _matched(match, "concatenate")]
    if not half or end != 2 * half or not isinstance(width, int) or not {-1, 3}.issuperset(joins):
        return None
    wanted = [(0, half), (half, end)]
    if end != width:
        wanted += [(0, end), (end, width)]
        if cuts.get(second.args[0] if isinstance(second, Call) else x) != (0, end):
            return None
    if sorted(each or (0, 0) for each in cuts.values()) != sorted(wanted):
        return None
    cos, sin = (_half_of_table(match.bound[name]) for name in ("cos", "sin"))
    if cos is None or sin is None:
        return None
    found = call(
        "serde.rotary_embedding", x, cos, sin, None, num_heads=0, interleaved=False,
        rotary_dim=0 if end == width else end, span=match.root.span,
    )  # fmt: skip
    return found, found


def _cut_of_features(node: Call) -> tuple[int, int] | None:
    """Return where a slice of the last axis alone begins and ends."""
    type_, attrs = node.args[0].type, node.attrs
    if not isinstance(type_, TensorType) or not isinstance(type_.shape[-1], int):
        return None
    if attrs["axes"] is None or [axis % type_.rank for axis in attrs["axes"]] != [type_.rank - 1]:
        return None
    if tuple(attrs["strides"] or (1,)) != (1,) or attrs["slice_mode"] != "end":
        return None
    begin, end, _ = slice(attrs["begin"][0], attrs["end"][0]).indices(type_.shape[-1])
    return begin, end


def _half_of_table(table: Expr) -> Expr | None:
    """Return (batch, length, pairs) of what has an axis for heads and all features twice."""
    if not is_call(table, "expand_dims"):
        return None
    attrs = table.attrs
    if attrs["axis"] not in (1, -3) or attrs["num_newaxis"] != 1:
        return None
    chain: list[tuple[Call, Expr]] = []
    node = table.args[0]
    while isinstance(node, Call) and has_trait(node, Elementwise):
        wide = [x for x in node.args if not isinstance(x, Constant) or x.data.size != 1]
        if len(wide) != 1:
            return None
        chain.append((node, wide[0]))
        node = wide[0]
    fields = node.args[0] if is_call(node, "concatenate") else None
    if not isinstance(node, Call) or not isinstance(fields, Tuple) or len(fields.fields) != 2:
        return None
    if fields.fields[0] is not fields.fields[1] or node.attrs["axis"] not in (-1, 2):
        return None
    result: Expr = fields.fields[0]
    for each, inner in reversed(chain):
        result = rebuild(each, [result if x is inner else x for x in children(each)])
    return result


def _common_axes(means: Sequence[Call], type_: AnyValue) -> list[int] | None:
    """Return the axes that all means are taken over and keep, in order."""
    if not isinstance(type_, TensorType) or not is_float(type_.dtype):
        return None
    found = []
    for each in means:
        axes = each.attrs["axis"]
        if axes is None or not each.attrs["keepdims"] or each.attrs["exclude"]:
            return None
        found.append(sorted(axis % type_.rank for axis in axes))
    return found[0] if found and all(each == found[0] for each in found) else None


def _along(x: Expr, data: TensorType, axes: Sequence[int], fixed: Sequence[Dim]) -> Expr | None:
    """Return a factor or shift that varies along the axes alone, with just these axes."""
    type_ = x.type
    if not isinstance(type_, TensorType) or type_.dtype != data.dtype or type_.rank > data.rank:
        return None
    shape = [*[1] * (data.rank - type_.rank), *type_.shape]
    wanted = [data.shape[axis] if axis in axes else 1 for axis in range(data.rank)]
    if shape != wanted:
        return None
    return x if type_.shape == tuple(fixed) else call("reshape", x, newshape=tuple(fixed))


def _dense(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    """A product with a matrix of weights has it transposed."""
    x, weight, bias = (match.bound.get(name) for name in ("x", "weight", "bias"))
    product = next(
        node for key, node in match.nodes.items()
        if isinstance(key, Call) and "weight" in {getattr(a, "name_hint", "") for a in key.args}
    )  # fmt: skip
    if not isinstance(product, Call) or x is None or weight is None:
        return None
    span = product.span or match.root.span
    kind = weight.type
    if not _is_weight(weight, weights) or not isinstance(kind, TensorType) or kind.rank != 2:
        return None
    if not isinstance(x.type, TensorType) or not is_float(x.type.dtype) or x.type.rank < 2:
        return None
    if is_call(product, "nn.dense"):
        layer = product
    else:
        attrs = product.attrs
        if attrs.get("transpose_a") or attrs.get("out_dtype") is not None:
            return None
        transposed = weight if attrs.get("transpose_b") else call("transpose", weight, axes=(1, 0))
        units = kind.shape[0] if attrs.get("transpose_b") else kind.shape[1]
        layer = call("nn.dense", x, transposed, units=units, span=span)
    if bias is None:
        return layer, layer
    if not _is_weight(bias, weights) or not isinstance(layer.type, TensorType):
        return None
    vector = _along(bias, layer.type, [layer.type.rank - 1], layer.type.shape[-1:])
    if vector is None:
        return None
    return layer, call("nn.bias_add", layer, vector, axis=-1, span=match.root.span)


def _attention(match: Match, template: Call, weights: Collection[str]) -> _Found | None:
    """The products are those of every query with the columns of the second operand."""
    query, transposed, value = (match.bound[name] for name in ("query", "key", "value"))
    mask = match.bound.get("mask")
    if mask is not None and not _adds_finite(mask):
        return None
    types = [each.type for each in (query, transposed, value)]
    if not all(isinstance(type_, TensorType) and type_.rank == 4 for type_ in types):
        return None
    softmax = next(n for k, n in match.nodes.items() if is_call(k, "nn.softmax"))
    if not isinstance(softmax, Call) or softmax.attrs["axis"] not in (-1, 3):
        return None
    width = types[0].shape[3] if isinstance(types[0], TensorType) else None
    scale = 1.0
    for each in (_SCALE, _OTHER):
        number = match.nodes.get(each)
        scale *= float(number.data.reshape(-1)[0]) if isinstance(number, Constant) else 1.0
    cap, divisions = None, len(_matched(match, "divide"))
    if _CAP in match.nodes:
        number, again = (match.nodes[each] for each in (_CAP, _CAP_AGAIN))
        if not isinstance(number, Constant) or not same_calls(number, again):
            return None
        cap, divisions = float(number.data.reshape(-1)[0]), divisions - 1
        if not 0 < cap < math.inf:
            return None
    if divisions:
        scale = 1 / scale if scale else math.inf
    if not math.isfinite(scale):
        return None
    if isinstance(width, int) and abs(scale * math.sqrt(width) - 1) < _NEAR:
        scale = 1 / math.sqrt(width)
    if _swaps_last(transposed):
        key = transposed.args[0]
    else:
        key = call("transpose", transposed, axes=(0, 1, 3, 2), span=match.root.span)
    found = call(
        "serde.attention", query, key, value, mask, scale=scale, softcap=cap, span=match.root.span
    )
    return found, found


def _swaps_last(x: Expr) -> TypeGuard[Call]:
    return is_call(x, "transpose") and x.attrs["axes"] == (0, 1, 3, 2)


def _adds_finite(mask: Expr) -> bool:
    """Whether all elements are one of two finite numbers."""
    choices = mask.args[1:] if is_call(mask, "where") else ()
    return bool(choices) and all(
        isinstance(each, Constant) and bool(np.isfinite(each.data).all()) for each in choices
    )


_NEAR = 4 * float(np.finfo(np.float32).eps)
"""How far a scale rounded to float32 may be from the root of a width."""


def _names_of(node: Call) -> set[str]:
    """Return the name of the operator of a call, and that of its node."""
    names = {node.op.name} if isinstance(node.op, OpDef) else set()
    return names | ({node.span.source_name} if node.span is not None else set())


def _is_weight(x: Expr, weights: Collection[str]) -> bool:
    return isinstance(x, Constant) or (isinstance(x, Var) and x.name_hint in weights)


_LAYERS: Final[tuple[tuple[tuple[str, ...], Callable[[], Iterator[Call]], _Build], ...]] = (
    (("erf",), _erf_forms, _gelu),
    (("tanh",), _tanh_forms, _gelu),
    (("sigmoid",), _sigmoid_forms, _swish),
    (("clip",), _gate_forms, _hard_swish),
    (("mean",), _norm_forms, _layer_norm),
    (("rsqrt",), _rms_forms, _rms_norm),
    (("negative",), _rotary_forms, _rotary),
    (("nn.dense", "nn.matmul", "serde.matmul"), _dense_forms, _dense),
    (("nn.softmax",), _attention_forms, _attention),
)
"""Layers: operators of which each form has one, the forms, and what makes the layer of a match."""
