"""Calls that functions of their operators replace, in other layouts and with other operators."""

from collections.abc import Callable
from typing import Any

import pytest
from support.layout_cases import assert_becomes, assert_same_numbers, names, program

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.attrs import TempOpAttr, get_op_attr
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.transform import AlterOpLayout, CanonicalizeOps

KEY = "FTVMAlterOpLayout"
IMAGE = {"x": "(1, 8, 6, 6)", "w": "(8, 8, 3, 3)", "b": "(8)", "v": "(1, 8, 6, 6)"}
THREE = "padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]"
CONV = f"%9 = nn.conv2d(%x, %w, {THREE});\n"
CHANNELS = f"""%0 = [NCHW>NCHW4c %x];
%9 = nn.conv2d(%0, %w, {THREE}, data_layout="NCHW4c");
"""
LAST = f"""%0 = [NCHW>NHWC %x];
%1 = [OIHW>HWIO %w];
%9 = nn.conv2d(%0, %1, {THREE}, data_layout="NHWC", kernel_layout="HWIO");
"""
Alter = Callable[..., Any]


def _into(data: str, kernel: str) -> Alter:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        new = {**attrs, "data_layout": data, "kernel_layout": kernel}
        return relay.nn.conv2d(*inputs, **new)

    return alter


def _check(alter: Alter, before: str, after: str | None = None, name: str = "nn.conv2d") -> None:
    with TempOpAttr(name, KEY, alter):
        assert_becomes(AlterOpLayout(), IMAGE, before, after)


USERS = {
    "nothing": ("nn.relu(%9)", "%10 = nn.relu(%9); [{}>NCHW %10]"),
    "scalar": ("add(%9, 2f)", "%10 = add(%9, 2f); [{}>NCHW %10]"),
    "other operand": ("add(%9, %v)", "%10 = [NCHW>{} %v]; %11 = add(%9, %10); [{}>NCHW %11]"),
    "softmax": ("nn.softmax(%9, axis=1)", "%10 = [{}>NCHW %9]; nn.softmax(%10, axis=1)"),
    "flatten": ("nn.batch_flatten(%9)", "%10 = [{}>NCHW %9]; nn.batch_flatten(%10)"),
    "pool": (
        "nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2])",
        '%10 = nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2], layout="{}"); [{}>NCHW %10]',
    ),
    "global pool": (
        "nn.global_avg_pool2d(%9)",
        '%10 = nn.global_avg_pool2d(%9, layout="{}"); [{}>NCHW %10]',
    ),
    "tuple": ("(%9, %b)", "%10 = [{}>NCHW %9]; (%10, %b)"),
    "concatenate": (
        "%10 = nn.relu(%9); %11 = (%9, %10); concatenate(%11, axis=0)",
        "%10 = nn.relu(%9); %11 = (%9, %10); %12 = concatenate(%11, axis=0); [{}>NCHW %12]",
    ),
    "concatenate with another": (
        "%11 = (%v, %9); concatenate(%11, axis=1)",
        "%10 = [{}>NCHW %9]; %11 = (%v, %10); concatenate(%11, axis=1)",
    ),
    "batch's split": (
        "%10 = concatenate((%9, %9), axis=0); %11 = split(%10, indices_or_sections=2, axis=0); "
        "%11.1",
        "%10 = concatenate((%9, %9), axis=0); %11 = split(%10, indices_or_sections=2, axis=0); "
        "%12 = %11.1; [{}>NCHW %12]",
    ),
    "three in a row": (
        "%10 = nn.relu(%9); %11 = tanh(%10); sigmoid(%11)",
        "%10 = nn.relu(%9); %11 = tanh(%10); %12 = sigmoid(%11); [{}>NCHW %12]",
    ),
    "two results": (
        "%10 = nn.relu(%9); %11 = tanh(%10); (%10, %11)",
        "%10 = nn.relu(%9); %11 = tanh(%10); %12 = [{}>NCHW %10]; %13 = [{}>NCHW %11]; (%12, %13)",
    ),
    "dropout": ("%10 = nn.dropout(%9); %10.0", "%10 = nn.dropout(%9); %11 = %10.0; [{}>NCHW %11]"),
    "clip": ("clip(%9, a_min=0f, a_max=6f)", "%10 = clip(%9, a_min=0f, a_max=6f); [{}>NCHW %10]"),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("layout", "kernel", "head"),
    [("NCHW4c", "OIHW", CHANNELS), ("NHWC", "HWIO", LAST)],
    ids=["NCHW4c", "NHWC"],
)
def test_users_of_a_convolution_that_is_altered(
    layout: str, kernel: str, head: str, user: str
) -> None:
    before, after = USERS[user]
    _check(_into(layout, kernel), CONV + before, head + after.replace("{}", layout))


def test_another_operator_may_stand_for_it() -> None:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(1.0)), **attrs)

    _check(alter, CONV + "%9", f"%1 = multiply(%w, 1f); nn.conv2d(%x, %1, {THREE})")


def test_none_leaves_it() -> None:
    mod = program(IMAGE, CONV + "nn.relu(%9)")
    with TempOpAttr("nn.conv2d", KEY, lambda *_: None):
        assert AlterOpLayout().run(mod) == (mod, False)


def test_without_a_function_it_stays() -> None:
    mod = program(IMAGE, CONV + "nn.relu(%9)")
    assert get_op_attr("nn.conv2d", KEY) is None
    assert AlterOpLayout().run(mod) == (mod, False)


def test_an_operator_that_follows_no_layout_may_be_altered() -> None:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        return relay.exp(relay.nn.log_softmax(*inputs, axis=attrs["axis"]))

    before = "%10 = nn.softmax(%x, axis=1); nn.relu(%10)"
    after = "%9 = nn.log_softmax(%x, axis=1); %10 = exp(%9); nn.relu(%10)"
    _check(alter, before, after, "nn.softmax")


def test_it_gets_types_of_each_field() -> None:
    seen = []

    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        seen.append(([each.concrete_shape for each in tinfos], out_type.concrete_shape))
        assert len(inputs) == 1
        return None

    with TempOpAttr("concatenate", KEY, alter):
        AlterOpLayout()(program(IMAGE, "%1 = (%x, %v); concatenate(%1, axis=1)"))
    assert seen == [([(1, 8, 6, 6), (1, 8, 6, 6)], (1, 16, 6, 6))]


def test_it_gets_the_type_of_a_tuple_of_results() -> None:
    seen = []

    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        seen.append(out_type)
        return None

    with TempOpAttr("split", KEY, alter):
        body = "%1 = split(%x, indices_or_sections=2, axis=1); %1.0"
        AlterOpLayout()(program(IMAGE, body))
    part = TensorType((1, 4, 6, 6), "float32")
    assert seen == [TupleType([part, part])]


def test_it_gets_operands_that_have_changed() -> None:
    seen = []

    def second(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        seen.append((inputs[0].checked_type.concrete_shape, tinfos[0].concrete_shape))
        return None

    with TempOpAttr("nn.relu", KEY, second):
        _check(_into("NCHW4c", "OIHW"), CONV + "nn.relu(%9)", CHANNELS + "%10 = nn.relu(%9); "
               "[NCHW4c>NCHW %10]")  # fmt: skip
    assert seen == [((1, 2, 6, 6, 4), (1, 8, 6, 6))]


def test_a_chain_stays_in_its_layout() -> None:
    before = CONV + f"%10 = nn.relu(%9); nn.conv2d(%10, %w, {THREE})"
    after = CHANNELS + (
        f'%10 = nn.relu(%9); %11 = nn.conv2d(%10, %w, {THREE}, data_layout="NCHW4c"); '
        "[NCHW4c>NCHW %11]"
    )
    _check(_into("NCHW4c", "OIHW"), before, after)


def test_a_shared_weight_is_moved_once() -> None:
    before = CONV + f"%10 = nn.relu(%9); nn.conv2d(%10, %w, {THREE})"
    with TempOpAttr("nn.conv2d", KEY, _into("NHWC", "HWIO")):
        found = AlterOpLayout()(program(IMAGE, before))
    assert names(found).count("layout_transform") == 3


@pytest.mark.parametrize("block", [2, 4, 8])
def test_each_convolution_may_have_its_own(block: int) -> None:
    sizes = iter([block, 4])

    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        return _into(f"NCHW{next(sizes)}c", "OIHW")(attrs, inputs, tinfos, out_type)

    move = "" if block == 4 else f"%20 = [NCHW{block}c>NCHW4c %9];"
    second = "%9" if block == 4 else "%20"
    after = CHANNELS.replace("4c", f"{block}c") + (
        f'{move} %11 = nn.conv2d({second}, %w, {THREE}, data_layout="NCHW4c"); [NCHW4c>NCHW %11]'
    )
    _check(alter, CONV + f"nn.conv2d(%9, %w, {THREE})", after)


def test_a_bias_in_blocks() -> None:
    before = CONV + "nn.bias_add(%9, %b)"
    mod = program(IMAGE, before)
    with TempOpAttr("nn.conv2d", KEY, _into("NCHW4c", "OIHW")):
        found = AlterOpLayout()(CanonicalizeOps()(mod))
    after = CHANNELS + (
        "%10 = expand_dims(%b, axis=1, num_newaxis=2); %11 = expand_dims(%10, axis=0); "
        "%12 = [NCHW>NCHW4c %11]; %13 = add(%9, %12); [NCHW4c>NCHW %13]"
    )
    assert relay.structural_equal(found["main"], program(IMAGE, after)["main"])
    assert_same_numbers(mod, found)


def test_the_layout_of_a_result_may_be_its_own() -> None:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        return relay.nn.conv2d(*inputs, **{**attrs, "out_layout": "NHWC"})

    after = f'%9 = nn.conv2d(%x, %w, {THREE}, out_layout="NHWC"); %10 = nn.relu(%9); ' \
        "[NHWC>NCHW %10]"  # fmt: skip
    _check(alter, CONV + "nn.relu(%9)", after)


def test_a_function_is_inlined_in_none() -> None:
    text = """#[version = "0.0.5"]
def @f(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3])
}
def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 3, 3), float32]) {
  %0 = @f(%x, %w);
  nn.relu(%0)
}
"""
    mod = relay.transform.InferType()(relay.fromtext(text))
    with TempOpAttr("nn.conv2d", KEY, _into("NHWC", "HWIO")):
        found = AlterOpLayout()(mod)
    assert names(found["f"]).count("layout_transform") == 3
    assert names(found["main"]) == ["nn.relu"]
    assert_same_numbers(mod, found)


@pytest.mark.parametrize("made", [relay.var("z", shape=(1, 8, 6, 6)), relay.const(1.0)])
def test_only_calls_may_stand_for_calls(made: relay.Expr) -> None:
    mod = program(IMAGE, CONV + "nn.relu(%9)")
    with TempOpAttr("nn.conv2d", KEY, lambda *_: made), pytest.raises(RelayError):
        AlterOpLayout()(mod)


@pytest.mark.parametrize("count", [1, 3])
def test_other_numbers_of_operands_are_refused(count: int) -> None:
    def alter(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        if count == 1:
            return relay.nn.relu(inputs[0])
        return relay.where(*[inputs[0]] * 3)

    mod = program(IMAGE, CONV + "nn.relu(%9)")
    with TempOpAttr("nn.conv2d", KEY, alter):
        if count == 1:
            with pytest.raises(RelayError):
                AlterOpLayout()(mod)
            return
        # It says nothing of layouts: the call stays.
        assert relay.structural_equal(AlterOpLayout()(mod)["main"], mod["main"])
