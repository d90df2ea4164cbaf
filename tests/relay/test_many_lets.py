"""Lets by the ten thousand are read, inferred, printed and transformed in linear time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.relay import transform

pytestmark = pytest.mark.wide

HEAD = '#[version = "0.0.5"]\n'
VECTOR = "Tensor[(4), float32]"
COUNT = 10_000
SECONDS = 20  # What was quadratic took minutes; in linear time, each takes 5 at most.


def chain(count: int) -> str:
    lets = "".join(f"let %x{i} = add(%x{i - 1}, 1f);\n" for i in range(1, count + 1))
    return f"{HEAD}def @main(%x0: {VECTOR}) {{ {lets} %x{count} }}"


def functions(count: int) -> str:
    function = f"fn (%a: {VECTOR}) -> {VECTOR} {{ add(%a, 1f) }}"
    lets = "".join(
        f"let %f{i} = {function};\nlet %x{i} = %f{i}(%x{i - 1});\n" for i in range(1, count + 1)
    )
    return f"{HEAD}def @main(%x0: {VECTOR}) {{ {lets} %x{count} }}"


PASSES = [
    "ToGraphNormalForm", "DeadCodeElimination", "RemoveDeadCode", "InlineCalls", "RaiseRecursion",
]  # fmt: skip


@pytest.fixture(scope="module")
def long_chain() -> relay.IRModule:
    begin = time.process_time()
    mod = relay.fromtext(chain(COUNT))
    assert time.process_time() - begin < SECONDS
    return mod


def check(mod: relay.IRModule, count: int) -> None:
    found = relay.create_executor("debug", mod=mod).evaluate()(np.zeros(4, np.float32))
    assert found.numpy().tolist() == [float(count)] * 4


@pytest.mark.parametrize("name", PASSES)
def test_a_chain_of_lets_is_transformed(long_chain: relay.IRModule, name: str) -> None:
    begin = time.process_time()
    found = getattr(transform, name)()(long_chain)
    assert time.process_time() - begin < SECONDS
    check(found, COUNT)


@pytest.mark.parametrize("strict", [False, True])
def test_a_chain_of_lets_is_printed_and_read(long_chain: relay.IRModule, strict: bool) -> None:
    begin = time.process_time()
    again = relay.fromtext(long_chain.astext(strict=strict))
    assert time.process_time() - begin < SECONDS
    relay.assert_structural_equal(again, long_chain)


@pytest.mark.parametrize(
    ("text", "count"), [(chain, COUNT), (functions, 2000)], ids=["values", "functions"]
)
def test_a_chain_of_lets_is_written(text, count: int) -> None:
    mod = relay.fromtext(text(count))
    begin = time.process_time()
    model = serde.export_model(mod, format="onnx")
    assert time.process_time() - begin < SECONDS
    assert [node.op_type for node in model.graph.node] == ["Add"] * count
