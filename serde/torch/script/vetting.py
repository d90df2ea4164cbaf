"""The check of an archive of TorchScript before PyTorch loads it: what would take it too far.

PyTorch parses and unpickles by recursion, in C++, where too deep a nesting ends the process.
"""

from __future__ import annotations

import pickletools  # nosec B403
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any as AnyValue, Final

from serde.core.limits import MAX_GRAPH_TEXT_BYTES, budget
from serde.core.records import dataclass
from serde.errors import FormatError
from serde.io.zips import Archive

__all__ = ["check_archive", "draw_calls"]

MAX_DEPTH: Final = 1000
"""Deepest nesting of brackets, of operators in a line, and of pickled values."""

_BRACKET: Final = re.compile(rb"[()\[\]{}]")
_TEXT: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_INFIX: Final = re.compile(
    rb"[\s)\]][-+*/%<>=|&^@!]+\s|\b(?:not|if|and|or|is|in|lambda)\b|[])]\s*[.\[(]|\w\.[A-Za-z_]|[-~+]\s*[-~+]"
)
_TUPLE: Final = re.compile(rb"\s*(\w+) = \((.*)\)\s*$")
_NAME: Final = re.compile(rb"\w+")
_INDENT: Final = re.compile(rb"[ \t]*")


def check_archive(archive: Archive) -> None:
    """Refuse source code and pickles that are nested too deep, or hold far more than they are.

    Raises:
        FormatError: They are nested too deep, or are no pickles.
        LimitError: Values that are there many times over take more nodes than are left.
    """
    for name in archive.members:
        if name.startswith("code/") and name.endswith(".py"):
            _check_source(archive, name)
        elif name.endswith((".pkl", ".debug_pkl")):
            _check_pickle(archive, name)
        if name.endswith(".debug_pkl"):
            _check_ranges(archive, name)


def _check_source(archive: Archive, name: str) -> None:
    text = _TEXT.sub(b"''", archive.read(name, MAX_GRAPH_TEXT_BYTES))
    depth = 0
    for found in _BRACKET.finditer(text):
        depth = depth + 1 if found[0] in b"([{" else max(0, depth - 1)
        if depth > MAX_DEPTH:
            raise archive.error(f"{name}: brackets nested more than {MAX_DEPTH} deep")
    sizes: dict[bytes, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        _draw_tuple(line, sizes, f"{name}: line {number}")
        short = len(line) <= MAX_DEPTH
        indent = _INDENT.match(line)
        if short or indent is None:
            continue
        if indent.end() > MAX_DEPTH or sum(1 for _ in _INFIX.finditer(line)) > MAX_DEPTH:
            raise archive.error(f"{name}: line {number} has more than {MAX_DEPTH} operators")


_MANY: Final = 2**62
_SHARED: Final = 20
"""How many times more values a pickle may be than it writes, as modules share some."""


def _draw_tuple(line: bytes, sizes: dict[bytes, int], what: str) -> None:
    """Draw for a variable that is a tuple of others: PyTorch writes its type out.

    Args:
        line: A line of source code.
        sizes: Fields of the variables that are tuples so far, those inside others included.
        what: Where it is.
    """
    found = _TUPLE.match(line)
    if found is None or not _is_closed(found[2]):
        return
    size = min(sum(sizes.get(each, 1) for each in _NAME.findall(found[2])), _MANY)
    if size > MAX_DEPTH:
        budget().draw("nodes", size, f"{what}: the fields of a tuple")
    sizes[found[1]] = size


def _is_closed(text: bytes) -> bool:
    """Whether no bracket in a text closes one before it, as in what ``(a).call(b)`` has inside."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found[0] in b"([{" else -1
        if depth < 0:
            return False
    return True


@dataclass(eq=False, slots=True)
class _Value:
    """What is known of a pickled value.

    Attributes:
        depth: How deep it is nested.
        size: How many values it is made of, those that are there again counted again.
    """

    depth: int = 0
    size: int = 1

    def take(self, parts: list[_Value]) -> None:
        """Take values in."""
        for each in parts:
            self.depth = max(self.depth, each.depth + 1)
            self.size = min(self.size + each.size, _MANY)


_MARK: Final = _Value()
_FROM_MARK: Final = frozenset(("TUPLE", "LIST", "DICT"))
_INTO_BELOW: Final = {"APPEND": 1, "SETITEM": 2, "BUILD": 1}
_INTO_MARK: Final = frozenset(("APPENDS", "SETITEMS", "ADDITEMS"))
_JOINED: Final = {
    "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "REDUCE": 2, "NEWOBJ": 2, "NEWOBJ_EX": 3, "BINPERSID": 1,
    "STACK_GLOBAL": 2,
}  # fmt: skip


_STEPS: Final = (
    "APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE BINUNICODE8 "
    "BUILD DICT EMPTY_DICT EMPTY_LIST EMPTY_TUPLE GLOBAL LIST LONG1 LONG_BINGET LONG_BINPUT MARK "
    "NEWFALSE NEWOBJ NEWTRUE NONE PROTO REDUCE SETITEM SETITEMS SHORT_BINSTRING STOP TUPLE TUPLE1 "
    "TUPLE2 TUPLE3 "
)
_WRITTEN: Final = frozenset(_STEPS.split())
"""The steps of pickles that PyTorch's C++ reads."""


def _check_pickle(archive: Archive, name: str) -> None:
    """Refuse a pickle that is nested too deep, without making what it holds."""
    data = archive.read(name, MAX_GRAPH_TEXT_BYTES)
    stack: list[_Value] = []
    memo: dict[AnyValue, _Value] = {}
    count = largest = 0
    try:
        for op, argument, _ in pickletools.genops(data):
            count += 1
            if op.name not in _WRITTEN:
                raise ValueError(f"a step {op.name}, which PyTorch does not write")
            found = _step(op.name, argument, stack, memo)
            if found.depth > MAX_DEPTH:
                raise archive.error(f"{name}: values nested more than {MAX_DEPTH} deep")
            largest = max(largest, found.size)
    except (LookupError, OverflowError, TypeError, ValueError, struct.error) as error:
        raise archive.error(f"{name}: no pickle: {error}") from None
    # PyTorch keeps values that are shared in debug information, and serde does not read it.
    if largest > _SHARED * count and not name.endswith(".debug_pkl"):
        budget().draw("nodes", largest, f"{name}: values that are there again")


_PUT: Final = frozenset(("BINPUT", "LONG_BINPUT"))
_ALLOWED: Final = _PUT | {"MARK"}
_CHANGES: Final = frozenset(("APPEND", "BUILD", "DICT", "LIST", "NEWOBJ", "SETITEM", "SETITEMS"))


def _check_ranges(archive: Archive, name: str) -> None:
    """Refuse places in source code whose texts are not there: PyTorch looks them up unchecked.

    First is a tuple of texts; lists, which are written whole, hold numbers of these.
    """
    texts, inside, seen = 0, False, False
    for op, argument, _ in pickletools.genops(archive.read(name, MAX_GRAPH_TEXT_BYTES)):
        if not seen:
            texts = 0 if op.name == "MARK" else texts + (op.name not in (*_PUT, "TUPLE"))
            seen = "TUPLE" in op.name
            texts = int(op.name[5:]) if op.name in ("TUPLE1", "TUPLE2", "TUPLE3") else texts
        elif op.name == "EMPTY_LIST":
            inside = True
        elif isinstance(argument, int) and op.name not in _PUT and not op.name.endswith("GET"):
            if not 0 <= argument < (texts if inside else 2**31):
                raise archive.error(f"{name}: the number {argument} of {texts} texts")
        elif op.name == "APPENDS" and inside:
            inside = False
        elif op.name in _CHANGES or op.name == "APPENDS" or (inside and op.name not in _ALLOWED):
            raise archive.error(f"{name}: a step {op.name}, which PyTorch does not write")


def _step(
    name: str, argument: AnyValue, stack: list[_Value], memo: dict[AnyValue, _Value]
) -> _Value:
    """Take one step of a pickle; return the value that it makes or changes."""
    if name == "MARK":
        stack.append(_MARK)
    elif name in _FROM_MARK:
        stack.append(_made(_pop_to_mark(stack)))
    elif name in _INTO_MARK:
        parts = _pop_to_mark(stack)
        stack[-1].take(parts)
    elif name in _INTO_BELOW:
        parts = [stack.pop() for _ in range(_INTO_BELOW[name])]
        stack[-1].take(parts)
    elif name in _JOINED:
        stack.append(_made([stack.pop() for _ in range(_JOINED[name])]))
    elif name.endswith("PUT"):
        memo[argument] = stack[-1]
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name.endswith("GET"):
        stack.append(memo[argument])
    elif name in ("POP", "POP_MARK"):
        _ = stack.pop() if name == "POP" else _pop_to_mark(stack)
    elif name == "DUP":
        stack.append(stack[-1])
    elif name not in ("PROTO", "FRAME", "STOP"):
        stack.append(_Value())
    return stack[-1] if stack else _MARK


def _made(parts: list[_Value]) -> _Value:
    found = _Value()
    found.take(parts)
    return found


def _pop_to_mark(stack: list[_Value]) -> list[_Value]:
    parts = []
    while (each := stack.pop()) is not _MARK:
        parts.append(each)
    return parts


def draw_calls(find: Callable[[str], AnyValue], entry: str, instances: int) -> None:
    """Draw the nodes that a program has once all calls in it are inlined.

    Args:
        find: Returns a function or method by its full name, None where there is none.
        entry: The full name of the method that is called first.
        instances: How many modules there are, each of which the source holds.

    Raises:
        FormatError: A function calls itself.
        LimitError: There are too many nodes.
    """
    budget().grow(nodes=instances)
    counts: dict[str, int] = {}
    own = 0
    open_: dict[str, tuple[int, list[str]]] = {}
    pending = [entry]
    while pending:
        name = pending[-1]
        if name in counts:
            pending.pop()
        elif name in open_:
            nodes, callees = open_.pop(name)
            counts[name] = nodes + sum(counts[each] for each in callees)
        else:
            function = find(name)
            nodes, callees = (0, []) if function is None else _calls(function.graph)
            own += nodes
            if not open_.keys().isdisjoint(callees) or name in callees:
                raise FormatError(f"{name} calls itself")
            open_[name] = nodes, callees
            pending += callees
    if counts[entry] > own:
        what = "functions that are read where they are called"
        budget().draw("nodes", counts[entry] - own, what)


def _calls(graph: AnyValue) -> tuple[int, list[str]]:
    """Return how many nodes a graph has, and the full names of what it calls."""
    count, callees = 0, []
    for node in _nodes(graph):
        count += 1
        kind = node.kind()
        if kind not in ("prim::CallMethod", "prim::CallFunction"):
            continue
        called = next(node.inputs()).type()
        if kind == "prim::CallFunction":
            callees.append(str(called))
        elif called.kind() == "ClassType":
            callees.append(f"{called.qualified_name()}.{node.s('name')}")
    return count, callees


def _nodes(graph: AnyValue) -> Iterator[AnyValue]:
    pending = [graph]
    while pending:
        for node in pending.pop().nodes():
            yield node
            pending.extend(node.blocks())
