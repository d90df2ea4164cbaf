"""Relay text from modules and expressions, in TVM's layout.

What is not a variable, a constant or a function's name becomes a numbered
temporary on a line of its own, operands first; only the last expression of a
scope stays in place, if it is used once. Printing keeps its own stack: each
node's text is made by a generator that asks for the texts it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.garbage_collection import pause_garbage_collection
from serde.errors import RelayError
from serde.relay.ir import Any, Constructor, FuncType, IRModule, Match, OpDef, SymDim, use_counts
from serde.relay.ir.device import Device
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.text import composite
from serde.relay.text.attribute_classes import OPERAND_ATTRIBUTES, UNSET_ATTRIBUTES
from serde.relay.text.data_printer import DataPrinter, Step, deeper
from serde.relay.text.literals import constant_text, escape, float_text
from serde.relay.text.metadata import MetadataWriter
from serde.relay.text.names import (
    MODULE_KEY,
    NAMES_KEY,
    PLAIN_KEY,
    TYPES_KEY,
    NameTable,
    encode_pairs,
    is_attribute_key,
)
from serde.relay.text.steps import run_steps
from serde.relay.text.type_text import (
    dim_text,
    has_sequence,
    has_symbols,
    named_type_text,
    type_text,
)

__all__ = [
    "HEADER", "attribute_text", "print_expr", "print_module", "spell_attribute"]  # fmt: skip

HEADER: Final = '#[version = "0.0.5"]\n'
_FLAT: Final = (Call, Tuple, TupleGetItem)
"""What has no lines inside."""

_BODY: Final = "\0"
"""Stands in no text; around the number of a body while its lines are not yet put there."""

Annotate = Callable[[Expr], str]


@pause_garbage_collection()
def print_module(
    mod: IRModule,
    *,
    show_meta_data: bool = True,
    strict: bool = False,
    annotate: Annotate | None = None,
) -> str:
    """Return the text of a module.

    Args:
        mod: The module; types are shown where it is checked.
        show_meta_data: Whether the header and the metadata section are there; without them
            the text is for reading only.
        strict: Whether the text is legal for TVM 0.18 rather than serde's dialect.
        annotate: Gives what follows each node, instead of a comment with its type.

    Raises:
        RelayError: A value has no form in text.
    """
    printer = _Printer(
        typed=mod.checked, strict=strict, readable=not show_meta_data, annotate=annotate
    )
    ordered = sorted(mod.functions, key=lambda variable: variable.name_hint)
    for variable in sorted(ordered, key=lambda variable: variable.name_hint != "main"):
        printer.name_global(variable)
    printer.note_module(mod.attrs)
    types = sorted(mod.type_definitions.values(), key=lambda data: data.header.name_hint)
    texts = [printer.type_definition(data) for data in types]
    texts += [printer.definition(variable, mod.functions[variable]) for variable in ordered]
    body = "\n".join(texts)
    return printer.finish(body) if show_meta_data else body


@pause_garbage_collection()
def print_expr(
    expr: Expr,
    *,
    show_meta_data: bool = True,
    strict: bool = False,
    annotate: Annotate | None = None,
) -> str:
    """Return the text of an expression, its free variables announced.

    Names that have to change are kept only where `expr` is a function, which
    can carry them.

    Args:
        expr: The expression.
        show_meta_data: Whether the header and the metadata section are there.
        strict: Whether the text is legal for TVM 0.18 rather than serde's dialect.
        annotate: Gives what follows each node.

    Raises:
        RelayError: A value has no form in text.
    """
    printer = _Printer(typed=False, strict=strict, readable=not show_meta_data, annotate=annotate)
    body = printer.expression(expr)
    return printer.finish(body) if show_meta_data else body


def attribute_text(value: AnyValue, *, strict: bool) -> str:
    """Return an attribute's value as text.

    Raises:
        RelayError: It has no form in text.
    """
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, str):
        return escape(value)
    if value is None:
        return "None"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return float_text(float(value), strict=strict)
    if isinstance(value, np.dtype):
        return f'"{value.name}"'
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([attribute_text(item, strict=strict) for item in value])}]"
    if isinstance(value, (SymDim, Any)):
        if strict and isinstance(value, SymDim):
            raise RelayError(f"TVM's text cannot hold the dimension {value} as an attribute")
        return dim_text(value)
    raise RelayError(f"an attribute that is a {type(value).__name__} has no form in text")


def spell_attribute(value: AnyValue) -> str | None:
    """Return an attribute as text; None for a function with constants that are metadata."""
    if not isinstance(value, Function):
        return attribute_text(value, strict=False)
    text = print_expr(value).removeprefix(HEADER)
    return None if "meta[" in text else text


def _same_value(a: AnyValue, b: AnyValue) -> bool:
    return type(a) is type(b) and (a is b or repr(a) == repr(b))


class _Printer(DataPrinter):
    def __init__(
        self, *, typed: bool, strict: bool, readable: bool, annotate: Annotate | None
    ) -> None:
        super().__init__(strict=strict)
        self._typed = typed
        self._annotate = annotate
        self._readable = readable
        self._metadata = MetadataWriter()
        self._globals: dict[str, str] = {}
        self._global_names = NameTable()
        self._temporaries = 0
        self._module = ""
        self._start()

    def _start(self) -> None:
        self._start_types()
        self._names = NameTable()
        self._memo: dict[Expr, str] = {}
        self._texts: dict[Expr, str] = {}
        self._counts: dict[Expr, int] = {}
        self._types: dict[str, str] = {}
        self._headers = 0
        self._scopes: list[list[str]] = [[]]
        self._bodies: list[list[str]] = []
        self._indent = ""

    def finish(self, body: str) -> str:
        """Return the whole text: header, `body`, metadata."""
        section = self._metadata.text()
        return f"{HEADER}{body}\n{section}" if section else f"{HEADER}{body}"

    def name_global(self, variable: GlobalVar) -> None:
        """Fix how a function of the module is called."""
        self._globals[variable.name_hint] = self._global_names.take(variable.name_hint)

    def note_module(self, attrs: Mapping[str, AnyValue]) -> None:
        """Let the next definition carry the attributes of the module."""
        texts = {name: attribute_text(value, strict=False) for name, value in attrs.items()}
        self._module = encode_pairs(texts) if texts else ""

    def _global(self, name: str) -> str:
        if name not in self._globals:
            self._globals[name] = self._global_names.take(name)
        return self._globals[name]

    def definition(self, variable: GlobalVar, function: Function) -> str:
        """Return the definition of a function of the module."""
        self._start()
        self._counts = use_counts(function)
        printed = self._global(variable.name_hint)
        if printed != variable.name_hint:
            self._names.originals[f"@{printed}"] = variable.name_hint
        text = run_steps(self._function(function, f"def @{printed}", outer=True))
        return f"{self._with_bodies(text)}\n"

    def expression(self, expr: Expr) -> str:
        """Return an expression, free variables announced before it."""
        self._counts = use_counts(expr)
        if isinstance(expr, Function):
            text = run_steps(self._function(expr, "fn ", outer=True))
            return self._with_bodies("\n".join([*self._scopes[0], text]))
        return self._with_bodies(run_steps(self._scope(expr)))

    def _comment(self, node: Expr) -> str:
        if self._annotate is not None:
            return self._annotate(node).replace(_BODY, "")
        facts = []
        if self._typed and node.type is not None:
            facts.append(f"ty={self._type(node.type)}")
        if node.span is not None and node.span.has_place:
            facts.append(f"span={node.span!r}".replace("*/", "* /").replace(_BODY, ""))
        return f" /* {' '.join(facts)} */" if facts else ""

    def _line(self, text: str) -> None:
        self._scopes[-1].append(f"{self._indent}{text}")

    def _declare(self, variable: Var) -> str:
        """Name a variable and return its definition: name, type, comment."""
        printed = self._names.take(variable.name_hint)
        self._memo[variable] = f"%{printed}"
        if self._strict and has_sequence(variable.type):
            message = "TVM's text cannot hold a sequence"
            raise RelayError(f"%{variable.name_hint}: {message}, found {variable.type!r}")
        declared = variable.type_annotation
        if declared is None and self._typed:
            declared = variable.type
        if declared is None:
            return f"%{printed}"
        if self._strict and has_symbols(declared):
            self._types[printed] = type_text(declared)
        return f"%{printed}: {self._type(declared)}{self._comment(variable)}"

    def _visit(self, node: Expr, *, inline: bool) -> Step:
        if self._is_pending(node):
            self._texts[node] = yield self._compound(node)
        if inline and node in self._texts and self._counts.get(node, 0) <= 1:
            return self._texts.pop(node)
        return self._name(node)

    def _is_pending(self, node: Expr) -> bool:
        """Whether a node has no text yet, and is none that takes no more than its name."""
        if node in self._memo or node in self._texts:
            return False
        if isinstance(node, Var):
            self._line(f"free_var {self._declare(node)};")
            return False
        atom = self._atom(node)
        if atom is not None:
            self._memo[node] = atom
        return atom is None

    def _name(self, node: Expr) -> str:
        """Return what stands for a node that has its text; give it a line where it has none."""
        known = self._memo.get(node)
        if known is None:
            known = self._memo[node] = f"%{self._temporaries}"
            self._temporaries += 1
            self._line(f"{known} = {self._texts.pop(node)};")
        return known

    def _atom(self, node: Expr) -> str | None:
        if isinstance(node, Constant):
            text = constant_text(node.data, strict=self._strict)
            if text is None:
                text = self._metadata.constant(node, typed=self._typed)
            return text + self._comment(node)
        if isinstance(node, GlobalVar):
            return f"@{self._global(node.name_hint)}"
        if isinstance(node, Op):
            return node.name
        return named_type_text(node.name_hint) if isinstance(node, Constructor) else None

    def _compound(self, node: Expr) -> Step:
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Tuple):
            return self._tuple(node)
        if isinstance(node, TupleGetItem):
            return self._field(node)
        if isinstance(node, Function):
            return self._function(node, "fn ")
        if isinstance(node, If):
            return self._if(node)
        if isinstance(node, Let):
            return self._enclosed_let(node)
        if isinstance(node, Match):
            return self._match(node)
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return self._reference(node)
        raise RelayError(f"{node!r} has no form in text")

    def _scope(self, node: Expr) -> Step:
        """Print a body; lets at its head are lines of this scope.

        What is returned stands for the lines, so that those inside are not copied at each level.
        """
        lines: list[str] = []
        self._scopes.append(lines)
        while isinstance(node, Let) and node not in self._memo and self._counts[node] <= 1:
            definition = self._declare(node.var)
            value = yield self._visit(node.value, inline=True)
            self._line(f"let {definition} = {value};")
            node = node.body
        text = yield self._visit(node, inline=True)
        self._line(text)
        self._scopes.pop()
        self._bodies.append(lines)
        return f"{_BODY}{len(self._bodies) - 1}{_BODY}"

    def _with_bodies(self, text: str) -> str:
        """Return a text with the lines of the bodies that it names."""
        found, pending = list[str](), _pieces(text)
        while pending:
            is_body, piece = pending.pop()
            if is_body:
                pending += _pieces("\n".join(self._bodies[int(piece)]))
            else:
                found.append(piece)
        return "".join(found)

    def _print_indented(self, node: Expr) -> Step:
        outer = self._indent
        self._indent = deeper(outer)
        body = yield self._scope(node)
        self._indent = outer
        return f"{{\n{body}\n{outer}}}"

    def _enclosed_let(self, node: Let) -> Step:
        # A let that is no line of a scope; what its value needs stands before it, as in TVM.
        if not isinstance(node.value, Function):
            value = yield self._visit(node.value, inline=True)
            if node.value not in self._memo:
                self._texts[node.value] = value
        count = self._counts.get(node, 0)
        self._counts[node] = min(count, 1)
        text = yield self._print_indented(node)
        self._counts[node] = count
        return f"({text[1:-1]})"

    def _operands(self, nodes: tuple[Expr, ...]) -> Generator[Step, str, list[str]]:
        for node in nodes:
            if self._is_pending(node):
                self._texts[node] = yield self._compound(node)
                if not isinstance(node, _FLAT):  # Lines inside it are of use to what follows.
                    self._name(node)
        return [self._name(node) for node in nodes]

    def _tuple(self, node: Tuple) -> Step:
        texts = yield from self._operands(node.fields)
        inner = f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
        return inner + self._comment(node)

    def _field(self, node: TupleGetItem) -> Step:
        texts = yield from self._operands((node.tuple_value,))
        return f"{texts[0]}.{node.index}{self._comment(node)}"

    def _if(self, node: If) -> Step:
        (cond,) = yield from self._operands((node.cond,))
        then = yield self._print_indented(node.true_branch)
        other = yield self._print_indented(node.false_branch)
        return f"if ({cond}) {then} else {other}"

    def _call(self, node: Call) -> Step:
        operation = node.op
        if self._strict and isinstance(operation, OpDef) and operation.name.startswith("serde."):
            return (yield from self._extension_call(node))
        parts = yield from self._operands(node.args)
        if isinstance(operation, OpDef):
            callee = operation.name
            if operation.attributes or node.attrs or operation.name in UNSET_ATTRIBUTES:
                parts = parts + (yield from self._attributes(node, operation))
        elif node.attrs:
            raise RelayError(f"{node!r}: only calls of operators have attributes")
        else:
            (callee,) = yield from self._operands((operation,))
            if isinstance(operation, Constructor) and not operation.inputs and not parts:
                return f"{callee}{self._comment(node)}"
        return f"{callee}({', '.join(parts)}){self._comment(node)}"

    def _extension_call(self, node: Call) -> Step:
        function, arguments = composite.as_function(node, spell_attribute)
        texts = yield from self._operands(arguments)
        self._counts.update(use_counts(function))
        callee = yield self._visit(function, inline=False)
        return f"{callee}({', '.join(texts)}){self._comment(node)}"

    def _attributes(self, node: Call, operation: OpDef) -> Generator[Step, str, list[str]]:
        if self._strict and not self._readable and operation.meta_class is not None:
            return [self._metadata.attributes(operation, node.attrs)]
        parts = self._repeated_operands(node, operation)
        for name, value in node.attrs.items():
            declared = operation.attributes.get(name)
            if declared is not None and _same_value(value, declared.default):
                continue
            if isinstance(value, Function):
                self._counts.update(use_counts(value))
                text = yield self._visit(value, inline=False)
            elif name == "indices_or_sections" and operation.name == "split":
                text = self._sections(value)
            elif isinstance(value, Device) and self._strict:
                text = str(value) if self._readable else self._metadata.device(value)
            else:
                text = attribute_text(value, strict=self._strict)
            parts.append(f"{name}={text}")
        return parts

    def _sections(self, value: AnyValue) -> str:
        if not self._strict or self._readable:
            return attribute_text(value, strict=self._strict)
        if isinstance(value, int):
            return self._metadata.boxed(value)
        return f"[{', '.join([self._metadata.boxed(item) for item in value])}]"

    def _repeated_operands(self, node: Call, operation: OpDef) -> list[str]:
        if not self._strict or self._readable:
            return []
        unset = UNSET_ATTRIBUTES.get(operation.name, {})
        parts = [f"{name}={text}" for name, text in unset.items()]
        for name, index in OPERAND_ATTRIBUTES.get(operation.name, {}).items():
            operand = node.args[index]
            if isinstance(operand, Constant):
                text = self._metadata.constant(operand, typed=False)
            else:
                text = self._memo[operand]
            parts.append(f"{name}={text}")
        return parts

    def _function(self, node: Function, start: str, *, outer: bool = False) -> Step:
        start += self._name_type_params(node.type_params)
        params = [self._declare(param) for param in node.params]
        number = self._headers
        self._headers += 1
        result = node.ret_type
        if result is None and self._typed and isinstance(node.type, FuncType):
            result = node.type.ret_type
        if self._strict and has_symbols(result) and result is not None:
            self._types[f"->{number}"] = type_text(result)
        body = yield self._print_indented(node.body)
        spelled = []
        for key, value in node.attrs.items():
            if not is_attribute_key(key):
                raise RelayError(f"the function attribute {key!r} has no form in text")
            spelled.append(f"{key}={attribute_text(value, strict=self._strict)}")
        if outer:
            spelled += self._list_carried()
            if self._strict and spelled and "." in spelled[0].partition("=")[0]:
                spelled.insert(0, f"{PLAIN_KEY}=1")
        params += spelled
        arrow = "" if result is None else f" -> {self._type(result)}"
        comment = "" if outer else self._comment(node)
        return f"{start}({', '.join(params)}){arrow} {body}{comment}"

    def _list_carried(self) -> Iterator[str]:
        """Yield the attributes that carry what the text itself cannot."""
        if self._module:
            yield f"{MODULE_KEY}={escape(self._module)}"
            self._module = ""
        if self._names.originals:
            yield f"{NAMES_KEY}={escape(encode_pairs(self._names.originals))}"
        if self._types:
            yield f"{TYPES_KEY}={escape(encode_pairs(self._types))}"


def _pieces(text: str) -> list[tuple[bool, str]]:
    """Return plain parts of a text and numbers of bodies in turns, the first one last."""
    return [(index % 2 == 1, part) for index, part in enumerate(text.split(_BODY))][::-1]
