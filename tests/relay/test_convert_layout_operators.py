"""Operators that are given layouts: blocks, depthwise, transposed; what is refused; users' own."""

import pytest
from support.layout_cases import assert_becomes, assert_same_numbers, names, program

import serde.relay as relay
from serde.errors import RelayError, SerdeError
from serde.relay.ir.attrs import TempOpAttr
from serde.relay.ir.layout import TensorLayout
from serde.relay.transform import ConvertLayout, LayoutConfig
from serde.relay.tvm.passes.layout.inference import InferCorrectLayoutOutput

NHWC = 'data_layout="NHWC", kernel_layout="HWIO"'
THREE = "padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]"
IMAGE = {"x": "(1, 4, 6, 6)", "w": "(8, 4, 3, 3)", "b": "(8)", "f": "(8, 8, 3, 3)"}
BLOCKS = {"nn.conv2d": ["NCHW4c", "OIHW4i4o"]}
LAST = {"nn.conv2d": ["NHWC", "default"]}


def _spell(text: str) -> str:
    six = text.replace("NOPAD6", "padding=[0, 0, 0, 0, 0, 0]")
    return six.replace("NOPAD", "padding=[0, 0, 0, 0]")


BEFORE = f"%9 = nn.conv2d(%x, %w, {THREE});\n"
AFTER_LAST = f"""%0 = [NCHW>NHWC %x];
%1 = [OIHW>HWIO %w];
%9 = nn.conv2d(%0, %1, {THREE}, {NHWC});
"""
AFTER_BLOCKS = f"""%0 = [NCHW>NCHW4c %x];
%1 = [OIHW>OIHW4i4o %w];
%9 = nn.contrib_conv2d_NCHWc(%0, %1, {THREE}, data_layout="NCHW4c", kernel_layout="OIHW4i4o");
"""

# A layer that is built again has its padding on each side.
LAYERS = {
    "conv2d to NHWC": (
        {"x": "(2, 4, 5, 6)", "w": "(6, 4, 3, 2)"},
        {"nn.conv2d": ["NHWC", "default"]},
        "nn.conv2d(%x, %w, NOPAD, channels=6, kernel_size=[3, 2])",
        "%0 = [NCHW>NHWC %x]; %1 = [OIHW>HWIO %w]; "
        f"%2 = nn.conv2d(%0, %1, NOPAD, channels=6, kernel_size=[3, 2], {NHWC}); [NHWC>NCHW %2]",
    ),
    "conv2d to NHWC with a layout of the weight": (
        {"x": "(2, 4, 5, 6)", "w": "(6, 4, 3, 2)"},
        {"nn.conv2d": ["NHWC", "OHWI"]},
        "nn.conv2d(%x, %w, NOPAD, channels=6, kernel_size=[3, 2])",
        "%0 = [NCHW>NHWC %x]; %1 = [OIHW>OHWI %w]; "
        '%2 = nn.conv2d(%0, %1, NOPAD, channels=6, kernel_size=[3, 2], data_layout="NHWC", '
        'kernel_layout="OHWI"); [NHWC>NCHW %2]',
    ),
    "conv2d to HWNC": (
        {"x": "(2, 4, 5, 6)", "w": "(6, 4, 3, 2)"},
        {"nn.conv2d": ["HWNC", "default"]},
        "nn.conv2d(%x, %w, NOPAD, channels=6, kernel_size=[3, 2])",
        "%0 = [NCHW>HWNC %x]; %1 = [OIHW>HWOI %w]; "
        '%2 = nn.conv2d(%0, %1, NOPAD, channels=6, kernel_size=[3, 2], data_layout="HWNC", '
        'kernel_layout="HWOI"); [HWNC>NCHW %2]',
    ),
    "depthwise conv2d to NHWC": (
        {"x": "(1, 4, 5, 6)", "w": "(4, 1, 3, 3)"},
        {"nn.conv2d": ["NHWC", "default"]},
        "nn.conv2d(%x, %w, NOPAD, groups=4, channels=4, kernel_size=[3, 3])",
        "%0 = [NCHW>NHWC %x]; %1 = [OIHW>HWOI %w]; "
        '%2 = nn.conv2d(%0, %1, NOPAD, groups=4, channels=4, kernel_size=[3, 3], '
        'data_layout="NHWC", kernel_layout="HWOI"); [NHWC>NCHW %2]',
    ),
    "depthwise conv2d to NCHW": (
        {"x": "(1, 5, 6, 4)", "w": "(3, 3, 4, 1)"},
        {"nn.conv2d": ["NCHW", "default"]},
        'nn.conv2d(%x, %w, NOPAD, groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", '
        'kernel_layout="HWOI")',
        "%0 = [NHWC>NCHW %x]; %1 = [HWOI>OIHW %w]; "
        "%2 = nn.conv2d(%0, %1, NOPAD, groups=4, channels=4, kernel_size=[3, 3]); [NCHW>NHWC %2]",
    ),
    "grouped conv2d to NHWC": (
        {"x": "(1, 4, 5, 6)", "w": "(6, 2, 3, 3)"},
        {"nn.conv2d": ["NHWC", "default"]},
        "nn.conv2d(%x, %w, NOPAD, groups=2, channels=6, kernel_size=[3, 3])",
        "%0 = [NCHW>NHWC %x]; %1 = [OIHW>HWIO %w]; "
        f"%2 = nn.conv2d(%0, %1, NOPAD, groups=2, channels=6, kernel_size=[3, 3], {NHWC}); "
        "[NHWC>NCHW %2]",
    ),
    "conv2d with strides and dilation": (
        {"x": "(1, 9, 9, 2)", "w": "(3, 3, 2, 4)"},
        {"nn.conv2d": ["NCHW", "default"]},
        "nn.conv2d(%x, %w, strides=[2, 1], padding=[0, 1, 2, 3], dilation=[2, 2], channels=4, "
        f"kernel_size=[3, 3], {NHWC})",
        "%0 = [NHWC>NCHW %x]; %1 = [HWIO>OIHW %w]; "
        "%2 = nn.conv2d(%0, %1, strides=[2, 1], padding=[0, 1, 2, 3], dilation=[2, 2], "
        "channels=4, kernel_size=[3, 3]); [NCHW>NHWC %2]",
    ),
    "conv2d_transpose to NCHW": (
        {"x": "(1, 4, 5, 2)", "w": "(3, 3, 6, 2)"},
        {"nn.conv2d_transpose": ["NCHW", "default"]},
        'nn.conv2d_transpose(%x, %w, NOPAD, channels=6, kernel_size=[3, 3], strides=[2, 2], '
        'data_layout="NHWC", kernel_layout="HWOI")',
        "%0 = [NHWC>NCHW %x]; %1 = [HWOI>IOHW %w]; "
        "%2 = nn.conv2d_transpose(%0, %1, NOPAD, channels=6, kernel_size=[3, 3], strides=[2, 2]); "
        "[NCHW>NHWC %2]",
    ),
    "conv3d to NCDHW": (
        {"x": "(1, 4, 5, 6, 2)", "w": "(2, 3, 3, 2, 4)"},
        {"nn.conv3d": ["NCDHW", "default"]},
        "nn.conv3d(%x, %w, NOPAD6, channels=4, kernel_size=[2, 3, 3], "
        'data_layout="NDHWC", kernel_layout="DHWIO")',
        "%0 = [NDHWC>NCDHW %x]; %1 = [DHWIO>OIDHW %w]; "
        "%2 = nn.conv3d(%0, %1, NOPAD6, channels=4, kernel_size=[2, 3, 3]); [NCDHW>NDHWC %2]",
    ),
    "conv3d to NDHWC": (
        {"x": "(1, 2, 4, 5, 6)", "w": "(4, 2, 2, 3, 3)"},
        {"nn.conv3d": ["NDHWC", "default"]},
        "nn.conv3d(%x, %w, NOPAD6, channels=4, kernel_size=[2, 3, 3])",
        "%0 = [NCDHW>NDHWC %x]; %1 = [OIDHW>DHWIO %w]; "
        "%2 = nn.conv3d(%0, %1, NOPAD6, channels=4, kernel_size=[2, 3, 3], "
        'data_layout="NDHWC", kernel_layout="DHWIO"); [NDHWC>NCDHW %2]',
    ),
    "max_pool2d": (
        {"x": "(1, 4, 6, 6)"},
        {"nn.max_pool2d": ["NHWC"]},
        "nn.max_pool2d(%x, pool_size=[2, 2], NOPAD)",
        "%0 = [NCHW>NHWC %x]; "
        '%1 = nn.max_pool2d(%0, pool_size=[2, 2], NOPAD, layout="NHWC", out_layout="NHWC"); '
        "[NHWC>NCHW %1]",
    ),
    "avg_pool2d": (
        {"x": "(1, 6, 6, 4)"},
        {"nn.avg_pool2d": ["NCHW"]},
        'nn.avg_pool2d(%x, pool_size=[2, 2], NOPAD, layout="NHWC")',
        "%0 = [NHWC>NCHW %x]; "
        '%1 = nn.avg_pool2d(%0, pool_size=[2, 2], NOPAD, layout="NCHW", out_layout="NCHW"); '
        "[NCHW>NHWC %1]",
    ),
    "global_avg_pool2d": (
        {"x": "(1, 4, 6, 6)"},
        {"nn.global_avg_pool2d": ["NHWC"]},
        "nn.global_avg_pool2d(%x)",
        '%0 = [NCHW>NHWC %x]; %1 = nn.global_avg_pool2d(%0, layout="NHWC", out_layout="NHWC"); '
        "[NHWC>NCHW %1]",
    ),
    "global_max_pool2d": (
        {"x": "(1, 4, 6, 6)"},
        {"nn.global_max_pool2d": ["NHWC"]},
        "nn.global_max_pool2d(%x)",
        '%0 = [NCHW>NHWC %x]; %1 = nn.global_max_pool2d(%0, layout="NHWC", out_layout="NHWC"); '
        "[NHWC>NCHW %1]",
    ),
    "resize2d": (
        {"x": "(1, 2, 4, 4)"},
        {"image.resize2d": ["NHWC"]},
        "image.resize2d(%x, size=[8, 6], roi=[0f, 0f, 0f, 0f])",
        "%0 = [NCHW>NHWC %x]; "
        '%1 = image.resize2d(%0, size=[8, 6], roi=[0f, 0f, 0f, 0f], layout="NHWC"); '
        "[NHWC>NCHW %1]",
    ),
    "resize1d": (
        {"x": "(1, 2, 4)"},
        {"image.resize1d": ["NWC"]},
        "image.resize1d(%x, size=[8], roi=[0f, 0f])",
        '%0 = [NCW>NWC %x]; %1 = image.resize1d(%0, size=[8], roi=[0f, 0f], layout="NWC"); '
        "[NWC>NCW %1]",
    ),
    "roi_align": (
        {"x": "(1, 8, 8, 2)", "r": "(2, 5)"},
        {"vision.roi_align": ["NCHW", "default"]},
        "vision.roi_align(%x, %r, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=2, "
        'layout="NHWC")',
        "%0 = [NHWC>NCHW %x]; "
        "%1 = vision.roi_align(%0, %r, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=2); "
        "[NCHW>NHWC %1]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYERS)
def test_an_operator_gets_its_layout(case: str) -> None:
    params, wanted, before, after = LAYERS[case]
    before, after = _spell(before), _spell(after)
    if case == "roi_align":
        mod = program(params, before)
        found = ConvertLayout(wanted)(mod)
        assert relay.structural_equal(found["main"], program(params, after)["main"])
        return
    assert_becomes(ConvertLayout(wanted), params, before, after)


@pytest.mark.parametrize("case", LAYERS)
def test_it_is_not_converted_again(case: str) -> None:
    params, wanted, _, after = LAYERS[case]
    mod = program(params, _spell(after))
    again, changed = ConvertLayout(wanted).run(mod)
    assert again is mod or relay.structural_equal(again["main"], mod["main"])
    assert changed == (again is not mod)


@pytest.mark.parametrize("case", LAYERS)
def test_without_its_name_it_stays(case: str) -> None:
    params, _, before, _ = LAYERS[case]
    mod = program(params, _spell(before))
    for wanted in ({}, {"nn.adaptive_avg_pool1d": ["NWC"]}):
        assert ConvertLayout(wanted).run(mod) == (mod, False)


BLOCKED = {
    "relu": ("nn.relu(%9)", "%10 = nn.relu(%9); [NCHW4c>NCHW %10]"),
    "scalar": ("multiply(%9, 2f)", "%10 = multiply(%9, 2f); [NCHW4c>NCHW %10]"),
    "bias": (
        "%10 = expand_dims(%b, axis=1, num_newaxis=2); add(%9, %10)",
        "%10 = expand_dims(%b, axis=1, num_newaxis=2); %11 = expand_dims(%10, axis=0); "
        "%12 = [NCHW>NCHW4c %11]; %13 = add(%9, %12); [NCHW4c>NCHW %13]",
    ),
    "a number for each row": (
        "%10 = mean(%x, axis=[1], keepdims=True); add(%9, %10)",
        "%10 = mean(%x, axis=[1], keepdims=True); %11 = [NCHW>NCHW1c %10]; "
        "%12 = add(%9, %11); [NCHW4c>NCHW %12]",
    ),
    "mean over the image": (
        "mean(%9, axis=[2, 3])",
        "%10 = mean(%9, axis=[2, 3]); [NC4c>NC %10]",
    ),
    "mean over channels": (
        "mean(%9, axis=[1])",
        "%10 = mean(%9, axis=[1, 4]); %10",
    ),
    "mean over channels that stays an axis": (
        "mean(%9, axis=[1], keepdims=True)",
        "%10 = mean(%9, axis=[1, 4], keepdims=True); [NCHW1c>NCHW %10]",
    ),
    "pool": (
        "nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2])",
        '%10 = nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2], layout="NCHW4c"); '
        "[NCHW4c>NCHW %10]",
    ),
    "global pool": (
        "nn.global_avg_pool2d(%9)",
        '%10 = nn.global_avg_pool2d(%9, layout="NCHW4c"); [NCHW4c>NCHW %10]',
    ),
    "adaptive pool": (
        "nn.adaptive_max_pool2d(%9, output_size=[2, 2])",
        '%10 = nn.adaptive_max_pool2d(%9, output_size=[2, 2], layout="NCHW4c"); '
        "[NCHW4c>NCHW %10]",
    ),
    "upsampling": (
        "nn.upsampling(%9, scale_h=2f, scale_w=2f)",
        '%10 = nn.upsampling(%9, scale_h=2f, scale_w=2f, layout="NCHW4c"); [NCHW4c>NCHW %10]',
    ),
    "resize": (
        "image.resize2d(%9, size=[12, 12], roi=[0f, 0f, 0f, 0f])",
        "%10 = [NCHW4c>NCHW %9]; image.resize2d(%10, size=[12, 12], roi=[0f, 0f, 0f, 0f])",
    ),
    "pad of the image": (
        "nn.pad(%9, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [2, 0]])",
        "%10 = nn.pad(%9, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [2, 0], [0, 0]]); "
        "[NCHW4c>NCHW %10]",
    ),
    "pad of channels": (
        "nn.pad(%9, 0f, pad_width=[[0, 0], [4, 0], [1, 1], [2, 0]])",
        "%10 = [NCHW4c>NCHW %9]; "
        "nn.pad(%10, 0f, pad_width=[[0, 0], [4, 0], [1, 1], [2, 0]])",
    ),
    "concatenate of channels": (
        "%10 = nn.relu(%9); %11 = (%9, %10); concatenate(%11, axis=1)",
        "%10 = nn.relu(%9); %11 = (%9, %10); %12 = concatenate(%11, axis=1); [NCHW4c>NCHW %12]",
    ),
    "split into whole blocks": (
        "%10 = split(%9, indices_or_sections=2, axis=1); %10.1",
        "%10 = split(%9, indices_or_sections=2, axis=1); %11 = %10.1; [NCHW4c>NCHW %11]",
    ),
    "split at a block": (
        "%10 = split(%9, indices_or_sections=[4], axis=1); %10.0",
        "%10 = split(%9, indices_or_sections=[1], axis=1); %11 = %10.0; [NCHW4c>NCHW %11]",
    ),
    "split inside of blocks": (
        "%10 = split(%9, indices_or_sections=4, axis=1); %10.0",
        "%11 = [NCHW4c>NCHW %9]; %10 = split(%11, indices_or_sections=4, axis=1); %10.0",
    ),
    "slice of whole blocks": (
        "strided_slice(%9, begin=[0, 4], end=[1, 8], strides=[1, 1], axes=None)",
        "%10 = strided_slice(%9, begin=[0, 1], end=[1, 2], strides=[1, 1], axes=None); "
        "[NCHW4c>NCHW %10]",
    ),
    "slice inside of blocks": (
        "strided_slice(%9, begin=[0, 2], end=[1, 8], strides=[1, 1], axes=None)",
        "%10 = [NCHW4c>NCHW %9]; "
        "strided_slice(%10, begin=[0, 2], end=[1, 8], strides=[1, 1], axes=None)",
    ),
    "slice of axes": (
        "strided_slice(%9, begin=[4, 1], end=[8, 3], strides=[1, 1], axes=[1, 2])",
        "%10 = strided_slice(%9, begin=[1, 1], end=[2, 3], strides=[1, 1], axes=[1, 2]); "
        "[NCHW4c>NCHW %10]",
    ),
    "squeeze": ("squeeze(%9, axis=[0])", "%10 = squeeze(%9, axis=[0]); [CHW4c>CHW %10]"),
    "layer norm over blocks": (
        "nn.layer_norm(%9, %b, %b, axis=1)",
        "%10 = [NCHW4c>NCHW %9]; nn.layer_norm(%10, %b, %b, axis=1)",
    ),
    "batch norm over blocks": (
        "%10 = nn.batch_norm(%9, %b, %b, %b, %b); %10.0",
        "%11 = [NCHW4c>NCHW %9]; %10 = nn.batch_norm(%11, %b, %b, %b, %b); %10.0",
    ),
    "l2 normalize over blocks": (
        "nn.l2_normalize(%9, eps=1e-05f, axis=[1])",
        "%10 = [NCHW4c>NCHW %9]; nn.l2_normalize(%10, eps=1e-05f, axis=[1])",
    ),
    "transpose": (
        "transpose(%9, axes=[0, 2, 3, 1])",
        "%10 = [NCHW4c>NCHW %9]; transpose(%10, axes=[0, 2, 3, 1])",
    ),
    "another convolution": (
        f"nn.conv2d(%9, %f, {THREE})",
        "%10 = [OIHW>OIHW4i4o %f]; "
        f'%11 = nn.contrib_conv2d_NCHWc(%9, %10, {THREE}, data_layout="NCHW4c", '
        'kernel_layout="OIHW4i4o"); [NCHW4c>NCHW %11]',
    ),
    "flatten": ("nn.batch_flatten(%9)", "%10 = [NCHW4c>NCHW %9]; nn.batch_flatten(%10)"),
}  # fmt: skip


@pytest.mark.parametrize("case", BLOCKED)
def test_what_stands_behind_a_convolution_in_blocks(case: str) -> None:
    before, after = BLOCKED[case]
    assert_becomes(ConvertLayout(BLOCKS), IMAGE, BEFORE + before, AFTER_BLOCKS + after)


def test_channels_of_a_variable_that_do_not_divide_stay() -> None:
    params = {"x": "(1, 3, 6, 6)", "w": "(8, 3, 3, 3)"}
    assert_becomes(ConvertLayout(BLOCKS), params, f"nn.conv2d(%x, %w, {THREE})")


def test_results_that_do_not_divide_stay() -> None:
    params = {"x": "(1, 4, 6, 6)", "w": "(6, 4, 3, 3)"}
    body = "nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=6, kernel_size=[3, 3])"
    assert_becomes(ConvertLayout(BLOCKS), params, body)


CHAIN = {
    "x": "(1, 6, 6, 4)", "w": "(3, 3, 4, 4)", "u": "(3, 3, 4, 4)", "t": "(3, 3, 4, 4)",
}  # fmt: skip
FOUR = "padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]"
LINKS = [
    f"%1 = nn.conv2d(%x, %w, {FOUR}, {NHWC});", f"%2 = nn.conv2d(%1, %u, {FOUR}, {NHWC});",
    f"%3 = nn.conv2d(%2, %t, {FOUR}, {NHWC});",
]  # fmt: skip


@pytest.mark.parametrize("skipped", [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2], [5]])
def test_some_convolutions_keep_their_layout(skipped: list[int]) -> None:
    mod = program(CHAIN, " ".join(LINKS) + "nn.relu(%3)")
    with LayoutConfig(skip_layers=skipped) as config:
        found = ConvertLayout({"nn.conv2d": ["NCHW", "default"]})(mod)
    assert config.skip_counter == 3
    text, lines, last = found.astext(), [], "NHWC"
    for line in text.splitlines():
        if "nn.conv2d" in line:
            lines.append("NHWC" if 'data_layout="NHWC"' in line else "NCHW")
            last = lines[-1]
    assert lines == ["NHWC" if each in skipped else "NCHW" for each in range(3)]
    moves = sum(a != b for a, b in zip(["NHWC", *lines], [*lines, "NHWC"], strict=True))
    weights = lines.count("NCHW")
    assert names(found).count("layout_transform") == moves + weights
    assert last == lines[-1]
    assert_same_numbers(mod, found)


def test_the_innermost_configuration_counts() -> None:
    assert LayoutConfig.current() is None
    with LayoutConfig([0]) as outer:
        with LayoutConfig() as inner:
            assert LayoutConfig.current() is inner
            assert not inner.check_skip()
        assert LayoutConfig.current() is outer
        assert outer.check_skip()
        assert not outer.check_skip()
        outer.reset()
        assert (outer.skip_counter, outer.skip_layers) == (0, [])
    assert LayoutConfig.current() is None


@pytest.mark.parametrize(
    "wanted",
    [
        {"nn.conv2d": ["NHWC"]},
        {"nn.conv2d": ["default", "OIHW"]},
        {"nn.conv2d": ["NWHC", "default"]},
        {"nn.conv2d": ["NCHW4c", "default"]},
        {"nn.conv2d": ["NHW", "HWIO"]},
        {"nn.conv2d": ["NHWC", "HW4IO"]},
        {"nn.conv2d": ["NHWC", "HWIO", "NHWC"]},
    ],
)
def test_layouts_that_a_convolution_does_not_take_are_refused(wanted: dict[str, list[str]]) -> None:
    with pytest.raises(SerdeError):
        ConvertLayout(wanted)(program(IMAGE, BEFORE + "nn.relu(%9)"))


@pytest.mark.parametrize("wanted", [["NHWC", "NC"], ["NC", "default"], ["NHWC"]])
def test_layouts_that_regions_do_not_take_are_refused(wanted: list[str]) -> None:
    body = "vision.roi_align(%x, %r, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=2)"
    mod = program({"x": "(1, 2, 8, 8)", "r": "(2, 5)"}, body)
    with pytest.raises(RelayError):
        ConvertLayout({"vision.roi_align": wanted})(mod)


def test_an_operator_without_a_conversion_stays() -> None:
    body = 'nn.max_pool1d(%x, pool_size=[2], padding=[0, 0], layout="NWC")'
    assert_becomes(ConvertLayout({"nn.max_pool1d": ["NCW"]}), {"x": "(1, 4, 2)"}, body)


def test_users_register_a_conversion() -> None:
    def convert(attrs, inputs, tinfos, desired_layouts):  # type: ignore[no-untyped-def]
        assert [each.concrete_shape for each in tinfos] == [(1, 4, 2)]
        assert desired_layouts == ["NCW"]
        layout = desired_layouts[0]
        return relay.nn.max_pool1d(*inputs, **{**attrs, "layout": layout, "out_layout": layout})

    with TempOpAttr("nn.max_pool1d", "FTVMConvertOpLayout", convert):
        assert_becomes(
            ConvertLayout({"nn.max_pool1d": ["NCW"]}),
            {"x": "(1, 4, 2)"},
            'nn.max_pool1d(%x, pool_size=[2], padding=[0, 0], layout="NWC")',
            "%0 = [NWC>NCW %x]; "
            '%1 = nn.max_pool1d(%0, pool_size=[2], padding=[0, 0], out_layout="NCW"); '
            "[NCW>NWC %1]",
        )
    test_an_operator_without_a_conversion_stays()


def test_users_register_how_an_operator_follows() -> None:
    def infer(attrs, new, old, types):  # type: ignore[no-untyped-def]
        layout = (new or old)[0]
        if layout is None:
            return InferCorrectLayoutOutput([None], [None], attrs)
        axis = layout.index_of("C")
        return InferCorrectLayoutOutput([layout], [layout], {**attrs, "axis": axis})

    body, after = "nn.softmax(%9, axis=1)", "%10 = nn.softmax(%9, axis=3); [NHWC>NCHW %10]"
    with TempOpAttr("nn.softmax", "FInferCorrectLayout", infer):
        assert_becomes(ConvertLayout(LAST), IMAGE, BEFORE + body, AFTER_LAST + after)
    back = "%10 = [NHWC>NCHW %9]; " + body.replace("%9", "%10")
    assert_becomes(ConvertLayout(LAST), IMAGE, BEFORE + body, AFTER_LAST + back)


def test_an_inference_may_name_layouts_by_text() -> None:
    def infer(attrs, new, old, types):  # type: ignore[no-untyped-def]
        return InferCorrectLayoutOutput(["NHWC"], [TensorLayout("NHWC")], attrs)

    with TempOpAttr("reverse", "FInferCorrectLayout", infer):
        assert_becomes(
            ConvertLayout(LAST),
            IMAGE,
            BEFORE + "%10 = [NCHW>NHWC %9]; reverse(%10, axis=3)",
            AFTER_LAST + "%10 = [NHWC>NCHW %9]; %11 = [NCHW>NHWC %10]; reverse(%11, axis=3)",
        )


@pytest.mark.parametrize(("inputs", "results"), [(0, 1), (2, 1), (1, 0), (1, 2)])
def test_an_inference_of_other_counts_is_refused(inputs: int, results: int) -> None:
    def infer(attrs, new, old, types):  # type: ignore[no-untyped-def]
        layout = TensorLayout("NCHW")
        count = results if new is not None else 1
        return InferCorrectLayoutOutput([layout] * inputs, [layout] * count, attrs)

    with TempOpAttr("reverse", "FInferCorrectLayout", infer), pytest.raises(RelayError):
        ConvertLayout(LAST)(program(IMAGE, BEFORE + "reverse(%9, axis=3)"))


def test_several_functions_are_converted() -> None:
    first = program(IMAGE, BEFORE + "nn.relu(%9)")
    mod = relay.IRModule({"main": first["main"], "other": first["main"]})
    found = ConvertLayout(LAST)(relay.transform.InferType()(mod))
    for name in ("main", "other"):
        assert "layout_transform" in names(found[name])


@pytest.mark.wide
def test_a_deep_program_is_converted() -> None:
    x, w = relay.var("x", shape=(1, 4, 4, 4)), relay.var("w", shape=(1, 1, 4, 4))
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "kernel_size": (1, 1)}
    y = relay.nn.conv2d(x, w, channels=4, **layouts)
    for _ in range(3000):
        y = relay.nn.relu(y)
    mod = relay.IRModule.from_expr(relay.Function([x, w], y))
    found = ConvertLayout({"nn.conv2d": ["NCHW", "default"]})(mod)
    assert names(found).count("layout_transform") == 3
    assert names(found)[-1] == "layout_transform"
