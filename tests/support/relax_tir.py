"""Modules of Relax whose functions of TIR are written by hand: as users and schedules write them.

Each is to be read as TVM computes it, or to be refused for the reason that is told.
"""

# ruff: noqa: B007, N803, N805, N806, N812, as TVMScript has other names.

from __future__ import annotations

from typing import Any

from tvm.script import ir as I, relax as R, tirx as T

__all__ = ["READ", "REFUSED"]


@I.ir_module
class _Transposed:
    @T.prim_func(s_tir=True)
    def g(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        for i, j in T.grid(m, n):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi] * 2.0

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        cls = _Transposed
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((m, n), "float32"))
        return gv


@I.ir_module
class _TwoResults:
    @T.prim_func(s_tir=True)
    def g(
        A: T.Buffer((8, 16), "float32"),
        B: T.Buffer((8, 16), "float32"),
        C: T.Buffer((8,), "float32"),
    ):
        for i, j in T.grid(8, 16):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))
        for i, j in T.grid(8, 16):
            with T.sblock("c"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(3)
                C[vi] = C[vi] + A[vi, vj]

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _TwoResults
        types = [R.Tensor((8, 16), "float32"), R.Tensor((8,), "float32")]
        gv = R.call_tir(cls.g, (x,), out_ty=types)
        return gv


@I.ir_module
class _Scalars:
    @T.prim_func(s_tir=True)
    def g(
        A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
    ):
        for i, j in T.grid(8, 16):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi], C[vi])
                with T.init():
                    B[vi] = T.float32(0)
                    C[vi] = T.float32(0)
                total: T.float32 = B[vi] + A[vi, vj]
                squares: T.float32 = C[vi] + A[vi, vj] * A[vi, vj]
                B[vi] = total
                C[vi] = squares

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _Scalars
        types = [R.Tensor((8,), "float32"), R.Tensor((8,), "float32")]
        gv = R.call_tir(cls.g, (x,), out_ty=types)
        return gv


@I.ir_module
class _Scheduled:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for io, ii, jo, ji in T.grid(2, 4, 4, 4):
            with T.sblock("b"):
                vi = T.axis.spatial(8, io * 4 + ii)
                vj = T.axis.reduce(16, jo * 4 + ji)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj] * A[vi, vj]

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _Scheduled
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((8,), "float32"))
        return gv


@I.ir_module
class _Decomposed:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), k: T.int64, B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("begin"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.Cast("float32", k)
            for j in range(16):
                with T.sblock("add"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    B[vi] = B[vi] + A[7 - vi, vj]

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _Decomposed
        gv = R.call_tir(cls.g, (x, R.prim_value(3)), out_ty=R.Tensor((8,), "float32"))
        return gv


@I.ir_module
class _InPlace:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            A[i, j] = A[i, j] + T.exp(A[i, j])

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _InPlace
        y = R.add(x, x)
        gv = R.call_tir_inplace(
            cls.g, (y,), inplace_indices=[0], out_ty=R.Tensor((8, 16), "float32")
        )
        return gv


@I.ir_module
class _RunningSum:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi == 0, A[vi, vj], B[T.max(vi - 1, 0), vj] + A[vi, vj])

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _RunningSum
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((8, 16), "float32"))
        return gv


@I.ir_module
class _SumsSoFar:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        S = T.sblock_alloc_buffer((1,), "float32")
        for i in range(8):
            with T.sblock("s"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    S[0] = T.float32(0)
                S[0] = S[0] + A[vi, 0]
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = S[0]

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _SumsSoFar
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((8,), "float32"))
        return gv


@I.ir_module
class _Repeated:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i, 0]
        for r, i in T.grid(3, 8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = B[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _Repeated
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((8,), "float32"))
        return gv


@I.ir_module
class _ChangedMeanwhile:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        C = T.sblock_alloc_buffer((8,), "float32")
        for i in range(8):
            C[i] = A[i, 0]
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = C[T.max(vi - 1, 0)]
            with T.sblock("c"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.float32(0)

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _ChangedMeanwhile
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((8,), "float32"))
        return gv


@I.ir_module
class _BegunAgain:
    @T.prim_func(s_tir=True)
    def g(A: T.Buffer((8, 16), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.reduce(8, i // 2)
                with T.init():
                    B[0] = T.float32(0)
                B[0] = B[0] + A[vi, 0]

    @R.function
    def main(x: R.Tensor((8, 16), "float32")):
        cls = _BegunAgain
        gv = R.call_tir(cls.g, (x,), out_ty=R.Tensor((1,), "float32"))
        return gv


READ: dict[str, Any] = {
    "transposed": _Transposed,
    "two results": _TwoResults,
    "scalars": _Scalars,
    "scheduled": _Scheduled,
    "decomposed": _Decomposed,
    "in place": _InPlace,
}
REFUSED: dict[str, tuple[Any, str]] = {
    "running sum": (_RunningSum, "reads other elements of what it fills"),
    "sums so far": (_SumsSoFar, "neither spatial nor reduced"),
    "repeated": (_Repeated, "filled more than once"),
    "changed meanwhile": (_ChangedMeanwhile, "change what was there before"),
    "begun again": (_BegunAgain, "does not count what it reduces over"),
}
