"""Programs with annotated regions, in text that is shorter than Relay's.

``b[a](%x)`` is the beginning of a region of target a, ``e[a](%x)`` the end of one,
``region[a, name]`` what the function of a region has for attributes; ``T`` is a type, ``F`` the
dtype float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import serde.relay as relay
from serde.relay.ir.attrs import reset_op_attr, set_op_attr
from serde.relay.ir.compare import assert_structural_equal
from serde.relay.ir.verify import verify
from serde.relay.run.interpreter import run
from serde.relay.transform import InferType

TYPE = "Tensor[(2, 3), float32]"


def program(text: str, type_: str = TYPE) -> relay.IRModule:
    """Return a module with types."""
    text = re.sub(r"\b([be])\[([\w.+-]+)\]\(([^()]*)\)", _annotation, text)
    text = re.sub(
        r"region\[([\w.+-]+), ([\w]+)\]",
        r'global_symbol="\2", Primitive=1, Compiler="\1", Inline=1',
        text,
    )
    text = re.sub(r"\bT\b", type_, text).replace("dtype=F", 'dtype="float32"')
    return InferType()(relay.fromtext(f'#[version = "0.0.5"]\n{text}'))


def _annotation(match: re.Match[str]) -> str:
    kind = "begin" if match[1] == "b" else "end"
    return f'annotation.compiler_{kind}({match[3]}, compiler="{match[2]}")'


def check(found: relay.IRModule, expected: str, type_: str = TYPE) -> None:
    """Check that a module verifies and equals a text."""
    verify(found)
    assert_structural_equal(found, program(expected, type_), map_free_vars=True)


@contextmanager
def supported(**targets: Any) -> Iterator[None]:
    """Let targets support operators meanwhile.

    Args:
        targets: For each target the names of operators, or checks by name; dots are ``__``.
    """
    entered: list[tuple[str, str]] = []
    try:
        for target, operators in targets.items():
            checks: dict[str, Callable[[Any], bool]] = (
                operators if isinstance(operators, dict) else dict.fromkeys(operators, _accept)
            )
            for name, accepts in checks.items():
                key = f"target.{target.replace('__', '.')}"
                set_op_attr(name, key, accepts)
                entered.append((name, key))
        yield
    finally:
        for name, key in entered:
            reset_op_attr(name, key)


def _accept(_call: Any) -> bool:
    return True


def results(mod: relay.IRModule, seed: int = 0) -> list[np.ndarray]:
    """Return what the entry of a module computes of random numbers, as a list."""
    rng = np.random.default_rng(seed)
    params = mod["main"].params
    arrays = [_draw(rng, param.checked_type) for param in params]
    found = run(mod["main"], arrays, mod=mod)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _draw(rng: np.random.Generator, type_: Any) -> np.ndarray:
    if type_.dtype == "bool":
        return np.asarray(rng.integers(0, 2, type_.concrete_shape), bool)
    return np.asarray(rng.uniform(0.1, 1.0, type_.concrete_shape), type_.dtype)


def check_same_results(one: relay.IRModule, other: relay.IRModule) -> None:
    """Check that two modules compute the same."""
    for first, second in zip(results(one), results(other), strict=True):
        np.testing.assert_array_equal(first, second)
