"""Traits, each a property of the kernel: what is claimed holds, and what holds is claimed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import support.properties as properties
import support.sensitivity as sensitivity
from support.properties import Property, built_samples, holds, shows

from serde.core.weights import ArrayWeight
from serde.errors import RelayError
from serde.relay.ir import traits
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from serde.relay.ir.registry import Array, OpDef, all_ops, call, get, relay_op, sample
from serde.relay.ir.traits import (
    Arithmetic,
    BitLevel,
    Cases,
    Commutative,
    Decompresses,
    Discontinuous,
    Elementwise,
    Float32,
    Fractions,
    InRange,
    Layout,
    Linear,
    Moves,
    Ordering,
    Quantized,
    Random,
    Reduction,
    Regions,
    Rescales,
    Reshape,
    SameAxes,
    SameType,
    Selects,
    Trait,
    Truth,
    TypeOnly,
    Values,
)
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import post_order
from serde.relay.run.computed import ComputedWeight
from serde.relay.transform import channels_first
from serde.relay.transform.layout_rules import RULES

Given = Callable[[OpDef], Property]


def _always(shown: Property) -> Given:
    return lambda definition: shown


@dataclass(frozen=True)
class Definition:
    """What a trait is.

    Attributes:
        kinds: The traits, one of which claims the property.
        given: The property, of an operator that claims it.
        found: The property by which others are found that ought to claim it; None for the same.
        unclaimed: Operators that have it and do not claim it, and why.
        unshown: Operators that claim it though no sample shows it, and why.
        somewhere: Whether it need hold on one sample only.
        among: Of which operators it is asked.
    """

    kinds: tuple[type[Trait], ...]
    given: Given
    found: Given | None = None
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    unshown: Mapping[str, str] = field(default_factory=dict)
    somewhere: bool = False
    among: Callable[[OpDef], bool] = lambda definition: True

    def claimed(self, definition: OpDef) -> bool:
        """Whether an operator claims the property."""
        return definition.has(*self.kinds)

    def has(self, definition: OpDef, given: Given) -> bool:
        """Whether an operator has the property."""
        return (shows if self.somewhere else holds)(definition, given(definition))


def _named(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


def _same_axes(definition: OpDef) -> Property:
    said = definition.trait(SameAxes)
    return properties.has_same_axes(said or SameAxes(("axis",)))


def _layout(definition: OpDef) -> Property:
    said = definition.trait(Layout)
    if said is None:
        names = [name for name in ("layout", "data_layout") if name in definition.attributes]
        said = Layout(names[0])
    return properties.has_layout(said)


def _values(definition: OpDef) -> Property:
    said = definition.trait(Values)
    return properties.is_value_of((0,) if said is None else said.operands)


def _arithmetic(definition: OpDef) -> Property:
    said = definition.trait(Arithmetic)
    if said is not None and said.bounded:
        return lambda built: not sensitivity.grows(built)
    return sensitivity.grows


_EDGES = "jumps at the edges of an image or a bin, where no value of a net lies but by chance"
_BASIS = "the sign or the order of vectors is free"
_CONSTANT = "of what is constant, rounding is all that is left to be scaled"
_PRODUCT = "no filters: both operands are computed, or the weight is sparse"
_MARKS = _named(
    "a mark on any value, tuples included, that others look for where it stands",
    "annotation.checkpoint annotation.compiler_begin annotation.compiler_end "
    "annotation.stop_fusion device_copy on_device",
)

DEFINITIONS = {
    "elementwise": Definition(
        (Elementwise,),
        _always(properties.is_elementwise),
        unclaimed={
            **_named("the second operand gives a dtype and does not broadcast", "cast_like"),
            **_MARKS,
        },
    ),
    "commutative": Definition((Commutative,), _always(properties.is_commutative)),
    "same type": Definition(
        (SameType,),
        _always(properties.keeps_type),
        among=lambda op: op.has(Elementwise, SameAxes) and op.name not in RULES,
    ),
    "random": Definition((Random,), _always(properties.is_random)),
    "moves": Definition(
        (Moves,),
        _always(properties.is_move),
        unclaimed={
            **_named("zeros where an axis does not divide into blocks", "layout_transform"),
            **_MARKS,
        },
    ),
    "reshape": Definition((Reshape,), _always(properties.is_reshape), unclaimed=_MARKS),
    "truth": Definition(
        (Truth,),
        _always(properties.is_truth),
        unclaimed=_named(
            "always the same number", "dyn.ones dyn.zeros ones ones_like zeros zeros_like"
        ),
    ),
    "selects": Definition(
        (Selects,),
        _always(properties.is_selection),
        among=lambda op: op.has(Selects),  # shapes that operands hold are open, too
    ),
    "values": Definition(
        (Values, Moves, Reshape),
        _values,
        found=_always(properties.is_value_of((0,), 1e-6)),
        somewhere=False,
        unclaimed={
            **_MARKS,
            **_named("only as far as float64 goes", "serde.gelu serde.hard_swish"),
            **_named("a key, or parts of one", "random.threefry_generate"),
            **_named("nothing but the filler", "zeros_like"),
            **_named("a table beside it", "nn.sparse_transpose serde.multibox_target"),
            **_named("rows chosen by their scores", "vision.regular_non_max_suppression"),
        },
        unshown={
            **_named("the tuple holds indices, too", "adv_index"),
            **_named("to narrow integers, and to truths, numbers wrap", "cast"),
            **_named("asked for indices alone, it has no values", "dyn.topk topk"),
            **_named("what is written may be added instead", "scatter_elements scatter_nd"),
        },
    ),
    "pieces": Definition(
        (Elementwise, Reshape, Reduction, SameAxes),
        _always(properties.follows_row_rule),
        found=_always(properties.comes_in_pieces),
        unclaimed={
            **_MARKS,
            **_named(
                "rows are images, regions or sequences of a batch, which a weight is not",
                """dyn.one_hot image.affine_grid image.dilation2d image.grid_sample image.resize1d
                nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_max_pool1d
                nn.adaptive_max_pool2d nn.avg_pool1d nn.conv1d nn.conv1d_transpose
                nn.conv2d_transpose nn.correlation nn.deformable_conv2d nn.global_avg_pool2d
                nn.global_max_pool2d nn.max_pool1d nn.nll_loss searchsorted serde.affine_grid
                serde.attention serde.box_nms serde.col2im serde.deform_conv2d
                serde.deformable_psroi_pool serde.det serde.grid_sample serde.multibox_detection
                serde.psroi_pool serde.qlinear_conv2d serde.rms_norm serde.roi_align
                serde.roi_align_rotated serde.rotary_embedding serde.tensor_scatter
                vision.roi_align vision.roi_pool vision.yolo_reorg""",
            ),
            **_named(
                "a product of weights would be read whole for each piece",
                """nn.batch_matmul nn.dense nn.internal.sparse_dense_padded nn.matmul
                qnn.batch_matmul qnn.contrib_dense_pack qnn.dense serde.matmul
                serde.matmul_integer serde.qlinear_matmul""",
            ),
            **_named(
                "axis 0 of its samples alone is not what it is about",
                """adv_index fixed_point_multiply_per_axis gather qnn.concatenate
                serde.dequantize_linear serde.gather_nd serde.quantize_linear take""",
            ),
        },
        unshown={
            **_named("more is done along axis 0", "nn.pad nn.mirror_pad"),
            **_named("the result is a tuple", "nn.batch_norm nn.dropout"),
        },
    ),
    "same axes": Definition(
        (SameAxes,),
        _same_axes,
        unclaimed=_named("elements are left out", "serde.compress serde.unique"),
        among=lambda op: (
            "axis" in op.attributes
            and op.name not in RULES
            and (op.has(SameAxes) or not op.has(Elementwise, Reduction))
        ),
    ),
    "same axes, none named": Definition(
        (SameAxes,),
        lambda op: properties.has_same_axes(op.trait(SameAxes) or SameAxes()),
        unclaimed={
            **_named("its second operand is in the order of the axes", "dyn.broadcast_to"),
            **_MARKS,
        },
        among=lambda op: (
            "axis" not in op.attributes and op.name not in RULES and not op.has(Elementwise)
        ),
    ),
    "reduction": Definition(
        (Reduction,),
        _always(properties.is_reduction),
        among=lambda op: {"axis", "keepdims", "exclude"} <= op.attributes.keys(),
    ),
    "layout": Definition(
        (Layout,), _layout, among=lambda op: bool({"layout", "data_layout"} & op.attributes.keys())
    ),
    "linear": Definition(
        (Linear,),
        _always(properties.is_linear),
        unclaimed={
            **_named(
                _PRODUCT,
                """multiply nn.batch_matmul nn.internal.sparse_dense_padded nn.matmul
                nn.sparse_conv2d nn.sparse_dense serde.matmul""",
            ),
            **_named("a loss", "nn.cross_entropy nn.cross_entropy_with_logits"),
            **_named("of data and a window, or a gradient", "nn.conv2d_backward_weight stft"),
            **_named(
                "of a weight in blocks",
                "nn.contrib_conv2d_NCHWc nn.contrib_dense_pack nn.contrib_depthwise_conv2d_NCHWc",
            ),
        },
    ),
    "decisions": Definition(
        (Ordering, Discontinuous),
        _always(sensitivity.decides),
        found=_always(sensitivity.decides_on_floats),
        somewhere=True,
        unclaimed={
            **_named(
                _EDGES,
                """image.crop_and_resize image.grid_sample nn.deformable_conv2d sequence_mask
                serde.grid_sample serde.roi_align serde.roi_align_rotated vision.roi_align""",
            ),
            **_named(_BASIS, "serde.eig serde.eigh serde.lq serde.slogdet serde.svd"),
            **_named(
                _CONSTANT, "nn.layer_norm serde.lp_normalization serde.mean_variance_normalization"
            ),
        },
        among=lambda op: not op.has(Random),
        unshown={
            **_named("samples are of integers", "unique invert_permutation"),
            **_named("places are integers", "nn.sparse_transpose sparse_fill_empty_rows"),
            **_named("values are continuous, but not which of them were equal", "sort"),
        },
    ),
    "bit level": Definition(
        (BitLevel,),
        _always(sensitivity.depends_on_bits),
        somewhere=True,
        unclaimed={
            **_named("a code of few bits is widened by its own table", "qnn.dequantize"),
            **_named("boxes as near as rounding match another", "serde.multibox_target"),
        },
        unshown={
            **_named("keys are integers", "random.threefry_generate random.threefry_split"),
            **_named(
                "differs where a number that is drawn lies between two roundings",
                """random.multinomial serde.bernoulli serde.multinomial serde.random_gamma
                serde.random_poisson""",
            ),
        },
    ),
    "arithmetic": Definition(
        (Arithmetic,),
        _arithmetic,
        found=_always(sensitivity.grows),
        somewhere=True,
        unclaimed={
            **_named("integers only inside quantised operators", "fixed_point_multiply"),
            **_named(
                "spelled out where integers are asked about",
                "serde.cumprod serde.matmul serde.reduce_l1 serde.reduce_sum_square",
            ),
            **_named("of images", "image.dilation2d"),
        },
        unshown=_named("of the least number alone, which wraps", "abs"),
        among=lambda op: op.name != "dyn.zeros",  # Its operand is the shape of the result.
    ),
    "rescales": Definition((Rescales,), _always(sensitivity.rescales), somewhere=True),
    "quantized": Definition(
        (Quantized,),
        _always(sensitivity.has_codes),
        unclaimed=_named("a key is no code", "random.normal"),
        unshown=_named(
            "of which scale and zero point are results", "serde.dynamic_quantize_linear"
        ),
        among=lambda op: "simulated" not in op.name,  # Codes that are kept as floats.
        somewhere=True,
    ),
}


def _claims() -> Iterator[Any]:
    for title, definition in DEFINITIONS.items():
        for name, op in all_ops().items():
            if definition.claimed(op) and definition.among(op):
                yield pytest.param(title, op, id=f"{title}-{name}")


@pytest.mark.thin(2)
@pytest.mark.parametrize(("title", "op"), list(_claims()))
def test_what_is_claimed_holds(title: str, op: OpDef) -> None:
    definition = DEFINITIONS[title]
    held = definition.has(op, definition.given)
    assert held != (op.name in definition.unshown), definition.unshown.get(op.name, "not so")


@pytest.mark.wide
@pytest.mark.parametrize("title", DEFINITIONS)
def test_what_holds_is_claimed_or_named_with_a_reason(title: str) -> None:
    definition = DEFINITIONS[title]
    found = {
        name
        for name, op in all_ops().items()
        if not definition.claimed(op) and definition.among(op)
        if definition.has(op, definition.found or definition.given)
    }
    assert found == set(definition.unclaimed)


@pytest.mark.parametrize(
    "name", ["broadcast_to", "concatenate", "stack", "strided_slice", "transpose"]
)
def test_rows_of_what_has_a_rule_of_its_own_join_to_the_whole(name: str) -> None:
    assert holds(get(name), properties.follows_row_rule)


@pytest.mark.parametrize("operand", [0, 1, 2])
def test_of_operands_whose_type_alone_matters_values_do_not(operand: int) -> None:
    def claims(op: OpDef) -> bool:
        said = op.trait(TypeOnly)
        return said is not None and operand in said.operands

    unclaimed = {
        "dyn.image.resize2d",  # A region that its samples do not ask for.
        "qnn.softmax",  # A zero point, which a softmax takes off again.
        "serde.lut_to_sparse",  # A mask whose ones are all that is counted in its samples.
        "serde.multibox_target",  # Scores, unless hard examples are mined.
        "vision.all_class_non_max_suppression",  # Boxes none of which overlap in its samples.
    }
    shown = properties.is_type_only(operand)
    found = {name for name, op in all_ops().items() if holds(op, shown)}
    claimed = {name for name, op in all_ops().items() if claims(op)}
    assert claimed <= found
    assert found - claimed <= unclaimed


@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(Moves)])
def test_moves_of_all_elements_lose_none(name: str) -> None:
    said = get(name).trait(Moves)
    assert said is not None
    assert not said.all or holds(get(name), properties.moves_all)


@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(Decompresses)])
def test_what_is_decompressed_is_larger(name: str) -> None:
    assert shows(get(name), sensitivity.unpacks)


@pytest.mark.parametrize("end", [0, 1], ids=["least", "greatest"])
@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(InRange)])
def test_both_ends_of_a_range_are_taken(name: str, end: int) -> None:
    said = get(name).trait(InRange)
    assert said is not None
    for built in built_samples(get(name)):
        bounds = dict(said.rule(built.call, {}))

        def limited(argument: Any, value: Any, bounds: Any = bounds) -> Any:
            if isinstance(argument, Tuple) and isinstance(value, tuple):
                pairs = zip(argument.fields, value, strict=True)
                return tuple(limited(field, each, bounds) for field, each in pairs)
            if argument not in bounds or value is None:
                return value
            return np.full_like(value, min(bounds[argument][end], 100))

        pairs = zip(built.call.args, built.operands, strict=True)
        properties.evaluate(built, [limited(*pair) for pair in pairs])


@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(Regions)])
def test_regions_with_a_number_have_a_column_for_it(name: str) -> None:
    said = get(name).trait(Regions)
    assert said is not None
    columns = {built.operands[1].shape[-1] for built in built_samples(get(name))}
    assert columns == ({4} if not said.numbered else {6} if "rotated" in name else {5})


@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(Fractions)])
def test_fractions_are_between_0_and_1(name: str) -> None:
    said = get(name).trait(Fractions)
    assert said is not None
    for built in built_samples(get(name)):
        given = [built.operands[place] for place in said.operands if place < len(built.operands)]
        assert all(np.all((each >= -1) & (each <= 1)) for each in given if each is not None)


@pytest.mark.parametrize("name", [name for name, op in all_ops().items() if op.has(Cases)])
def test_cases_are_reached_by_some_samples(name: str) -> None:
    definition = get(name)
    said = definition.trait(Cases)
    assert said is not None
    found: dict[str, set[bool]] = {}
    for built in built_samples(definition):
        result = properties.evaluate(built, built.operands)
        given = result[0] if len(result) == 1 else result
        for part, reached in said.rule(built.call.attrs, built.operands, given):
            found.setdefault(part, set()).add(reached)
    assert any(True in seen for seen in found.values())


def test_groups_of_wide_operators_are_these() -> None:
    said = [op.trait(Float32) for op in all_ops().values()]
    groups = {each.group for each in said if each is not None}
    assert groups == {"range", "norms", "reductions", "resizing"}


def test_every_trait_is_stated_by_some_operator() -> None:
    stated = {kind.__name__ for op in all_ops().values() for kind in op.traits}
    kinds = {name for name in traits.__all__ if inspect.isclass(getattr(traits, name))}
    kinds -= {"Range", "RangeRule"}  # Python 3.10 takes tuple[int, int] for a class.
    assert stated == kinds - {"FusionPattern", "Trait"}


def test_a_trait_is_not_stated_twice() -> None:
    declare = relay_op(
        "serde.never", traits=(Values(0), Values(1)), infer=lambda x: x, samples=[sample((2,))]
    )
    with pytest.raises(RelayError, match="a trait is stated twice"):
        declare(_kernel)


def _kernel(data: Array) -> Array:
    return data


ELEMENTWISE = [name for name, op in all_ops().items() if op.has(Elementwise)]


def _applied(name: str, x: Expr) -> Expr:
    """Return a call of an elementwise operator on `x` in the dtypes of its first sample."""
    built = built_samples(get(name))[0]
    operands = [
        Constant(value) if value.ndim == 0 else call("cast", x, dtype=value.dtype.name)
        for value in built.operands
    ]
    return call(name, *operands, **built.call.attrs)


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_layout_of_images_goes_through_elementwise_operators(name: str) -> None:
    """One transpose in front of the net, one behind it, and none between."""
    x = Var("x", TensorType((1, 9, 8, 4), "float32"))
    weights = [Var(f"w{i}", TensorType((3, 3, 4, 4), "float32")) for i in range(2)]
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "padding": (1, 1, 1, 1)}
    first = call("nn.conv2d", x, weights[0], **layouts)
    between = call("cast", _applied(name, first), dtype="float32")
    body = call("nn.conv2d", between, weights[1], **layouts)
    result = channels_first().transform(Function([x, *weights], body))
    moved = [
        node
        for node in post_order(result.body)
        if isinstance(node, Call) and node.op is get("transpose") and node.args[0] not in weights
    ]
    assert len(moved) == 2


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_weights_are_computed_in_pieces(name: str) -> None:
    w = Var("w", TensorType((12, 4), "float32"))
    values = ArrayWeight(np.random.default_rng(5).uniform(0.1, 0.9, (12, 4)).astype(np.float32))
    weight = ComputedWeight(_applied(name, w), {w: values})
    assert not weight.whole
    pieces = np.concatenate([weight.rows(0, 5), weight.rows(5, 12)])
    assert properties.agree(pieces, weight.array(), 1e-6)
