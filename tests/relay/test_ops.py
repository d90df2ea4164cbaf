"""What holds for every operator, derived from its declaration and samples."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from support.golden import tvm_ops
from support.samples import Symbols, all_samples, as_tensor_types, build, each_array

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any as AnyDim, Dim
from serde.relay.ir.registry import OpDef, Sample, all_ops
from serde.relay.ir.types import TensorType, substitute_type

DECLARED = {name: op for name, op in all_ops().items() if not name.startswith("serde.")}

KEPT = {
    "dyn.broadcast_to": frozenset({(1, 0)}),
    "dyn.full": frozenset({(1, 0)}),
    "dyn.image.resize2d": frozenset({(1, 0)}),
    "dyn.ones": frozenset({(0, 0)}),
    "dyn.reshape": frozenset({(1, 0)}),
    "dyn.sparse_to_dense": frozenset({(1, 0)}),
    "dyn.squeeze": frozenset({(1, 0)}),
    "dyn.strided_slice": frozenset({(1, 0), (2, 0), (3, 0)}),
    "dyn.tile": frozenset({(1, 0)}),
    "dyn.topk": frozenset({(1, 0)}),
    "dyn.zeros": frozenset({(0, 0)}),
    "gather_nd": frozenset({(1, 0)}),
    "scatter_nd": frozenset({(1, 0)}),
    "serde.dft": frozenset({(0, 2), (0, 3)}),
    "serde.gather_nd": frozenset({(1, 1), (1, 2)}),
}
"""Axes of variables whose length makes the rank of the result, or tells what the data are."""

NEEDS_LENGTHS = [("squeeze", None)]
"""(operator, axis) of samples whose rank depends on which lengths are 1."""

REPEATED = {
    "arange": {"start", "stop", "step"},
    "collapse_sum_to": {"shape"},
    "dyn.broadcast_to": {"shape"},
    "dyn.full": {"shape"},
    "dyn.image.resize2d": {"size", "roi"},
    "dyn.nn.pad": {"pad_width"},
    "dyn.nn.upsampling": {"scale_h", "scale_w"},
    "dyn.nn.upsampling3d": {"scale_d", "scale_h", "scale_w"},
    "dyn.one_hot": {"depth"},
    "dyn.ones": {"shape"},
    "dyn.reshape": {"newshape"},
    "dyn.squeeze": {"axis"},
    "dyn.strided_slice": {"begin", "end", "strides"},
    "dyn.tile": {"reps"},
    "dyn.topk": {"k"},
    "dyn.zeros": {"shape"},
    "vision.get_valid_counts": {"score_threshold"},
}
"""Attributes of TVM that say again what an operand says; ours have the operand alone."""

ZERO_POINTS_FIRST = {
    "qnn.batch_matmul",
    "qnn.contrib_dense_pack",
    "qnn.conv2d",
    "qnn.conv2d_transpose",
    "qnn.dense",
}
"""Operators that TVM documents with each scale before its zero point, but calls otherwise."""


@pytest.mark.thin(2)
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_inference_equals_kernel(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    types = as_tensor_types(built.call.type)
    results = built.run()
    assert len(types) == len(results)
    pairs = zip(types, results, strict=True)
    for type_, result in [(type_, item) for type_, each in pairs for item in each_array(each)]:
        assert type_.dtype == result.dtype.name
        assert type_.rank == result.ndim
        for dim, length in zip(type_.shape, result.shape, strict=True):
            assert dim in (length, AnyDim())


@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_kernel_leaves_operands_alone(definition: OpDef, given: Sample) -> None:
    built = build(definition, given)
    before = [[array.copy() for array in each_array(value)] for value in built.arrays]
    built.run()
    for value, kept in zip(built.arrays, before, strict=True):
        for array, old in zip(each_array(value), kept, strict=True):
            np.testing.assert_array_equal(array, old)


@pytest.mark.thin(2)
@pytest.mark.parametrize("shared", [False, True], ids=["axes", "lengths"])
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_symbolic_inference_equals_concrete(definition: OpDef, given: Sample, shared: bool) -> None:
    symbols = Symbols(shared=shared, kept=KEPT.get(definition.name, frozenset()))
    if (definition.name, given.attrs.get("axis")) in NEEDS_LENGTHS:
        with pytest.raises(TypeInferenceError):
            build(definition, given, symbols)
        return
    concrete = as_tensor_types(build(definition, given).call.type)
    symbolic = as_tensor_types(build(definition, given, symbols).call.type)
    assert len(symbolic) == len(concrete)
    for found, expected in zip(symbolic, concrete, strict=True):
        back = substitute_type(found, symbols.values)
        assert isinstance(back, TensorType)
        assert back.dtype == expected.dtype
        assert back.rank == expected.rank
        assert all(map(_same_or_anonymous, back.shape, expected.shape))


def _same_or_anonymous(found: Dim, expected: Dim) -> bool:
    return isinstance(found, AnyDim) or found == expected


@pytest.mark.wide
@pytest.mark.parametrize("name", list(DECLARED))
def test_operator_is_tvms(name: str) -> None:
    assert name in tvm_ops()


@pytest.mark.wide
@pytest.mark.parametrize("name", list(DECLARED))
def test_operands_are_tvms(name: str) -> None:
    operands = [f"({o.name} tuple)" if o.variadic else o.name for o in DECLARED[name].operands]
    expected = tvm_ops()[name]["inputs"]
    if name in ZERO_POINTS_FIRST:
        expected = [*expected[:2], *sorted(expected[2:], key=lambda each: each.endswith("scale"))]
    assert operands == expected


@pytest.mark.wide
@pytest.mark.parametrize("name", list(DECLARED))
def test_attribute_order_is_tvms(name: str) -> None:
    theirs = [a for a in tvm_ops()[name]["attrs"] if a not in REPEATED.get(name, ())]
    assert list(DECLARED[name].attributes) == theirs


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "attribute"),
    [(name, attribute) for name, op in DECLARED.items() for attribute in op.attributes],
)
def test_attribute_default_is_tvms(name: str, attribute: str) -> None:
    ours = DECLARED[name].attributes[attribute]
    text = tvm_ops()[name]["attrs"][attribute]
    if text.endswith(" required"):
        assert ours.required
        return
    text = text.split("=", 1)[1].replace("unconstrained", "None")
    default: Any = ast.literal_eval(text)
    assert ours.default == ours.convert(default)


@pytest.mark.wide
@pytest.mark.parametrize("name", list(DECLARED))
def test_metadata_class_is_tvms(name: str) -> None:
    facts = tvm_ops()[name]
    expected = facts["attrs_key"] if facts.get("attrs_type_declared") is False else None
    assert DECLARED[name].meta_class == expected


@pytest.mark.wide
@pytest.mark.parametrize("name", list(all_ops()))
def test_operator_is_documented_and_sampled(name: str) -> None:
    definition = all_ops()[name]
    assert definition.doc
    assert definition.samples
