"""Modules of Relax that take numbers and shapes, with arguments: numbers are arrays of rank 0."""

# ruff: noqa: N803, N805, N806, N812, SIM108, as TVMScript has other names.

from __future__ import annotations

import numpy as np
from tvm.script import ir as I, relax as R, tirx as T

__all__ = ["CASES"]

_RNG = np.random.default_rng(0)


@I.ir_module
class _Inputs:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        n: R.Prim("int64"),
        f: R.Prim("float32"),
        b: R.Prim("bool"),
        s: R.Shape(["k", "l"]),
    ):
        k = T.int64()
        y = R.full(R.shape([n, k]), R.const(1.0, "float32"), "float32")
        z = R.arange(R.prim_value(0), R.prim_value(n), R.prim_value(1), "int64")
        return (y, n, z, f, b, R.prim_value(n + 1), s, R.prim_value(n * 2 + k), R.shape([n, k + 1]))


@I.ir_module
class _Formulas:
    @R.function
    def main(n: R.Prim("int64"), f: R.Prim("float32"), x: R.Tensor((2, 2), "float32")):
        c = R.prim_value(n < T.int64(0))
        if c:
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        q = R.prim_value(T.truncdiv(n, T.int64(2)))
        m = R.prim_value(T.truncmod(n, T.int64(3)))
        g = R.prim_value(f * T.float32(2) + T.Cast("float32", n))
        h = R.prim_value(T.if_then_else(n > T.int64(2), n, T.int64(7)))
        fd = R.prim_value(n // T.int64(2))
        fm = R.prim_value(n % T.int64(3))
        return (y, q, m, g, h, fd, fm)


@I.ir_module
class _RoundedTowardsZero:
    @T.prim_func(private=True, s_tir=True)
    def ax(
        A: T.Buffer((T.int64(16),), "float32"),
        a: T.float32,
        n: T.int64,
        B: T.Buffer((T.int64(16),), "float32"),
    ):
        for i in T.serial(T.int64(0), T.int64(16)):
            with T.sblock("s"):
                vi = T.axis.remap("S", [i])
                B[vi] = T.if_then_else(
                    vi < n,
                    A[vi] * a,
                    T.Cast("float32", T.truncdiv(n, T.int64(2)) + T.max(n, T.int64(1))),
                )

    @R.function
    def main(A: R.Tensor([16], "float32"), a: R.Prim("float32"), n: R.Prim("int64")):
        cls = _RoundedTowardsZero
        gv = R.call_tir(cls.ax, (A, a, n), out_ty=R.Tensor([16], "float32"))
        return gv


@I.ir_module
class _Called:
    @R.function(private=True)
    def inner(k: R.Prim("int64"), x: R.Tensor(("p",), "float32")) -> R.Tensor(
        ndim=2, dtype="float32"
    ):
        p = T.int64()
        z = R.broadcast_to(x, R.shape([k, p]))
        return z

    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor((3,), "float32")):
        cls = _Called
        a = cls.inner(n, x)
        b = cls.inner(R.prim_value(n + 2), x)
        c = cls.inner(R.prim_value(2), x)
        return (a, b, c)


@I.ir_module
class _Recursion:
    @R.function
    def fac(i: R.Prim("int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = _Recursion
        c = R.prim_value(i <= T.int64(0))
        if c:
            r = x
        else:
            y = R.add(x, x)
            r = cls.fac(R.prim_value(i - 1), y)
        return r

    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = _Recursion
        z = cls.fac(n, x)
        return z


@I.ir_module
class _Tuples:
    @R.function(private=True)
    def inner(t: R.Tuple(R.Prim("int64"), R.Prim("float32"))) -> R.Tuple(
        R.Prim("float32"), R.Prim("int64")
    ):
        a = t[0]
        b = t[1]
        return (b, R.prim_value(a * 2))

    @R.function
    def main(n: R.Prim("int64"), f: R.Prim("float32"), x: R.Tensor(("n",), "float32")):
        cls = _Tuples
        c = R.prim_value(n > T.int64(3))
        if c:
            out = R.prim_value(n + 5)
        else:
            out = R.prim_value(T.int64(16))
        z = R.prim_value(out * 2)
        t = cls.inner((out, f))
        y = R.zeros(R.shape([z]), "float32")
        return (out, z, t, y)


@I.ir_module
class _LengthOfAnAxis:
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor(("n", "m"), "float32")):
        y = R.add(x, x)
        z = R.arange(R.prim_value(0), R.prim_value(n), R.prim_value(1), "int64")
        return (y, z, n)


@I.ir_module
class _RowOfATable:
    @T.prim_func(private=True, s_tir=True)
    def sl(
        A: T.Buffer((T.int64(16), T.int64(16)), "float32"),
        row: T.int64,
        B: T.Buffer((T.int64(16),), "float32"),
    ):
        for i in T.serial(T.int64(0), T.int64(16)):
            with T.sblock("slice"):
                vi = T.axis.remap("S", [i])
                B[vi] = A[row, vi]

    @R.function
    def main(A: R.Tensor([16, 16], "float32"), row: R.Prim("int64")):
        cls = _RowOfATable
        gv = R.call_tir(cls.sl, (A, row), out_ty=R.Tensor([16], "float32"))
        return gv


r = np.random.RandomState(0)


@I.ir_module
class _Slices:
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor((8, 4), "float32"), i32: R.Prim("int32")):
        a = R.strided_slice(x, axes=[0], begin=[n], end=[n + 2], assume_inbound=False)
        b = R.reshape(x, R.shape([n, 32 // n]))
        return (a, b, i32)


@I.ir_module
class _Bounds:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), f: R.Prim("float32"), g: R.Prim("float32")):
        a = R.clip(x, f, g)
        return a


@I.ir_module
class _Triangles:
    @R.function
    def main(x: R.Tensor((5, 5), "float32"), k: R.Prim("int64")):
        a = R.tril(x, k)
        b = R.triu(x, R.prim_value(k + 1))
        return (a, b)


@I.ir_module
class _Ranges:
    @R.function
    def main(n: R.Prim("int64")):
        a = R.arange(n, R.prim_value(10), R.prim_value(2), "float32")
        b = R.zeros(R.shape([n, 2]), "int32")
        c = R.ones(R.shape([n]), "float16")
        d = R.arange(R.prim_value(0), n, R.prim_value(1), "int32")
        return (a, b, c, d)


@I.ir_module
class _OneHot:
    @R.function
    def main(idx: R.Tensor((3,), "int64"), on: R.Prim("float32"), off: R.Prim("float32")):
        a = R.one_hot(idx, on, off, 4, -1)
        return a


@I.ir_module
class _HalfOfAnAxis:
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor(("n * 2",), "float32")):
        y = R.reshape(x, R.shape([n, 2]))
        z = R.arange(R.prim_value(0), n, R.prim_value(1), "int64")
        return (y, z)


@I.ir_module
class _Branches:
    @R.function(pure=False)
    def main(A: R.Tensor(["N", 2], "float32"), flag: R.Prim("bool"), n: R.Prim("int64")):
        N = T.int64()
        condition = R.prim_value(N % n == 0)
        if condition:
            B = R.add(A, A)
        else:
            B = R.multiply(A, A)
        if flag:
            C = R.add(B, A)
        else:
            C = R.multiply(B, A)
        return C


@I.ir_module
class _Shapes:
    @R.function
    def main(s: R.Shape(ndim=2), x: R.Tensor((4, 6), "float32"), n: R.Prim("int64")):
        a = R.reshape(x, s)
        b = R.eye(n, R.prim_value(4), R.prim_value(-1), "float32")
        c = R.take(x, n, axis=0)
        return (a, b, c, s)


def _draw(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


CASES = {
    "Inputs": (
        _Inputs,
        [(_draw(2, 3), 3, 2.5, True, (4, 5)), (_draw(2, 3), 0, -2.5, False, (1, 2))],
    ),
    "Formulas": (_Formulas, [(5, 0.5, _draw(2, 2)), (-5, 0.25, _draw(2, 2))]),
    "RoundedTowardsZero": (
        _RoundedTowardsZero,
        [(_draw(16), 0.5, 3), (_draw(16), 2.0, -7), (_draw(16), 2.0, 0)],
    ),
    "Called": (_Called, [(2, _draw(3)), (1, _draw(3))]),
    "Recursion": (_Recursion, [(3, _draw(2)), (-1, _draw(2))]),
    "Tuples": (_Tuples, [(4, 1.5, _draw(4)), (2, 1.5, _draw(2))]),
    "LengthOfAnAxis": (_LengthOfAnAxis, [(2, _draw(2, 3)), (4, _draw(4, 1))]),
    "RowOfATable": (_RowOfATable, [(_draw(16, 16), 3), (_draw(16, 16), 15)]),
    "Slices": (_Slices, [(2, _draw(8, 4), 7), (4, _draw(8, 4), -1)]),
    "Bounds": (_Bounds, [(_draw(2, 3), -0.5, 0.5), (_draw(2, 3), 0.5, -0.5)]),
    "Triangles": (_Triangles, [(_draw(5, 5), -1), (_draw(5, 5), 2)]),
    "Ranges": (_Ranges, [(3,), (0,)]),
    "OneHot": (_OneHot, [(np.array([0, 1, 3]), 2.0, -1.0)]),
    "HalfOfAnAxis": (_HalfOfAnAxis, [(3, _draw(6)), (2, _draw(4))]),
    "Branches": (_Branches, [(_draw(4, 2), True, 2), (_draw(3, 2), False, 2)]),
    "Shapes": (_Shapes, [((8, 3), _draw(4, 6), 3), ((2, 12), _draw(4, 6), 0)]),
}
"""Modules by name, each with some lists of arguments."""
