"""Programs of one convolution and its users, for passes that change layouts."""

import re
from collections.abc import Mapping

import numpy as np

import serde.relay as relay
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef
from serde.relay.ir.verify import verify
from serde.relay.ir.visit import post_order
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType, Pass

__all__ = ["assert_becomes", "assert_same_numbers", "names", "program"]

_HEADER = '#[version = "0.0.5"]\n'


def program(params: Mapping[str, str], body: str) -> relay.IRModule:
    """Return a typed module of one function.

    Args:
        params: Shapes of the parameters, as text; of float32 unless they say otherwise.
        body: Statements.
    """
    head = ", ".join(
        f"%{name}: Tensor[{shape if '),' in shape else shape + ', float32'}]"
        for name, shape in params.items()
    )
    return InferType()(relay.fromtext(f"{_HEADER}def @main({head}) {{\n{_spell(body)}\n}}\n"))


def _spell(body: str) -> str:
    """Return a text with its short transforms, ``[NHWC>NCHW %x]``, written out."""
    return re.sub(
        r"\[(\w+)>(\w+) (%\w+)\]", r'layout_transform(\3, src_layout="\1", dst_layout="\2")', body
    )


def names(root: Expr | relay.IRModule) -> list[str]:
    """Return the operators that are called, operands first."""
    root = root["main"] if isinstance(root, relay.IRModule) else root
    calls = [node.op for node in post_order(root) if isinstance(node, Call)]
    return [op.name for op in calls if isinstance(op, OpDef)]


def assert_becomes(
    each: Pass, params: Mapping[str, str], before: str, after: str | None = None
) -> relay.IRModule:
    """Check what a pass makes of a program, and that its numbers stay; None: it stays."""
    mod = program(params, before)
    found, changed = each.run(mod)
    verify(found)
    assert changed == (found is not mod)
    wanted = program(params, before if after is None else after)
    assert structural_equal(found["main"], wanted["main"], map_free_vars=True), found.astext()
    assert_same_numbers(mod, found)
    return found


def assert_same_numbers(
    before: relay.IRModule, after: relay.IRModule, tolerance: float = 1e-5
) -> None:
    """Check that two modules give the same numbers for the same random arrays."""
    rng = np.random.default_rng(5)
    given = []
    for param in before["main"].params:
        type_ = param.checked_type
        low = 0.5 if type_.dtype.startswith("float") else 0
        values = rng.uniform(low, 3, type_.concrete_shape)
        given.append(values.astype(type_.dtype))
    want = run(before["main"], given, mod=before)
    found = run(after["main"], given, mod=after)
    _assert_close(found, want, tolerance)


def _assert_close(found: object, want: object, tolerance: float) -> None:
    if isinstance(want, tuple):
        assert isinstance(found, tuple)
        for a, b in zip(found, want, strict=True):
            _assert_close(a, b, tolerance)
        return
    assert np.shape(found) == np.shape(want)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
