"""Promotion of dtypes against ``torch.result_type``."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from serde.torch.promotion import promote  # noqa: E402

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64",
          "float16", "bfloat16", "float32", "float64")  # fmt: skip
NUMBERS = {"bool": True, "int64": 2, "float64": 0.5}
OPERANDS = [
    *(("tensor", dtype) for dtype in DTYPES),
    *(("scalar", dtype) for dtype in DTYPES),
    *(("number", dtype) for dtype in NUMBERS),
]
PAIRS = [
    pytest.param(one, other, id="-".join((*one, *other)))
    for one, other in itertools.combinations_with_replacement(OPERANDS, 2)
    if (one[0], other[0]) != ("number", "number")
]


def _operand(kind: str, dtype: str) -> Any:
    if kind == "number":
        return NUMBERS[dtype]
    return torch.ones((2,) if kind == "tensor" else (), dtype=getattr(torch, dtype))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_pairs_have_the_dtype_of_pytorch(one: tuple[str, str], other: tuple[str, str]) -> None:
    groups: dict[str, list[str]] = {"tensor": [], "scalar": [], "number": []}
    for kind, dtype in (one, other):
        groups[kind].append(dtype)
    wanted = torch.result_type(_operand(*one), _operand(*other))
    assert promote(*groups.values(), default="float32") == str(wanted).removeprefix("torch.")
