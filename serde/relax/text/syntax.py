"""The check of a text before TVM parses it: only what TVM prints, and nothing that could act.

TVM's parser evaluates every expression as Python does. So a text is parsed here first, by
Python's own parser, which runs nothing, and refused unless each node is of a kind that TVM
prints: calls of names, variables, numbers, and texts that are no code.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final, NoReturn

from serde.core import MAX_NESTING, dataclass, pause_garbage_collection
from serde.errors import FormatError
from serde.relax.text.symbols import declare_symbols, spell_numbers
from serde.relax.text.vocabulary import BUFFER_FIELDS, ELEMENTS, FUNCTION_NAMES, is_function_of_tvm

__all__ = ["Script", "check_script"]

_ROOTS: Final = frozenset(("I", "R", "T"))
_RESERVED: Final = _ROOTS | {"Axis", "TypeVar", "ir", "metadata", "relax", "tir", "tirx", "tvm"}
"""Names that a text may not bind: a reader takes them for TVM's."""

_MODULES: Final = frozenset(("tvm", "tvm.script", "tvm.tirx.layout", "typing"))
"""What a text may say that it imports; nothing is."""

_DECORATORS: Final = {"R.function": "relax", "T.prim_func": "tir"}
_TYPES: Final = frozenset(("R.Any", "R.Object", "R.Shape", "R.Tensor", "R.Tuple"))
"""Types that are printed without arguments."""

_BINDING: Final = "T.let"
"""The type of a variable that is bound once, which has the type of its value in brackets."""

_FREE_TEXT: Final = frozenset(
    ("I.module_attrs", "R.func_attr", "R.str", "T.func_attr", "T.sblock_attr")
)
"""Calls whose texts are kept as they are and never evaluated."""

_PLAIN: Final = re.compile(r"[\w.:, >\-]*")
"""A text that calls nothing and computes nothing large, should TVM evaluate it."""

_IMPORT_PRAGMA: Final = "pragma_import"
"""Attributes that have source code compiled into the model."""

_OPERATORS: Final = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift),
)
_COMPARISONS: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True)
class Script:
    """A text that is safe to parse, provided that its names and its metadata are.

    Attributes:
        text: The text.
        names: The names of TVM that it uses, such as ``R.nn.relu``.
        metadata: The places of the metadata that it uses: key and number.
        attributes: Those of them that only attributes of functions use.
    """

    text: str
    names: frozenset[str]
    metadata: frozenset[tuple[str, int]]
    attributes: frozenset[tuple[str, int]]


def check_script(text: str) -> Script:
    """Return a text of TVMScript, which holds one module, if nothing in it could act.

    Raises:
        FormatError: It could, or it is no such text.
    """
    try:
        with pause_garbage_collection():  # Finalizers of others fail at the limit of recursion.
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        told = str(error) or type(error).__name__
        raise FormatError(f"expected TVMScript: {told}") from None
    checker = _Checker()
    checker.module(tree)
    if declare_symbols(tree) or spell_numbers(tree):
        return check_script(ast.unparse(tree))
    return Script(
        _without_imports(text, tree),
        frozenset(checker.names),
        frozenset(checker.values | checker.attributes),
        frozenset(checker.attributes - checker.values),
    )


def _without_imports(text: str, tree: ast.Module) -> str:
    """Return the text with imports, which TVM's parser does not take, as blank lines."""
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    if not imports:
        return text
    lines = text.splitlines(keepends=True)
    for each in imports:
        first, last = each.lineno - 1, each.end_lineno or each.lineno
        lines[first:last] = ["\n"] * (last - first)
    return "".join(lines)


class _Checker:
    """The check of one text, which refuses the first node that TVM does not print.

    Attributes:
        names: Names of TVM that it uses.
        values: Places of the metadata that expressions use.
        attributes: Those that attributes use.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.values: set[tuple[str, int]] = set()
        self.attributes: set[tuple[str, int]] = set()
        self._module = ""
        self._level = 0
        self._free = False

    # Statements.

    def module(self, tree: ast.Module) -> None:
        """Check a whole text: type variables and one class."""
        for each in tree.body:
            if isinstance(each, ast.ClassDef) and not self._module:
                self._class(each)
            elif isinstance(each, (ast.Import, ast.ImportFrom)):
                modules = [getattr(each, "module", None) or name.name for name in each.names]
                if not _MODULES.issuperset(modules):
                    self._refuse(each, "the import of another module")
            elif not _is_type_variable(each):
                self._refuse(each, "what is neither a type variable nor the module")
            else:
                self._bind(each.targets[0])  # type: ignore[attr-defined]
        if not self._module:
            raise FormatError("expected a class with the decorator I.ir_module, found none")

    def _class(self, node: ast.ClassDef) -> None:
        decorators = node.decorator_list
        if len(decorators) != 1 or self._chain(decorators[0]) != "I.ir_module":
            self._refuse(node, "a class without the decorator I.ir_module")
        if node.bases or node.keywords or getattr(node, "type_params", None):
            self._refuse(node, "a class with bases")
        self._check_name(node, node.name)
        self._module = node.name
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                self._function(each)
            elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
                self._call(each.value)
            elif not isinstance(each, ast.Pass):
                self._refuse(each, "what is no function")

    def _function(self, node: ast.FunctionDef) -> None:
        decorators = node.decorator_list
        decorator = decorators[0] if len(decorators) == 1 else node
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if self._chain(called) not in _DECORATORS:
            self._refuse(node, "a function with another decorator than R.function or T.prim_func")
        if isinstance(decorator, ast.Call):
            if decorator.args or any(each.arg is None for each in decorator.keywords):
                self._refuse(decorator, "arguments of a decorator")
            for keyword in decorator.keywords:
                if not isinstance(keyword.value, ast.Constant):
                    self._refuse(decorator, "arguments of a decorator")
        self._check_name(node, node.name)
        found = node.args
        further = [*found.posonlyargs, *found.kwonlyargs, *found.defaults, *found.kw_defaults]
        if further or found.vararg or found.kwarg or getattr(node, "type_params", None):
            self._refuse(node, "a function with other than plain parameters")
        for parameter in found.args:
            self._check_name(parameter, parameter.arg)
            if parameter.annotation is not None:
                self._annotation(parameter.annotation)
        if node.returns is not None:
            self._annotation(node.returns)
        self._block(node.body)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        self._enter(body[0])
        for each in body:
            check = _STATEMENTS.get(type(each))
            if check is None:
                self._refuse(each, f"a statement of the kind {type(each).__name__}")
            check(self, each)
        self._level -= 1

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for each in targets:
            self._bind(each)
        if isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation)
        value = node.value
        if value is None:
            return
        if isinstance(value, (ast.Dict, ast.List)) or _is_text(value):
            self._refuse(node, "a variable for what is no expression of TVM's")
        self._check(value)

    def _bind(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._check_name(target, target.id)
        elif isinstance(target, ast.Tuple):
            for each in target.elts:
                if not isinstance(each, ast.Name):
                    self._refuse(target, "another target than names")
                self._check_name(each, each.id)
        elif isinstance(target, ast.Subscript):
            self._subscript(target)
        else:
            self._refuse(target, "another target than names and elements")

    def _nothing(self, node: ast.stmt) -> None:
        """Nothing of the statement could be wrong."""

    def _parts(self, node: ast.AST) -> None:
        """Check the expressions that a node is made of."""
        for each in _expressions_in(node):
            self._check(each)

    def _loop(self, node: ast.For) -> None:
        self._bind(node.target)
        self._require(node, isinstance(node.iter, ast.Call) and not node.orelse)
        self._check(node.iter)
        self._block(node.body)

    def _conditional(self, node: ast.If) -> None:
        self._check(node.test)
        self._block(node.body)
        if node.orelse:
            self._block(node.orelse)

    def _while_loop(self, node: ast.While) -> None:
        self._require(node, not node.orelse)
        self._check(node.test)
        self._block(node.body)

    def _with_block(self, node: ast.With) -> None:
        for each in node.items:
            self._check(each.context_expr)
            if each.optional_vars is not None:
                self._bind(each.optional_vars)
        self._block(node.body)

    # Expressions.

    def _check(self, node: ast.expr) -> None:
        check = _EXPRESSIONS.get(type(node))
        if check is None:
            self._refuse(node, f"an expression of the kind {type(node).__name__}")
        self._enter(node)
        check(self, node)
        self._level -= 1

    def _annotation(self, node: ast.expr) -> None:
        """Check a type: a call, or the name of one."""
        name = self._chain(node)
        if name is None or name.partition(".")[0] not in _ROOTS:
            self._require(node, isinstance(node, (ast.Call, ast.Subscript)))
            self._check(node)
        elif name in _DECORATORS:
            self._refuse(node, "a decorator as a type")
        else:
            self.names.add(name)

    def _attribute(self, node: ast.Attribute) -> None:
        """Check a global function, a field of a buffer, or a type."""
        name = self._chain(node)
        if name is None or ".__" in name:
            self._refuse(node, "an attribute of what is no name")
        root, _, rest = name.partition(".")
        if root in _ROOTS:
            if name not in _TYPES and not ELEMENTS.fullmatch(name):
                self._refuse(node, f"{name} that is not called")
            self.names.add(name)
        elif "." in rest or (root not in ("cls", self._module) and rest not in BUFFER_FIELDS):
            self._refuse(node, f"the attribute {name}")

    def _arithmetic(self, node: ast.BinOp) -> None:
        if not isinstance(node.op, _OPERATORS):
            self._refuse(node, f"the operator {type(node.op).__name__}")
        if isinstance(node.op, ast.LShift) and _is_number(node.left) and _is_number(node.right):
            self._refuse(node, "a shifted number")
        self._operands(node)

    def _comparison(self, node: ast.Compare) -> None:
        if not all(isinstance(each, _COMPARISONS) for each in node.ops):
            self._refuse(node, "a comparison of another kind")
        self._operands(node)

    def _operands(self, node: ast.expr) -> None:
        """Check operands, none of which Python could repeat or fill in."""
        for each in _expressions_in(node):
            if isinstance(each, (ast.Dict, ast.List, ast.Tuple)) or _is_text(each):
                self._refuse(node, "arithmetic with what is no number")
            self._check(each)

    def _call(self, node: ast.Call) -> None:
        name = self._chain(node.func)
        if name is None or ".__" in name or name in _DECORATORS or name == "I.ir_module":
            self._refuse(node, "a call of what is no known name")
        root, _, rest = name.partition(".")
        if root in _ROOTS:
            self._require(node, bool(rest))
            self.names.add(name)
        elif rest:
            self._require(node, root in ("cls", self._module) and "." not in rest)
        elif hasattr(builtins, name) and name != "range":
            self._refuse(node, f"a call of Python's {name}")
        self._check_function_name(node, name)
        free, self._free = self._free, name in _FREE_TEXT
        for each in node.args:
            self._check(each)
        for keyword in node.keywords:
            self._require(node, keyword.arg is not None)
            self._check(keyword.value)
        self._free = free

    def _check_function_name(self, node: ast.Call, name: str) -> None:
        """Refuse calls of functions that TVM's own tensor expressions do not call."""
        place = FUNCTION_NAMES.get(name)
        if place is None:
            return
        named = node.args[place] if len(node.args) > place else None
        called = named.value if isinstance(named, ast.Constant) else None
        if not isinstance(called, str) or not is_function_of_tvm(called):
            self._refuse(node, f"a call of the function {called!r}, which is not one of TVM's")

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str):
            self._text(node, value)
        elif value is not None and not isinstance(value, (bool, int, float)):
            self._refuse(node, f"a constant of the kind {type(value).__name__}")

    def _text(self, node: ast.expr, text: str) -> None:
        """Check a text, which TVM evaluates where it stands for a length."""
        if _IMPORT_PRAGMA in text:
            self._refuse(node, "source code that is to be compiled")
        if self._free or _PLAIN.fullmatch(text):
            return
        try:
            inner = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._refuse(node, f"the text {text!r:.80}")
        if any(_is_text(each) for each in ast.walk(inner)):
            self._refuse(node, f"the text {text!r:.80}")
        self._check(inner)

    def _mapping(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            self._require(node, key is not None and _is_text(key))
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._text(key, key.value)
            self._check(value)

    def _name(self, node: ast.Name) -> None:
        if _is_reserved(node.id):
            self._refuse(node, f"the name {node.id} alone")

    def _subscript(self, node: ast.Subscript) -> None:
        """Check an element of a buffer or a tuple, or a place of the metadata."""
        place = _metadata_place(node)
        if place is not None:
            (self.attributes if self._free else self.values).add(place)
            return
        if self._chain(node.value) == _BINDING:
            self.names.add(_BINDING)
        else:
            self._require(node, isinstance(node.value, (ast.Name, ast.Attribute)))
            self._check(node.value)
        if self._chain(node.value) == _BINDING:
            self._annotation(node.slice)
        else:
            self._check(node.slice)

    # What all of them need.

    def _chain(self, node: ast.AST) -> str | None:
        """Return the name with its module that a node is, None if it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([node.id, *reversed(parts)])

    def _check_name(self, node: ast.AST, name: str) -> None:
        if _is_reserved(name):
            self._refuse(node, f"a variable called {name}")

    def _enter(self, node: ast.AST) -> None:
        self._level += 1
        if self._level > MAX_NESTING:
            self._refuse(node, f"nesting deeper than {MAX_NESTING}")

    def _require(self, node: ast.AST, holds: bool) -> None:
        if not holds:
            self._refuse(node, f"{type(node).__name__} in a form that TVM does not print")

    def _refuse(self, node: ast.AST, found: str) -> NoReturn:
        line = getattr(node, "lineno", 0)
        raise FormatError(f"line {line}: expected TVMScript as TVM prints it, found {found}")


_STATEMENTS: Final[Mapping[type[ast.AST], Callable[[_Checker, AnyValue], None]]] = {
    ast.AnnAssign: _Checker._assignment,
    ast.Assert: _Checker._parts,
    ast.Assign: _Checker._assignment,
    ast.Break: _Checker._nothing,
    ast.Continue: _Checker._nothing,
    ast.Expr: _Checker._parts,
    ast.For: _Checker._loop,
    ast.FunctionDef: _Checker._function,
    ast.If: _Checker._conditional,
    ast.Pass: _Checker._nothing,
    ast.Return: _Checker._parts,
    ast.While: _Checker._while_loop,
    ast.With: _Checker._with_block,
}
"""What checks a statement; no other kind is allowed."""

_EXPRESSIONS: Final[Mapping[type[ast.AST], Callable[[_Checker, AnyValue], None]]] = {
    ast.Attribute: _Checker._attribute,
    ast.BinOp: _Checker._arithmetic,
    ast.BoolOp: _Checker._operands,
    ast.Call: _Checker._call,
    ast.Compare: _Checker._comparison,
    ast.Constant: _Checker._constant,
    ast.Dict: _Checker._mapping,
    ast.List: _Checker._parts,
    ast.Name: _Checker._name,
    ast.Slice: _Checker._parts,
    ast.Subscript: _Checker._subscript,
    ast.Tuple: _Checker._parts,
    ast.UnaryOp: _Checker._operands,
}
"""What checks an expression; no other kind is allowed."""


def _expressions_in(node: ast.AST) -> list[ast.expr]:
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers only, which Python computes."""
    return not any(isinstance(each, (ast.Call, ast.Name)) for each in ast.walk(node))


def _is_reserved(name: str) -> bool:
    """Whether a name is TVM's or Python's own; ``__1`` is one that TVM gives."""
    return name in _RESERVED or (name.startswith("__") and name.endswith("__"))


def _is_type_variable(node: ast.stmt) -> bool:
    """Whether a statement is ``n = TypeVar("n")``."""
    match node:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Name("TypeVar"), [ast.Constant(text)], [])):
            return bool(text == name)
    return False


def _metadata_place(node: ast.Subscript) -> tuple[str, int] | None:
    """Return the key and the number of ``metadata[key][number]``, None for anything else."""
    match node:
        case ast.Subscript(
            ast.Subscript(ast.Name("metadata"), ast.Constant(str(key))), ast.Constant(number)
        ) if type(number) is int and number >= 0:
            return key, number
    return None
