"""Symbolic lengths in texts, declared as every release reads them.

What a length of a signature is called is told in three ways: as a text in the signature of a
function (up to 0.26), by a type variable before the module (0.27), and as ``n = T.int64()`` in the
body. Releases print mixtures of these that they do not read: a text in the shape of a buffer
becomes a number of 32 bits, and a type variable can be no parameter, nor be declared again in a
body. Such texts are rewritten: buffers are matched in the body, where lengths are declared.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Final

__all__ = ["declare_symbols", "spell_numbers"]

_PREFIX: Final = "var_"
"""Before the name of a buffer that is matched: what it is matched with."""

_ATTRIBUTES: Final = "T.func_attr"


def declare_symbols(tree: ast.Module) -> bool:
    """Rewrite functions whose lengths are declared in a way that no release reads.

    Args:
        tree: A text that was checked; it is changed.

    Returns:
        Whether anything was rewritten.
    """
    variables = {each.targets[0].id for each in tree.body if _is_variable(each)}  # type: ignore[attr-defined]
    module = next(each for each in tree.body if isinstance(each, ast.ClassDef))
    functions = [each for each in module.body if isinstance(each, ast.FunctionDef)]
    again = variables & {name for each in functions for name in (*_declared(each), *_taken(each))}
    if not again and not any(_has_texts(each) for each in functions):
        return False
    tree.body = [each for each in tree.body if not _is_variable(each)]
    for each in functions:
        if _root(each) == "T":
            _match_buffers(each, variables)
        else:
            _quote_lengths(each, variables)
    ast.fix_missing_locations(tree)
    return True


def spell_numbers(tree: ast.Module) -> bool:
    """Rewrite types of numbers in tuples: TVM prints ``T.int64`` and reads ``R.Prim("int64")``.

    Returns:
        Whether there were any.
    """
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "R.Tuple":
            for place, each in enumerate(node.args):
                root, _, name = ast.unparse(each).partition(".")
                if root == "T":
                    node.args[place] = ast.Call(_attribute("R", "Prim"), [ast.Constant(name)], [])
                    changed = True
    ast.fix_missing_locations(tree)
    return changed


def _is_variable(node: ast.stmt) -> bool:
    """Whether a statement before the module declares a type variable."""
    return isinstance(node, ast.Assign)


def _root(function: ast.FunctionDef) -> str:
    """Return whether a function is one of Relax (``R``) or of TIR (``T``)."""
    node = function.decorator_list[0]
    return ast.unparse(node)[0]


def _declared(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names that the body of a function declares as lengths."""
    for each in ast.walk(function):
        if isinstance(each, ast.Assign):
            yield from (name for name, value in _pairs(each) if _is_declaration(value))


def _taken(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of a function's parameters."""
    return (each.arg for each in function.args.args)


def _pairs(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement binds, each with its value: ``n, m = T.int64(), ...``."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, item in zip(target.elts, value.elts, strict=False):
            if isinstance(name, ast.Name):
                yield name.id, item


def _is_declaration(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and not value.args and not value.keywords


def _buffer_shape(annotation: ast.expr | None) -> ast.expr | None:
    """Return the shape of a buffer that is a parameter, None if it is something else."""
    if not isinstance(annotation, ast.Call) or ast.unparse(annotation.func) != "T.Buffer":
        return None
    return annotation.args[0] if annotation.args else None


def _has_texts(function: ast.FunctionDef) -> bool:
    shapes = [_buffer_shape(each.annotation) for each in function.args.args]
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, str)
        for shape in shapes
        if shape is not None
        for each in ast.walk(shape)
    )


def _match_buffers(function: ast.FunctionDef, variables: set[str]) -> None:
    """Match the buffers that are parameters in the body, where their lengths are declared."""
    matches: list[ast.stmt] = []
    lengths: dict[str, None] = {}
    for each in function.args.args:
        shape = _buffer_shape(each.annotation)
        if shape is None or not isinstance(each.annotation, ast.Call):
            continue
        annotation = each.annotation
        further = [*annotation.args[1:], *(named.value for named in annotation.keywords)]
        unquoted = _Unquote().visit(shape)
        for node in (unquoted, *further):
            lengths.update(dict.fromkeys(_names(node)))
        given = [ast.Name(_PREFIX + each.arg), unquoted, *annotation.args[1:]]
        call = ast.Call(_attribute("T", "match_buffer"), given, annotation.keywords)
        matches.append(_binding(each.arg, call))
        each.arg = _PREFIX + each.arg
        each.annotation = _attribute("T", "handle")
    lengths.pop("T", None)
    body = [kept for each in function.body for kept in _without(each, lengths)]
    place = 1 if _is_attributes(body[0]) else 0
    parameters = set(_taken(function))
    declared: list[ast.stmt] = [
        _binding(name, ast.Call(_attribute("T", "int64"), [], []))
        for name in lengths
        if name not in parameters
    ]
    function.body = [*body[:place], *declared, *matches, *body[place:]]


def _names(node: ast.expr) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _binding(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _without(node: ast.stmt, lengths: Collection[str]) -> Iterator[ast.stmt]:
    """Yield a statement, or what is left of it without declarations of some lengths."""
    pairs = list(_pairs(node)) if isinstance(node, ast.Assign) else []
    if not any(name in lengths and _is_declaration(value) for name, value in pairs):
        yield node
        return
    for name, value in pairs:
        if name not in lengths:
            yield _binding(name, value)


def _is_attributes(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func) == _ATTRIBUTES


def _attribute(root: str, name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(root), name)


class _Unquote(ast.NodeTransformer):
    """Texts of a shape as the expressions that they spell."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return the expression that a text is."""
        if not isinstance(node.value, str):
            return node
        return ast.parse(node.value, mode="eval").body


def _quote_lengths(function: ast.FunctionDef, variables: set[str]) -> None:
    """Spell the lengths in the signature of a function of Relax as texts."""
    quote = _Quote(variables)
    for each in function.args.args:
        if each.annotation is not None:
            each.annotation = quote.visit(each.annotation)
    if function.returns is not None:
        function.returns = quote.visit(function.returns)


class _Quote(ast.NodeTransformer):
    """Lengths that some variables are in, as texts.

    Args:
        variables: The variables.
    """

    def __init__(self, variables: set[str]) -> None:
        self._variables = variables

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> ast.expr:
        """Return a shape, or several types, with its lengths as texts."""
        node.elts = [self._item(each) for each in node.elts]
        return node

    visit_List = visit_Tuple  # noqa: N815

    def _item(self, node: ast.expr) -> ast.expr:
        names = set(_names(node))
        if "R" in names:
            return self.visit(node)
        return ast.Constant(ast.unparse(node)) if names & self._variables else node
