"""MXNet's suppression of boxes, raised from the selections that exporters to ONNX write for it.

ONNX selects boxes by a list whose length is known when the model runs. Behind it, exporters put
what is selected back to its place, sort it, and fill it up: a tensor of known shape, which is
what ``serde.box_nms`` gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from serde.core import Array, Weight, dataclass, replace
from serde.relay.ir import Dim, OpDef, TensorType, call, is_call, post_order
from serde.relay.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var, const
from serde.relay.ir.leaves import known_shape
from serde.relay.transform.compose import Match, Pattern, same_calls
from serde.relay.transform.fold_shape import MAX_VALUES

__all__ = ["box_nms_patterns"]

_MOST_READ = 64
"""Elements of a weight that may be one of the numbers of a suppression."""


def box_nms_patterns(params: Mapping[str, Weight]) -> tuple[Pattern, ...]:
    """Return the patterns; `params` are the weights, of which thresholds may be some."""
    found = []
    kinds = ("", "best", "filled"), (False, True), ("", "named", "apart"), (False, True)
    for best, center, classes, spread in itertools.product(*kinds):
        found.append(_sorted_pattern(_Form(best, center, classes, spread), params))
    return (*found, *(_padded_pattern(center, params) for center in (False, True)))


@dataclass(frozen=True)
class _Form:
    """How a suppression is spelled.

    Attributes:
        best: Whether the best boxes are taken beforehand ("best"), and the result is filled up to
            the number of all ("filled").
        center: Whether boxes are centres with width and height.
        classes: Whether rows name a class, of which one is the background ("named"), and boxes
            of others do not suppress each other ("apart").
        spread: Whether rows are looked up element by element, as ONNX 11 does.
        start: Where a row has its box.
        score: Where it has its score.
        class_: Where it has its class.
        background: The class that does not take part.
        least: The score above which a box takes part.
        number: How many boxes there are.
        taken: How many of them take part at most.
    """

    best: str = ""
    center: bool = False
    classes: str = ""
    spread: bool = False
    start: int = 1
    score: int = 0
    class_: int = 5
    background: float = 77.0
    least: float = 0.125
    number: int = 10
    taken: int = 10


_OPERANDS = ("data", "nothing", "most", "overlap", "least")


def _sorted_pattern(form: _Form, params: Mapping[str, Weight]) -> Pattern:
    """Return what scatters the scores that stay, and sorts the rows by them."""
    form = replace(form, taken=4 if form.best else 10)
    types = [TensorType((2, 10, 6), "float32"), TensorType((2, form.taken), "float32")]
    types += [TensorType((1,), "int64"), *[TensorType((1,), "float32")] * 2]
    free = [Var(name, type_) for name, type_ in zip(_OPERANDS, types, strict=True)]
    template = _sorted_rows(form, *free)
    numbers = (node for node in post_order(template) if isinstance(node, Constant))
    captures = frozenset(node for node in numbers if node.data.size == 1 and _role(node))

    def build(match: Match) -> Expr | None:
        return _raise_from_sorted(form, match, template, params)

    return Pattern("serde.box_nms", template, build, captures)


def _sorted_rows(
    form: _Form, data: Expr, nothing: Expr, most: Expr, overlap: Expr, least: Expr
) -> Call:
    """Spell the suppression as serde writes it to ONNX and reads it."""
    score: Expr = _column(data, form.score)
    class_: Expr = score
    if form.classes:
        class_ = _column(data, form.class_)
        background = call("equal", class_, const(form.background, "float32"))
        score = call("where", background, const(-np.inf, "float32"), score)
    rows = data
    if form.best:
        best = _best(score, form.taken)
        score, rows = TupleGetItem(best, 0), _gather_rows(form, data, best)
        class_ = _column(rows, form.class_) if form.classes == "apart" else class_
    marks = call("expand_dims", score, axis=1)
    if form.classes == "apart":
        names = TupleGetItem(call("serde.unique", class_), 0)
        same = call(
            "equal", call("expand_dims", class_, axis=1), call("expand_dims", names, axis=1)
        )
        marks = call("where", same, marks, const(-np.inf, "float32"))
    corners = _ordered_corners(rows, form)
    found = call("serde.non_max_suppression", corners, marks, most, overlap, least)
    place = call("take", found, const(np.array([0, 2]), "int64"), axis=1, mode="fast")
    scores = call("serde.gather_nd", score, place)
    kept = _scatter(nothing, place, scores)
    order = _best(kept, form.taken)
    stays = call("greater", TupleGetItem(order, 0), const(form.least, "float32"))
    minus = const(-1.0, "float32")
    result = call(
        "where", call("expand_dims", stays, axis=2), _gather_rows(form, rows, order), minus
    )
    if form.best == "filled":
        result = _pad_rows(result, form.number - form.taken, minus)
    return result


def _column(rows: Expr, index: int) -> Call:
    return call("take", rows, const(index, "int64"), axis=2, mode="fast")


def _columns(rows: Expr, begin: int, end: int, axis: int = 2) -> Call:
    return call(
        "strided_slice", rows, begin=(begin,), end=(end,), strides=(1,), axes=(axis,)
    )  # fmt: skip


def _best(scores: Expr, count: int) -> Call:
    return call("topk", scores, k=count, axis=1, ret_type="both", dtype="int64")


def _scatter(base: Expr, place: Expr, values: Expr) -> Call:
    columns = call("transpose", place, axes=(1, 0))
    return call("scatter_nd", base, columns, values, mode="update")


def _pad_rows(rows: Expr, count: int, value: Expr) -> Call:
    """Return rows with some more behind those of each image, all of one value."""
    return call("nn.pad", rows, value, pad_width=((0, 0), (0, count), (0, 0)))


def _gather_rows(form: _Form, rows: Expr, best: Expr) -> Expr:
    """Return the rows at the places of the best."""
    places = call("expand_dims", TupleGetItem(best, 1), axis=2)
    if not form.spread:
        return call("serde.gather_nd", rows, places, batch_dims=1)
    batch, _, width = known_shape(rows)
    shape = (batch, form.taken, width)
    return call("gather", rows, call("broadcast_to", places, shape=shape), axis=1)


def _ordered_corners(rows: Expr, form: _Form) -> Expr:
    """Return two corners each; where the ends are swapped, the box is empty."""
    boxes = _columns(rows, form.start, form.start + 4)
    low, high = _columns(boxes, 0, 2), _columns(boxes, 2, 4)
    if form.center:
        reach = call("multiply", high, const(0.5, "float32"))
        low, high = call("subtract", low, reach), call("add", low, reach)
    return call("concatenate", Tuple([low, call("maximum", low, high)]), axis=2)


def _raise_from_sorted(
    form: _Form, match: Match, template: Expr, params: Mapping[str, Weight]
) -> Expr | None:
    """Return the suppression, if what it is spelled as is just what was found."""
    data, nothing, most, overlap, least = (match.bound[name] for name in _OPERANDS)
    limits = [_numbers(each, params) for each in (most, overlap, least)]
    if any(each is None or each.size != 1 for each in limits) or not _rows(data):
        return None
    count, bound, lowest = (each.reshape(()) for each in limits if each is not None)
    batch, number, _ = known_shape(data)
    form = _read_form(form, match, template, number)
    if not _all_least(nothing, (batch, form.taken), params) or count < form.taken:
        return None
    again = _sorted_rows(form, data, nothing, most, overlap, least)
    if np.float32(form.least) != lowest or not same_calls(again, match.root):
        return None
    if form.background != int(form.background):
        return None
    result = call(
        "serde.box_nms", data, iou_threshold=float(str(bound)), score_threshold=form.least,
        top_k=form.taken if form.best else -1, coord_start=form.start, score_index=form.score,
        id_index=form.class_ if form.classes else -1, background_id=int(form.background),
        force_suppress=form.classes != "apart", in_format=_FORMS[form.center],
        out_format=_FORMS[form.center],
    )  # fmt: skip
    if form.best == "best":
        return _columns(result, 0, form.taken, 1)
    return result


_FORMS = ("corner", "center")


def _read_form(form: _Form, match: Match, template: Expr, number: Dim) -> _Form:
    """Return the numbers that a match has in the places of those of the template."""
    found: dict[str, float] = {}
    for key, node in match.nodes.items():
        if isinstance(key, Constant) and isinstance(node, Constant) and node.data.size == 1:
            found.setdefault(_role(key), float(str(node.data.reshape(()))))
        elif isinstance(key, Call) and isinstance(node, Call) and isinstance(key.op, OpDef):
            if key.op.name == "strided_slice" and key.attrs["begin"] == (form.start,):
                found["start"] = node.attrs["begin"][0]
            elif key.op.name == "topk" and isinstance(node.attrs["k"], int):
                found["taken"] = node.attrs["k"]
    taken = int(found.get("taken", form.taken))
    return replace(
        form,
        start=int(found.get("start", form.start)),
        score=int(found.get("score", form.score)),
        class_=int(found.get("class_", form.class_)),
        background=found.get("background", form.background),
        least=found.get("least", form.least),
        number=number if isinstance(number, int) else taken,
        taken=taken,
    )


def _role(constant: Constant) -> str:
    """Return what a number of the template stands for."""
    roles = _ROLES.get(constant.data.dtype.name, {})
    return roles.get(constant.data.item(), "")


_ROLES: Mapping[str, Mapping[float, str]] = {
    "int64": {0: "score", 5: "class_"},
    "float32": {77.0: "background", 0.125: "least"},
}
"""Numbers of a template by dtype: those that a form has by default."""


def _rows(data: Expr) -> bool:
    type_ = data.type
    return isinstance(type_, TensorType) and type_.rank == 3 and type_.dtype == "float32"


def _all_least(nothing: Expr, shape: Sequence[Dim], params: Mapping[str, Weight]) -> bool:
    """Whether a tensor of a shape holds minus infinity alone."""
    if not isinstance(nothing.type, TensorType) or nothing.type.shape != tuple(shape):
        return False
    if is_call(nothing, "full"):
        nothing = nothing.args[0]
    numbers = _numbers(nothing, params, MAX_VALUES)
    return numbers is not None and bool(np.isneginf(numbers).all())


def _numbers(x: Expr, params: Mapping[str, Weight], most: int = _MOST_READ) -> Array | None:
    """Return the few numbers that a constant or weight is; None for anything else."""
    if isinstance(x, Constant):
        return x.data
    weight = params.get(x.name_hint) if isinstance(x, Var) else None
    return weight.array() if weight is not None and weight.size <= most else None


_PADDED = ("data", "most", "overlap", "least", "filler")


def _padded_pattern(center: bool, params: Mapping[str, Weight]) -> Pattern:
    """Return what MXNet's own exporter writes: rows are looked up, -1 behind them."""
    form = _Form(center=center)
    types = [TensorType((2, 10, 6), "float32"), TensorType((1,), "int64")]
    types += [*[TensorType((1,), "float32")] * 2, TensorType((), "float32")]
    free = [Var(name, type_) for name, type_ in zip(_PADDED, types, strict=True)]
    template = _padded_rows(form, *free)

    def build(match: Match) -> Expr | None:
        return _raise_from_padded(form, match, template, params)

    return Pattern("serde.box_nms", template, build)


def _padded_rows(
    form: _Form, data: Expr, most: Expr, overlap: Expr, least: Expr, filler: Expr
) -> Call:
    """Spell the suppression as MXNet's exporter does.

    Each box that stays has its rank in the place of the box, all others the number of those that
    stay, where the rows have one more; sorted, the ranks are the order of the rows.
    """
    boxes = _columns(data, form.start, form.start + 4, -1)
    marks = _columns(data, form.score, form.score + 1, -1)
    marks = call("reshape", marks, newshape=(0, 1, -1))
    found = call(
        "serde.non_max_suppression", boxes, marks, most, overlap, least,
        center_point_box=form.center,
    )  # fmt: skip
    place = call("strided_slice", found, begin=(0,), end=(3,), strides=(2,), axes=(-1,))
    rows = call("serde.gather_nd", data, place)
    rows = call("nn.pad", rows, filler, pad_width=((0, 1), (0, 0)))
    count = _columns(call("shape_of", found, dtype="int64"), 0, 1, 0)
    end = call("squeeze", count, axis=(0,))
    ranks = call("arange", const(0, "int64"), end, const(1, "int64"), dtype="int64")
    base = call("broadcast_to", count, shape=known_shape(data)[:2])
    order = _scatter(base, place, ranks)
    first = call("topk", order, k=form.number, is_ascend=True, ret_type="both", dtype="int64")
    return call("serde.take", rows, TupleGetItem(first, 0))


def _raise_from_padded(
    form: _Form, match: Match, template: Expr, params: Mapping[str, Weight]
) -> Expr | None:
    """Return the suppression of boxes whose corners are in order, as ONNX puts them.

    ONNX limits how many boxes stay, not how many take part.
    """
    data = match.bound["data"]
    limits = [_numbers(match.bound[name], params) for name in _PADDED[1:]]
    if any(each is None or each.size != 1 for each in limits) or not _rows(data):
        return None
    most, bound, lowest, filler = (each.reshape(()) for each in limits if each is not None)
    _, number, width = known_shape(data)
    if not isinstance(number, int) or not isinstance(width, int) or filler != -1:
        return None
    start, score = _starts(match)
    form = replace(form, number=number, start=start, score=score)
    if not same_calls(_padded_rows(form, *(match.bound[name] for name in _PADDED)), match.root):
        return None
    rows, start = data, form.start
    if not form.center:
        ends = _columns(data, start, start + 2), _columns(data, start + 2, start + 4)
        parts = [data, call("minimum", *ends), call("maximum", *ends)]
        rows = call("concatenate", Tuple(parts), axis=2)
        start = width
    result: Expr = call(
        "serde.box_nms", rows, iou_threshold=float(str(bound)), score_threshold=float(str(lowest)),
        coord_start=start, score_index=form.score, in_format=_FORMS[form.center],
        out_format=_FORMS[form.center],
    )  # fmt: skip
    if rows is not data:
        result = _columns(result, 0, width)
    if most < number:
        first = _columns(result, 0, int(most), 1)
        result = _pad_rows(first, number - int(most), const(-1.0, "float32"))
    return result


def _starts(match: Match) -> tuple[int, int]:
    """Return where a match has its boxes and scores."""
    found: dict[int, int] = {}
    for key, node in match.nodes.items():
        if is_call(key, "strided_slice") and isinstance(node, Call):
            width = key.attrs["end"][0] - key.attrs["begin"][0]
            if key.attrs["axes"] == (-1,) and key.attrs["strides"] == (1,):
                found[width] = node.attrs["begin"][0]
    return found[_BOX], found[1]


_BOX = 4
"""Numbers of a box."""
