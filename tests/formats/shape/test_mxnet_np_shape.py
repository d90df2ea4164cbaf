"""MXNet's operators of NumPy that reshape, join, split, pad and take diagonals, against MXNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_invoke import agree_on, operator_graph

import serde
from serde.errors import UnsupportedModelError

Attrs = dict[str, Any]
Shape = tuple[int, ...]

AT_ONCE = frozenset({"_npi_hstack", "_npi_dstack", "_npi_column_stack"})
"""Operators whose shapes MXNet infers in no graph."""


def numbers(shape: Shape, dtype: str = "float32", sign: int = 1) -> np.ndarray:
    return np.array(sign * np.arange(1, 1 + int(np.prod(shape))).reshape(shape), dtype)


def squares(shape: Shape) -> np.ndarray:
    return np.array(numbers(shape) ** 2)


def check(
    op: str,
    arrays: Sequence[np.ndarray],
    attrs: Attrs,
    outputs: int = 1,
    *,
    numpy: bool = True,
    at_once: bool = False,
    **options: Any,
) -> None:
    alone = at_once or op in AT_ONCE
    agree_on(op, arrays, attrs, outputs, numpy=numpy, at_once=alone, **options)


RESHAPES: list[tuple[Shape, str, bool]] = [
    ((2, 3, 4), "-1", False),
    ((2, 3, 4), "(-2,-1)", False),
    ((1, 3, 4), "(-3,-1)", False),
    ((2, 3, 1), "(-2,-2,-3)", False),
    ((2, 3, 4), "(-2,-4)", False),
    ((2, 3, 4), "(-5,-2)", False),
    ((2, 3, 4), "(-6,1,2,-4)", False),
    ((2, 6, 4), "(-2,-6,-1,2,-2)", False),
    ((2, 6, 4), "(-2,-6,2,-1,-2)", False),
    ((2, 6, 4), "(-2,-5)", True),
    ((2, 6, 4), "(-1,-2)", True),
    ((2, 6, 4), "(-4,-2)", True),
    ((2, 6, 4), "(-4,2,-1,-6)", True),
    ((2, 6, 4), "(-4,-1,2,-6)", True),
    ((8, 3, 3, 3, 4, 4), "(-6,2,-1,-4)", False),
    ((8, 3, 3, 3, 4, 4), "(-5,-4)", False),
    ((2, 1, 4), "(-4,-3,-2)", True),
    ((3, 0, 4), "(0,4)", False),
    ((3, 0, 4), "(-2,0,-2)", False),
    ((0, 4), "(-1,4)", False),
    ((1, 1), "()", False),
    ((), "(-1,1)", False),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("shape", "codes", "reverse"), RESHAPES)
def test_npx_reshape(shape: Shape, codes: str, reverse: bool) -> None:
    check("_npx_reshape", [numbers(shape)], {"newshape": codes, "reverse": reverse}, returns=True)


@pytest.mark.parametrize(
    ("shape", "new", "order"),
    [
        ((2, 3), "(-1,)", "C"), ((2, 3), "6", "C"), ((2, 3), "(3,-1)", "C"),
        ((2, 3), "(3,2)", "F"), ((0, 3), "(3,0)", "C"), ((), "()", "C"), ((1, 1), "()", "C"),
        ((), "(1,1)", "C"),
    ],
)  # fmt: skip
def test_np_reshape(shape: Shape, new: str, order: str) -> None:
    check("_np_reshape", [numbers(shape)], {"newshape": new, "order": order})


ARRANGED: list[tuple[str, Shape, Attrs]] = [
    ("_np_moveaxis", (2, 3, 4), {"source": "(0,-1)", "destination": "(-1,0)"}),
    ("_np_moveaxis", (2, 3, 4), {"source": "(1,)", "destination": "(2,)"}),
    ("_np_moveaxis", (2, 3, 4, 5), {"source": "(3,0,1)", "destination": "(0,2,1)"}),
    ("_np_roll", (2, 3), {"shift": "(1,)"}),
    ("_np_roll", (2, 3), {"shift": "1"}),
    ("_np_roll", (5,), {"shift": "(-7,)"}),
    ("_np_roll", (2, 3), {"shift": "(1,2)", "axis": "(0,1)"}),
    ("_np_roll", (2, 3), {"shift": "(1,)", "axis": "(0,1)"}),
    ("_np_roll", (2, 3), {"shift": "(-5,)", "axis": "(-1,)"}),
    ("_np_roll", (0, 3), {"shift": "(-5,)", "axis": "(0,)"}),
    ("_np_roll", (), {"shift": "(1,)"}),
    ("_np_squeeze", (1, 1), {}),
    ("_np_squeeze", (1, 2, 1), {}),
    ("_np_squeeze", (1, 2, 1), {"axis": "(0,)"}),
    ("_np_squeeze", (1, 2, 1), {"axis": "-1"}),
    ("_np_squeeze", (1, 2, 1), {"axis": "(0,-1)"}),
    ("_np_squeeze", (1, 2, 1), {"axis": "()"}),
    ("_np_squeeze", (), {}),
    ("_np_transpose", (2, 3, 4), {}),
    ("_np_transpose", (2, 3), {"axes": "(-1,0)"}),
    ("_np_transpose", (2, 3), {"axes": "None"}),
    ("_np_transpose", (), {}),
    ("_npi_flip", (2, 3), {"axis": "(0,1)"}),
    ("_npi_flip", (2, 3), {"axis": "1"}),
    ("_npi_flip", (2, 3), {"axis": "()"}),
    ("_npi_flip", (), {"axis": "()"}),
    ("_npi_flip", (0, 3), {"axis": "(0,)"}),
    *(("_npi_rot90", (2, 3, 2), {"k": k, "axes": "(0,1)"}) for k in (0, 1, 2, 3, -1, 5)),
    *(("_npi_rot90", (2, 3, 4), {"k": k, "axes": "(-1,0)"}) for k in (1, 2, 3)),
    ("_npi_broadcast_to", (3,), {"shape": "(2,3)"}),
    ("_npi_broadcast_to", (), {"shape": "(2,0)"}),
    ("_npi_broadcast_to", (), {"shape": "()"}),
    ("_npi_broadcast_to", (3, 1), {"shape": "(2,-2,4)"}),
    ("_npi_tril", (2, 3), {"k": 1}),
    ("_npi_tril", (2, 3, 3), {"k": -1}),
    ("_npi_tril", (3,), {}),
    ("_npi_tril", (3,), {"k": 1}),
    ("_npi_tril", (0, 3), {}),
    *(("_np_diag", (3,), {"k": k}) for k in (0, 1, -2)),
    *(("_np_diag", (2, 3), {"k": k}) for k in (0, 1, -1, 3, 5)),
    ("_np_diag", (0,), {"k": 1}),
    ("_np_diag", (0, 3), {"k": 1}),
    ("_np_diagflat", (2, 2), {"k": 1}),
    ("_np_diagflat", (3,), {}),
    ("_np_diagflat", (0,), {"k": -1}),
    ("_np_diagonal", (2, 3), {}),
    ("_np_diagonal", (2, 3, 4), {"offset": 1}),
    ("_np_diagonal", (2, 3, 4), {"offset": -1, "axis1": -1, "axis2": 0}),
    ("_np_diagonal", (2, 3, 4), {"offset": 2, "axis1": 1, "axis2": 2}),
    ("_np_diagonal", (2, 3, 4), {"offset": -7, "axis1": 2, "axis2": 0}),
    ("_np_diagonal", (0, 3, 4), {}),
    ("_np_trace", (2, 3), {"offset": 1}),
    ("_np_trace", (2, 3), {"offset": 7}),
    ("_np_trace", (2, 3, 4), {"offset": -1, "axis1": -1, "axis2": 0}),
    ("_npi_diag_indices_from", (3, 3), {}),
    ("_npi_diag_indices_from", (3, 3, 3), {}),
    ("_npi_diag_indices_from", (0, 0), {}),
]


@pytest.mark.thin(3)
@pytest.mark.parametrize(("op", "shape", "attrs"), ARRANGED)
def test_arranged(op: str, shape: Shape, attrs: Attrs) -> None:
    check(op, [numbers(shape)], attrs, returns=True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("_np_roll", {"shift": "(1,)"}), ("_npi_tril", {}), ("_np_diag", {"k": 1}),
        ("_np_diagflat", {"k": -1}), ("_np_trace", {}), ("_npi_rot90", {"axes": "(0,1)"}),
        ("_npi_diff", {}), ("_npi_ediff1d", {"to_end_scalar": 3.7}),
        *(("_npi_pad", {"pad_width": "((1,1),(0,2))", "mode": mode, "constant_value": 2.7})
          for mode in ("constant", "edge", "reflect", "symmetric", "maximum", "minimum")),
    ],
)  # fmt: skip
def test_dtypes(op: str, attrs: Attrs, dtype: str) -> None:
    check(op, [numbers((3, 3), dtype)[::-1].copy()], attrs)


LEGACY_DIAGONALS: list[tuple[Shape, Attrs]] = [
    ((3,), {}), ((3,), {"k": 2}), ((3,), {"k": -1}), ((2, 3), {"k": 1}), ((2, 3), {"k": -1}),
    ((2, 3, 4), {"k": 1}), ((2, 3, 4), {"k": -1, "axis1": -1, "axis2": 0}),
    ((2, 3, 4, 5), {"axis1": 2, "axis2": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "attrs"), LEGACY_DIAGONALS)
def test_legacy_diag(shape: Shape, attrs: Attrs) -> None:
    check("diag", [numbers(shape)], attrs, numpy=False)


JOINED: list[tuple[str, list[Shape], Attrs]] = [
    ("_np_atleast_1d", [(), (2,)], {}),
    ("_np_atleast_2d", [(), (3,), (2, 3)], {}),
    ("_np_atleast_3d", [(), (2,), (2, 3), (1, 2, 3)], {}),
    ("_npi_concatenate", [(2, 3), (1, 3)], {}),
    ("_npi_concatenate", [(3, 2), (3, 1)], {"axis": -1}),
    ("_npi_concatenate", [(3, 2), (3, 0)], {"axis": 1}),
    ("_npi_concatenate", [(3, 2), (2,)], {"axis": None}),
    ("_npi_stack", [(), ()], {}),
    ("_npi_stack", [(2, 3), (2, 3), (2, 3)], {"axis": -1}),
    ("_npi_stack", [(0, 3), (0, 3)], {"axis": 1}),
    ("_npi_hstack", [(2,), (3,)], {}),
    ("_npi_hstack", [(), ()], {}),
    ("_npi_hstack", [(2, 1), (2, 3)], {}),
    ("_npi_hstack", [(2, 1, 2), (2, 3, 2)], {"dim": 0}),
    ("_npi_vstack", [(2,), (2,)], {}),
    ("_npi_vstack", [(), ()], {}),
    ("_npi_vstack", [(2, 2), (2,)], {}),
    ("_npi_dstack", [(2,), (2,)], {}),
    ("_npi_dstack", [(), ()], {}),
    ("_npi_dstack", [(2, 2), (2, 2)], {}),
    ("_npi_dstack", [(1, 2, 2), (1, 2, 1)], {"dim": 0}),
    ("_npi_column_stack", [(3,), (3, 2)], {}),
    ("_npi_column_stack", [(), ()], {}),
    ("_npi_column_stack", [(3, 2, 2), (3, 1, 2)], {}),
]


@pytest.mark.parametrize(("op", "shapes", "attrs"), JOINED)
def test_joined(op: str, shapes: list[Shape], attrs: Attrs) -> None:
    outputs = len(shapes) if "atleast" in op else 1
    arrays = [numbers(shape, sign=1 - 2 * place) for place, shape in enumerate(shapes)]
    at_once = "axis" in attrs and attrs["axis"] is None
    check(op, arrays, {"num_args": len(shapes), **attrs}, outputs, at_once=at_once, returns=True)


SPLIT: list[tuple[str, Shape, Attrs, int]] = [
    ("_npi_hsplit", (4,), {"indices": "(0,1)", "axis": 0}, 2),
    ("_npi_hsplit", (2, 4), {"indices": "(0,1,3)"}, 3),
    ("_npi_hsplit", (4, 4), {"indices": "()", "sections": 2, "axis": 0}, 2),
    ("_npi_hsplit", (4,), {"indices": "()", "sections": 2}, 2),
    ("_npi_hsplit", (2, 1, 2), {"indices": "()", "sections": 1, "squeeze_axis": True}, 1),
    ("_npi_dsplit", (2, 2, 4), {"indices": "(0,1)", "axis": 2}, 2),
    ("_npi_dsplit", (2, 2, 4), {"indices": "()", "sections": 2, "axis": 2}, 2),
    ("_split_v2", (2, 4), {"indices": "(0,0,2)", "axis": 1}, 3),
    ("_split_v2", (0, 4), {"indices": "(0,2)", "axis": 1}, 2),
    ("_npi_split", (4, 2), {"indices": "()", "sections": 2, "axis": -2}, 2),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "shape", "attrs", "outputs"), SPLIT)
def test_split(op: str, shape: Shape, attrs: Attrs, outputs: int) -> None:
    check(op, [numbers(shape)], attrs, outputs, returns=True)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "maximum", "minimum"])
@pytest.mark.parametrize(
    ("shape", "width"),
    [
        ((3, 4), "((1,2),(0,1))"), ((3,), "(2,1)"), ((3,), "((2,),(2,))"),
        ((1, 2), "((1,1),(1,1))"), ((2, 3), "((0,0),(2,7))"), ((2, 2, 2), "((0,0),(1,0),(0,1))"),
        ((2, 3), "((0,0),(0,0))"),
    ],
)  # fmt: skip
def test_pad(shape: Shape, width: str, mode: str) -> None:
    signs = numbers(shape) * np.where(np.arange(shape[-1]) % 2, -1, 1).astype("float32")
    attrs = {"pad_width": width, "mode": mode, "constant_value": 2.5, "reflect_type": "odd"}
    check("_npi_pad", [signs], attrs)


@pytest.mark.parametrize("attrs", [{"n": n} for n in (0, 1, 2, 5)] + [{"n": 2, "axis": 0}])
def test_diff(attrs: Attrs) -> None:
    check("_npi_diff", [squares((3, 4))], attrs)


EDIFF: list[tuple[Shape, list[Shape], Attrs]] = [
    ((2, 2), [], {}),
    ((2, 2), [], {"to_begin_scalar": 7.5, "to_end_scalar": -1}),
    ((2, 2), [(3,)], {"to_begin_arr_given": True, "to_end_scalar": -1}),
    ((2, 2), [(3,)], {"to_end_arr_given": True, "to_begin_scalar": -1}),
    ((2, 2), [(3,), (2, 2)], {"to_begin_arr_given": True, "to_end_arr_given": True}),
    ((0,), [], {}),
    ((1,), [], {}),
    ((), [], {}),
    ((0,), [], {"to_begin_scalar": 7.5, "to_end_scalar": -1}),
]


@pytest.mark.wide
@pytest.mark.parametrize(("shape", "ends", "attrs"), EDIFF)
def test_ediff1d(shape: Shape, ends: list[Shape], attrs: Attrs) -> None:
    check(
        "_npi_ediff1d",
        [
            np.square(numbers(shape), out=np.empty(shape, "float32")),
            *(numbers(each) for each in ends),
        ],
        attrs,
    )


OPEN: list[tuple[str, Shape, tuple[int | str, ...], Attrs, int]] = [
    ("_npx_reshape", (2, 3, 4), ("N", 3, 4), {"newshape": "(-2,-1)"}, 1),
    ("_npx_reshape", (2, 3, 4), ("N", "T", 4), {"newshape": "(-5,-2)"}, 1),
    ("_npx_reshape", (2, 3, 4), ("N", "T", 4), {"newshape": "(-2,-2,-6,2,-1)"}, 1),
    ("_npx_reshape", (2, 3, 4), ("N", "T", 4), {"newshape": "(-1,-2)", "reverse": True}, 1),
    ("_np_reshape", (2, 3, 4), ("N", 3, 4), {"newshape": "(-1,12)"}, 1),
    ("_np_moveaxis", (2, 3, 4), ("N", 3, "T"), {"source": "(0,)", "destination": "(2,)"}, 1),
    ("_np_squeeze", (2, 1, 4), ("N", 1, "T"), {"axis": "(1,)"}, 1),
    ("_np_roll", (2, 3), ("N", "T"), {"shift": "(1,)", "axis": "(0,)"}, 1),
    ("_np_roll", (2, 3), ("N", 3), {"shift": "(1,)"}, 1),
    ("_npi_flip", (2, 3), ("N", "T"), {"axis": "(0,)"}, 1),
    ("_npi_rot90", (2, 3), ("N", "T"), {"axes": "(0,1)"}, 1),
    ("_npi_broadcast_to", (2, 1), ("N", 1), {"shape": "(3,-2,4)"}, 1),
    ("_npi_tril", (2, 3, 3), ("N", "T", "T"), {"k": -1}, 1),
    ("_np_diagonal", (2, 3, 4), ("N", 3, 4), {"axis1": 1, "axis2": 2}, 1),
    ("_np_trace", (2, 3, 4), ("N", 3, 4), {"axis1": 1, "axis2": 2}, 1),
    ("_npi_diff", (2, 4), ("N", "T"), {"n": 2}, 1),
    ("_npi_ediff1d", (2, 4), ("N", "T"), {"to_begin_scalar": 1.0}, 1),
    ("_npi_hsplit", (2, 4), ("N", 4), {"indices": "()", "sections": 2}, 2),
    *(("_npi_pad", (2, 4), ("N", 4), {"pad_width": "((0,0),(1,2))", "mode": mode}, 1)
      for mode in ("constant", "edge", "reflect", "symmetric", "maximum")),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "shape", "open_shape", "attrs", "outputs"), OPEN)
def test_open_lengths(
    op: str, shape: Shape, open_shape: tuple[int | str, ...], attrs: Attrs, outputs: int
) -> None:
    check(op, [numbers(shape)], attrs, outputs, shapes={"x0": open_shape})


def test_joined_with_open_lengths() -> None:
    shapes = {"x0": ("N", 3), "x1": ("N", 2)}
    check("_npi_hstack", [numbers((2, 3)), numbers((2, 2))], {"num_args": 2}, shapes=shapes)


REFUSED: list[tuple[str, Shape, Attrs, str]] = [
    ("_npi_dsplit", (2, 2, 4), {"indices": "(0,2)"}, "axis 2"),
    ("_npi_rot90", (2, 3), {}, "two axes"),
    ("_npi_pad", (), {"pad_width": "()"}, "pad_width"),
    ("_npi_diag_indices_from", (3, 2), {}, "equal lengths"),
    ("_npx_reshape", (2, 3), {"newshape": "(-7,)"}, "no code"),
    ("_npx_reshape", (2, 3), {"newshape": "(-2,-3)"}, "length 1"),
    ("_npx_reshape", (2, 3), {"newshape": "(-4,-2)"}, "more axes"),
    ("_npx_reshape", (2, 3), {"newshape": "(-6,-1,-1,-2)"}, "two lengths"),
    ("_np_roll", (2, 3), {"shift": "(1,2)"}, "no axes"),
    ("_np_diag", (2, 3, 4), {}, "vector or a matrix"),
]


@pytest.mark.parametrize(("op", "shape", "attrs", "reason"), REFUSED)
def test_refused(op: str, shape: Shape, attrs: Attrs, reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(operator_graph(op, ["x0"], attrs), input_shapes={"x0": shape})
