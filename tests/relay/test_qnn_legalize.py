"""Quantised operators for targets: which form they take, written out."""

from __future__ import annotations

import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay.ir.expr import Call
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.transform import InferType
from serde.relay.transform.tvm.qnn import Legalize
from serde.relay.transform.tvm.qnn.targets import Target, current_target

HEAD = '#[version = "0.0.5"]\n'
TARGETS = [
    "llvm",
    "llvm -mcpu=cascadelake",
    "llvm -mcpu=skylake-avx512",
    "cuda",
    "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu",
    "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+v8.2a,+dotprod",
]


def _names(mod: relay.IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call)]


def _mod(text: str) -> relay.IRModule:
    mod = InferType()(relay.fromtext(HEAD + text))
    verify(mod)
    return mod


@pytest.mark.parametrize(
    ("dtype", "names", "target"),
    [
        (("int8", "int8"), ["qnn.conv2d"], TARGETS[1]),
        (("uint8", "uint8"), ["qnn.conv2d"], TARGETS[2]),
        (("uint8", "int8"), None, TARGETS[1]),
        (("int8", "int8"), None, TARGETS[3]),
        (("uint8", "int8"), ["qnn.conv2d"], TARGETS[3]),
        (("uint8", "int8"), ["nn.conv2d"], TARGETS[0]),
        (("int8", "int8"), ["nn.conv2d"], TARGETS[4]),
        (("uint8", "int8"), ["qnn.conv2d"], TARGETS[5]),
        (("int8", "int8"), None, TARGETS[5]),
        (("uint8", "int8"), None, None),
    ],
)
def test_convolutions_for_targets(
    dtype: tuple[str, str], names: list[str] | None, target: str | None
) -> None:
    x = relay.var("x", shape=(1, 2, 5, 5), dtype=dtype[0])
    w = relay.var("w", shape=(3, 2, 3, 3), dtype=dtype[1])
    parameters = (relay.const(1), relay.const(1), relay.const(1.0), relay.const(1.0))
    node = relay.qnn.op.conv2d(x, w, *parameters, kernel_size=(3, 3), channels=3)
    mod = relay.IRModule.from_expr(node)
    if target is None:
        found = Legalize()(mod)
    else:
        with Target(target):
            found = Legalize()(mod)
    if names is None:
        assert found is mod
        return
    assert [name for name in _names(found) if name.endswith("conv2d")] == names
    assert "cast" in _names(found)


def test_shifted_bytes_are_written_out() -> None:
    before = _mod("""def @main(%x: Tensor[(4, 6), int8], %w: Tensor[(5, 6), int8]) {
        qnn.dense(%x, %w, 3, 0, 1f, 1f, units=5, out_dtype="int32") }""")
    after = _mod("""def @main(%x: Tensor[(4, 6), int8], %w: Tensor[(5, 6), int8]) {
        %0 = cast(add(cast(%x, dtype="int32"), 128), dtype="uint8");
        qnn.dense(%0, %w, 131, 0, 1f, 1f, units=5, out_dtype="int32") }""")
    with Target("llvm -mcpu=cascadelake"):
        relay.assert_structural_equal(Legalize()(before), after)


def test_differences_in_int16_are_written_out() -> None:
    before = _mod("""def @main(%x: Tensor[(4, 6), uint8], %w: Tensor[(5, 6), int8]) {
        qnn.dense(%x, %w, 3, 2, 1f, 1f, units=5, out_dtype="int32") }""")
    after = _mod("""def @main(%x: Tensor[(4, 6), uint8], %w: Tensor[(5, 6), int8]) {
        %0 = subtract(cast(%x, dtype="int16"), cast(3, dtype="int16"));
        %1 = subtract(cast(%w, dtype="int16"), cast(2, dtype="int16"));
        nn.dense(%0, %1, units=5, out_dtype="int32") }""")
    with Target("llvm"):
        relay.assert_structural_equal(Legalize()(before), after)


@pytest.mark.parametrize(
    ("inputs", "outputs", "body"),
    [
        (4, 32, None),
        (
            3,
            32,
            """%0 = nn.pad(%x, 2, pad_width=[[0, 0], [0, 1], [0, 0], [0, 0]]);
            %1 = nn.pad(%w, 0, pad_width=[[0, 0], [0, 1], [0, 0], [0, 0]]);
            qnn.conv2d(%0, %1, 2, 5, 1f, 1f, padding=[0, 0, 0, 0], channels=32,
                kernel_size=[3, 3], out_dtype="int32")""",
        ),
        (
            4,
            20,
            """%0 = nn.pad(%w, 0, pad_width=[[0, 12], [0, 0], [0, 0], [0, 0]]);
            %1 = qnn.conv2d(%x, %0, 2, 5, 1f, 1f, padding=[0, 0, 0, 0], channels=32,
                kernel_size=[3, 3], out_dtype="int32");
            strided_slice(%1, begin=[0, 0, 0, 0], end=[1, 20, 4, 4], strides=[1], axes=None)""",
        ),
    ],
)
def test_channels_in_whole_vectors(inputs: int, outputs: int, body: str | None) -> None:
    head = f"""def @main(%x: Tensor[(1, {inputs}, 6, 6), uint8],
        %w: Tensor[({outputs}, {inputs}, 3, 3), int8])"""
    before = _mod(f"""{head} {{ qnn.conv2d(%x, %w, 2, 5, 1f, 1f, padding=[0, 0, 0, 0],
        channels={outputs}, kernel_size=[3, 3], out_dtype="int32") }}""")
    with Target("hexagon"):
        found = Legalize()(before)
    if body is None:
        assert found is before
    else:
        relay.assert_structural_equal(found, _mod(f"{head} {{ {body} }}"))


def test_targets_are_nested() -> None:
    assert current_target() is None
    with Target("llvm"), Target("cuda"):
        found = current_target()
        assert found is not None
        assert found.kind == "cuda"
    assert current_target() is None


def test_targets_are_known() -> None:
    with pytest.raises(RelayError, match="not 'abacus'"):
        Target("abacus -fast")


@pytest.mark.parametrize(
    ("dtype", "low", "high", "goes"),
    [
        ("int8", -128, 127, True),
        ("int8", -128, 126, False),
        ("int8", 0, 127, False),
        ("uint8", 0, 255, True),
        ("int16", -128, 127, False),
        ("int32", -(2**31), 2**31 - 1, True),
    ],
)
def test_clips_to_the_range_of_requantised_numbers_go(
    dtype: str, low: int, high: int, goes: bool
) -> None:
    x = relay.var("x", shape=(2, 3), dtype="int32")
    parameters = (relay.const(0.5), relay.const(0), relay.const(1.0), relay.const(1))
    level = relay.qnn.op.requantize(x, *parameters, out_dtype=dtype)
    mod = relay.IRModule.from_expr(relay.clip(level, low, high))
    found = relay.transform.Legalize()(mod)
    assert _names(found) == (["qnn.requantize"] if goes else ["qnn.requantize", "clip"])
    alone = relay.IRModule.from_expr(relay.clip(x, low, high))
    relay.assert_structural_equal(relay.transform.Legalize()(alone), alone)
