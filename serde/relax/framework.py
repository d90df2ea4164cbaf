"""TVM: which releases are known here, and the names that changed between them.

From one release to the next TVM renamed modules (``tir``, ``tirx``) and classes
(``TensorStructInfo``, ``TensorType``). What the bridge uses is asked of :class:`Framework`, so
that the rest of it is the same for all of them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any as AnyValue, Final

from serde.core import parse_json, require
from serde.errors import MissingDependency, OptionError

__all__ = ["Framework", "load"]

_OLDEST: Final = (0, 22)
_NEWEST: Final = (0, 27)

_MOST_CHARACTERS: Final = 300
"""Of an error of TVM's that are told."""

_FFI_LIMITS: Final[dict[tuple[int, ...], tuple[int, ...]]] = {
    (0, 25): (0, 1, 13),
    (0, 26): (0, 1, 15),
    (0, 27): (0, 1, 15),
}
"""The first release of ``apache-tvm-ffi`` with which one of TVM crashes, or does not load."""


@cache
def load() -> Framework:
    """Return TVM, imported now if it was not.

    Raises:
        MissingDependency: It is not installed, or as a release that is not known here.
    """
    _check_installed()
    return Framework(require("tvm"))


class Framework:
    """TVM's modules and classes, whatever the release calls them.

    Args:
        tvm: The package.

    Attributes:
        tvm: Likewise.
        version: Its version, as text.
        relax: ``tvm.relax``.
        te: ``tvm.te``.
        tir: ``tvm.tirx``, which was ``tvm.tir``.
        topi: ``tvm.topi``.
    """

    def __init__(self, tvm: AnyValue) -> None:
        self.tvm = tvm
        self.version: str = tvm.__version__
        _check_release(self.version, importlib.import_module("tvm_ffi").__version__)
        self.relax = importlib.import_module("tvm.relax")
        self.te = importlib.import_module("tvm.te")
        self.topi = importlib.import_module("tvm.topi")
        self.tir = _first_module("tvm.tirx", "tvm.tir")
        arith = _first_module("tvm.sym", "tvm.arith")
        self._analyzer = arith.Analyzer()
        self.dtypes = (type(tvm.runtime.empty((), "int8").dtype), tvm.DataType)
        """What dtypes are."""
        building = importlib.import_module("tvm.script.ir_builder")
        self.IRBuilder = building.IRBuilder
        self.statements = _first(building, "tirx", "tir")
        relax = self.relax
        self.TensorType = _first(relax, "TensorStructInfo", "TensorType")
        self.ShapeType = _first(relax, "ShapeStructInfo", "ShapeType")
        self.TupleType = _first(relax, "TupleStructInfo", "TupleType")
        self.FuncType = _first(relax, "FuncStructInfo", "FuncType")
        self.PrimType = getattr(relax, "PrimStructInfo", None) or self.tvm.ir.PrimType
        variable = relax.Var("x", self.TensorType((), "float32"))
        self._te_inputs = importlib.import_module("tvm.relax.utils").gen_call_tir_inputs
        self._type = "ty" if hasattr(variable, "ty") else "struct_info"
        self.Constant = getattr(relax, "Constant", None) or self.tvm.ir.GenericConst
        self.variables = (relax.Var, relax.GlobalVar, self.tir.Var)
        self.PrimValue = getattr(relax, "PrimValue", ())
        """What wraps numbers of TIR, of releases that do not take them as they are."""
        self.texts = tuple(
            getattr(home, name)
            for home in (relax, self.tvm.ir)
            for name in ("StringImm", "DataTypeImm")
            if hasattr(home, name)
        )
        """Expressions that hold a text or a dtype in ``value``."""

    def type_of(self, expr: AnyValue) -> AnyValue:
        """Return the type of an expression, which holds its shape, or that a cast gives."""
        return getattr(expr, self._type)

    def lengths(self, type_: AnyValue) -> AnyValue:
        """Return the lengths in a type of tensors, None where it does not tell them."""
        return getattr(type_.shape, "values", None)

    def is_number(self, expr: AnyValue) -> bool:
        """Whether an expression is one of TIR."""
        known = getattr(self.tvm.ir, "is_prim_expr", None)
        return isinstance(expr, self.tvm.ir.PrimExpr) if known is None else bool(known(expr))

    def number_of(self, variable: AnyValue) -> AnyValue:
        """Return what a variable that is a number is among lengths, None if it is none there."""
        own = getattr(self.type_of(variable), "value", None)
        return variable if own is None and isinstance(variable, self.tir.Var) else own

    def result_type(self, function: AnyValue) -> AnyValue:
        """Return the type of what a function gives."""
        return getattr(function, f"ret_{self._type}")

    def type_args(self, call: AnyValue) -> AnyValue:
        """Return the types that a call is given beside its arguments."""
        return call.sinfo_args if hasattr(call, "sinfo_args") else call.ty_args

    def target(self, text: str) -> AnyValue:
        """Return a target: a kind, a tag, or a mapping in JSON."""
        given = parse_json(text) if text.lstrip().startswith("{") else text
        return self.tvm.target.Target(given)

    def device(self, name: str) -> AnyValue:
        """Return the first device of a kind.

        Raises:
            OptionError: There is none.
        """
        found = self.tvm.device(name, 0)
        if not found.exist:
            raise OptionError(f"TVM {self.version} finds no device {name} here")
        return found

    def last_line(self, error: BaseException) -> str:
        """Return what an error of TVM says, which is its last line, behind where it was."""
        lines = [line for line in str(error).splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("Command line:")]
        return (lines[-1].strip() if lines else type(error).__name__)[:_MOST_CHARACTERS]

    def has_raised(self, error: BaseException) -> bool:
        """Whether an error is TVM's own, and not one of the Python code that called it."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = "" if trace is None else trace.tb_frame.f_code.co_filename
        if not where.endswith(".py"):  # TVM names the places of its sources in C++.
            return True
        home = os.path.join(os.path.dirname(self.tvm.__file__), "")
        # What writes expressions there complains of those that it is given.
        return where.startswith(home) and not where.startswith(os.path.join(home, "te"))

    def number(self, value: bool | int | float) -> AnyValue:
        """Return a number as an argument of a function that is called."""
        tir = self.tir
        if isinstance(value, float):
            held = tir.FloatImm("float64", value)
        else:
            held = tir.IntImm("bool" if isinstance(value, bool) else "int64", int(value))
        wrap = getattr(self.relax, "PrimValue", None)
        return held if wrap is None else wrap(held)

    def text(self, value: str) -> AnyValue:
        """Return a text as an argument of a function that is called."""
        return (getattr(self.relax, "StringImm", None) or self.tvm.ir.StringImm)(value)

    def write_statements(self, write: Callable[[], None]) -> AnyValue:
        """Return the statements of TIR that `write` makes with :attr:`statements`."""
        with self.IRBuilder() as builder:
            with self.statements.serial(0, 1):  # It holds several, as nothing else does quietly.
                write()
            return builder.get()

    def change_nodes(self, root: AnyValue, change: Callable[[AnyValue], AnyValue]) -> AnyValue:
        """Return statements of TIR in which each node, the inner ones first, is what it becomes."""
        if hasattr(self.tir, "stmt_functor"):
            return self.tir.stmt_functor.ir_transform(root, None, change)
        return importlib.import_module("tvm_ffi").structural_map(root, change)

    def extern(
        self,
        name: str,
        operands: Sequence[AnyValue],
        shapes: Sequence[AnyValue],
        dtypes: Sequence[str],
        write: Callable[..., None],
    ) -> list[AnyValue]:
        """Return tensors of a compute function that statements fill.

        Args:
            name: That of the function.
            operands: What it reads.
            shapes: That of each result.
            dtypes: That of each result.
            write: Makes the statements; it gets a proxy of each operand and each result.
        """

        def fill(ins: Sequence[AnyValue], outs: Sequence[AnyValue]) -> AnyValue:
            proxies = [self.statements.buffer_proxy(each) for each in (*ins, *outs)]
            return self.write_statements(lambda: write(*proxies))

        return self.extern_of_buffers(name, operands, shapes, dtypes, fill)

    def extern_of_buffers(
        self,
        name: str,
        operands: Sequence[AnyValue],
        shapes: Sequence[AnyValue],
        dtypes: Sequence[str],
        fill: Callable[..., AnyValue],
    ) -> list[AnyValue]:
        """As :meth:`extern`, of what makes statements of buffers.

        Each buffer has a name of its own, and so has its start: where two have one name, TVM
        numbers them in the order of a table of objects, which is another in each process.
        """
        ins = [self._buffer(f"{name}_in{i}", x.shape, x.dtype) for i, x in enumerate(operands)]
        made = enumerate(zip(shapes, dtypes, strict=True))
        outs = [self._buffer(f"{name}_out{i}", *each) for i, each in made]
        found = self.te.extern(
            list(shapes), list(operands), fill, name=name, in_buffers=ins, out_buffers=outs
        )
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def _buffer(self, name: str, shape: AnyValue, dtype: str) -> AnyValue:
        start = self.tir.Var(f"{name}_start", "int32")
        declare = self.tir.decl_buffer
        flat = {"layout": None} if "layout" in inspect.signature(declare).parameters else {}
        return declare(shape, dtype, name, elem_offset=start, **flat)

    def cell(self, dtype: str, count: int = 1) -> AnyValue:
        """Return room for one number, or several, among statements; one stands at ``[0]``."""
        # Outside of a function the default layout is another than inside it.
        held = self.statements.alloc_buffer((count,), dtype, scope="local", layout=None)
        return self.statements.buffer_proxy(held)

    def call_te(
        self,
        builder: AnyValue,
        function: Callable[..., AnyValue],
        operands: Sequence[AnyValue],
        attributes: Mapping[str, AnyValue],
    ) -> AnyValue:
        """Return a call of what a function of tensor expressions becomes, added to the module.

        As the builder's own, but that lengths which no operand has are handed over as they occur,
        where that one takes the order of a set of objects, which is another in each process.
        """
        seen: dict[AnyValue, int] = {}

        def compute(*operands: AnyValue, **attributes: AnyValue) -> AnyValue:
            results = function(*operands, **attributes)
            for variable in self._variables([operands, list(attributes.values()), results]):
                seen.setdefault(variable, len(seen))
            return results

        made, given, types, *rest = self._te_inputs(compute, *operands, **attributes)
        values = list(rest[0].values) if rest and rest[0] is not None else []
        first = len(made.params) - len(values)
        if not rest:  # Since 0.26 they are among the operands, and stand before the results.
            count = len(list(itertools.takewhile(self._is_length, reversed(given))))
            first = len(given) - count
            given, values = given[:first], given[first:]
        parameters = list(made.params)
        last = first + len(values)
        order = sorted(range(len(values)), key=lambda i: seen[parameters[first + i]])
        parameters[first:last] = [parameters[first + index] for index in order]
        values = [values[index] for index in order]
        maps = [made.buffer_map] if hasattr(made, "buffer_map") else []
        made = self.tir.PrimFunc(parameters, made.body, made.ret_type, *maps, made.attrs)
        target = builder.add_func(made, function.__name__)
        if rest:
            shape = self.relax.ShapeExpr(values) if values else None
            return self.relax.call_tir(target, given, types, shape)
        return self.relax.call_tir(target, [*given, *values], types)

    def _variables(self, x: AnyValue) -> Iterator[AnyValue]:
        """Yield the variables of lengths in an argument or result of a compute function."""
        if isinstance(x, self.te.Tensor):
            x = x.shape
        if isinstance(x, (list, tuple, self.tvm.ir.Array)):
            for each in x:
                yield from self._variables(each)
        elif not isinstance(x, (str, bytes, float, int, type(None))):
            yield from self.tir.analysis.undefined_vars(x)

    def _is_length(self, x: AnyValue) -> bool:
        return self.tvm.ir.is_prim_expr(x) and x.ty.dtype == "int64"

    def simplify(self, length: AnyValue) -> AnyValue:
        """Return a length in fewer operations, as TVM finds them."""
        return self._analyzer.simplify(length)

    def are_equal(self, one: AnyValue, other: AnyValue) -> bool:
        """Whether two lengths are the same whatever their variables are."""
        return bool(self._analyzer.can_prove_equal(one, other))

    def packed_name(self, op: str) -> str | None:
        """Return what legalisation calls in the place of an operator, None for no operator."""
        operator = self.tvm.ir.Op
        return operator.get(op).get_attr("FCallPacked") if op in operator.list_op_names() else None

    def are_same(self, one: AnyValue, other: AnyValue) -> bool:
        """Whether two functions are the same but for names, and for what passes note of them."""
        equal = importlib.import_module("tvm_ffi").structural_equal
        for name in ("global_symbol", "op_pattern"):
            one, other = (each.without_attr(name) for each in (one, other))
        return bool(equal(one, other, map_free_vars=True))


def _first(module: AnyValue, *names: str) -> AnyValue:
    return next(getattr(module, name) for name in names if hasattr(module, name))


def _first_module(*names: str) -> AnyValue:
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    return importlib.import_module(names[-1])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("post")[0])[:3]))


def _check_installed() -> None:
    """Refuse releases that crash, or do not load, before they are imported."""
    try:
        versions = [importlib.metadata.version(each) for each in ("apache-tvm", "apache-tvm-ffi")]
    except importlib.metadata.PackageNotFoundError:
        return  # It is not installed at all, or was built from its sources.
    _check_release(*versions)


def _check_release(version: str, ffi: str) -> None:
    """Refuse releases that are not known."""
    found = _numbers(version)[:2]
    if not _OLDEST <= found <= _NEWEST:
        known = f"{'.'.join(map(str, _OLDEST))} to {'.'.join(map(str, _NEWEST))}"
        raise MissingDependency(f"TVM {known}", extra="tvm", reason=f"found TVM {version}")
    limit = _FFI_LIMITS.get(found)
    if limit is not None and _numbers(ffi) >= limit:
        needed = f"apache-tvm-ffi<{'.'.join(map(str, limit))}"
        reason = f"TVM {version} crashes with apache-tvm-ffi {ffi}"
        raise MissingDependency(needed, extra="tvm", reason=reason)
