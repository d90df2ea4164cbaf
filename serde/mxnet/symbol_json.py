"""Symbol JSON of MXNet 0.8 to 1.9 as a `Graph`.

A node's attributes are ``attrs`` (since 1.0), ``attr`` (0.9 to 0.12) or
``param`` with ``attr`` for what is not the operator's (0.8 and before). Where
a node has several, MXNet lets the later of ``attrs`` and ``attr`` count and
adds what only ``param`` has. Definition: ``saveload_json.cc`` of nnvm.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from serde.core import MAX_NAME_BYTES, MAX_NESTING
from serde.core.limits import (
    MAX_ATTRIBUTE_CHARS,
    MAX_NODES,
    MAX_OPERATOR_CHARS,
    MAX_SYMBOL_CONTAINERS,
    MAX_SYMBOL_JSON_BYTES,
)
from serde.core.parsing import nesting_depth, parse_json
from serde.errors import FormatError
from serde.io.pairs import UNMARKED, mark_of
from serde.mxnet.model import LATEST_VERSION, METADATA_KEY, Entry, Graph, Node, version_text
from serde.mxnet.upgrades import HIDDEN_KEYS, Draft, upgrade

__all__ = [
    "PAIR_KEY", "marked_text", "parse_symbol", "plain_name", "symbol_mark", "symbol_text",
]  # fmt: skip

PAIR_KEY = "serde_pair"
"""Attribute of a graph: the mark of the pair, which MXNet passes over and does not write anew."""

_HEX_DIGITS = 16

_UNREADABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""What legal JSON can hold by escapes alone, or no file at all."""

_GRAPH_KEYS = frozenset({"nodes", "arg_nodes", "heads", "node_row_ptr", "attrs"})

_SYMBOL_KEYS = frozenset({"nodes", "arg_nodes", "heads"})
"""Those of which files of other programs have none."""
_NODE_KEYS = frozenset(
    {
        "op",
        "name",
        "inputs",
        "attrs",
        "attr",
        "param",
        "control_deps",
        "subgraphs",
        "backward_source_id",
    }
)

# Releases before 0.9 did not note their number.
_UNNUMBERED = 800


def parse_symbol(data: bytes, *, path: str | None = None) -> Graph:
    """Return the graph of a symbol's JSON text, upgraded as MXNet 1.9.1 does on load.

    Args:
        data: The text, UTF-8.
        path: Where it is from, for messages.

    Raises:
        FormatError: The text is not a symbol that MXNet would load.
    """
    document = _parse_json(data, path)
    if not isinstance(document, dict) or not _SYMBOL_KEYS & document.keys():
        raise FormatError(_foreign(document), path=path)
    return _Reader(path).graph(document, "", version=None)


def _foreign(document: object) -> str:
    """Return what JSON of another kind is."""
    if not isinstance(document, dict):
        return f"no symbol of MXNet: expected an object, found {_show(document)}"
    keys = ", ".join(repr(key)[:40] for key in list(document)[:5])
    more = ", ..." if len(document) > 5 else ""
    return f"JSON, but no symbol of MXNet: it has no 'nodes', but {keys or 'no keys'}{more}"


def _parse_json(data: bytes, path: str | None) -> object:
    if len(data) > MAX_SYMBOL_JSON_BYTES:
        message = f"expected at most {MAX_SYMBOL_JSON_BYTES} bytes of JSON, found {len(data)}"
        raise FormatError(message, path=path)
    _check_brackets(data, path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"expected JSON in UTF-8, found {data[:8].hex(' ')}"
        raise FormatError(message, path=path, offset=error.start) from None
    try:
        return parse_json(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise FormatError(f"not JSON: {error.msg}", path=path, offset=offset) from None
    except ValueError as error:
        raise FormatError(f"not a symbol's JSON: {error}", path=path) from None


def _check_brackets(data: bytes, path: str | None) -> None:
    count = data.count(b"[") + data.count(b"{")
    if count > MAX_SYMBOL_CONTAINERS:
        message = f"{count} lists and objects, at most {MAX_SYMBOL_CONTAINERS}"
        raise FormatError(message, path=path)
    depth = nesting_depth(data)
    if depth > MAX_NESTING:
        raise FormatError(f"brackets nested {depth} deep, at most {MAX_NESTING}", path=path)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key[:100]!r} occurs twice in one object")
    return value


def _is_compiled(document: Mapping[str, object]) -> bool:
    """Whether it is what TVM's graph executor runs, which has the form of a symbol."""
    attrs, nodes = document.get("attrs"), document.get("nodes")
    nodes = nodes if isinstance(nodes, list) else ()
    ops = [each.get("op") for each in nodes if isinstance(each, dict)]
    return (isinstance(attrs, dict) and "storage_id" in attrs) or "tvm_op" in ops


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


class _Reader:
    """Turns parsed JSON into graphs; every fault names the place in the document."""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def error(self, where: str, message: str) -> FormatError:
        return FormatError(f"{where.lstrip('.') or 'document'}: {message}", path=self.path)

    def graph(self, value: object, where: str, version: int | None) -> Graph:
        """Return a graph; `version` is given for a subgraph, whose text has none."""
        document = self.mapping(value, where, _GRAPH_KEYS)
        if _is_compiled(document):
            raise self.error(
                where,
                "the graph of TVM's executor, whose nodes are compiled functions: expected a "
                "symbol of MXNet; convert the model that was compiled",
            )
        attrs = self.graph_attrs(document.get("attrs", {}), where)
        found = attrs.pop("mxnet_version", _UNNUMBERED)
        nested = version is not None
        number = version if version is not None else self.version(found, where)
        raw = self.sequence(document, "nodes", where)
        if len(raw) > MAX_NODES:
            raise self.error(where, f"{len(raw)} nodes, at most {MAX_NODES}")
        drafts = [self.node(node, index, where, number) for index, node in enumerate(raw)]
        self.check_arguments(document, drafts, where)
        heads = self.heads(document, drafts, where)
        self.check_variables(drafts, heads, where)
        if not nested:
            upgrade(drafts, number)
        return _assemble(drafts, heads, number, attrs)

    def graph_attrs(self, value: object, where: str) -> dict[str, object]:
        """Return the pairs of type name and value that describe the graph, by name."""
        pairs = self.mapping(value, f"{where}.attrs", None)
        attrs: dict[str, object] = {}
        for key, pair in pairs.items():
            if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
                raise self.error(
                    f"{where}.attrs.{key}", f"expected [type, value], found {_show(pair)}"
                )
            attrs[key] = pair[1]
        return attrs

    def version(self, value: object, where: str) -> int:
        number = self.index(value, f"{where}.attrs.mxnet_version")
        if number // 10000 > LATEST_VERSION // 10000:
            raise self.error(
                where,
                f"written by MXNet {version_text(number)}; "
                f"the newest version known is {version_text(LATEST_VERSION)}",
            )
        return number

    def node(self, value: object, index: int, where: str, version: int) -> Draft:
        """Read one node; its inputs stand before it."""
        where = f"{where}.nodes[{index}]"
        fields = self.mapping(value, where, _NODE_KEYS)
        op = self.text(fields, "op", where, MAX_OPERATOR_CHARS)
        name = self.text(fields, "name", where, MAX_NAME_BYTES)
        if not op:
            raise self.error(where, "expected an operator's name, found ''")
        where = f"{where} ({op} {name[:100]!r})"
        inputs = [
            self.entry(entry, index, f"{where}.inputs[{position}]")
            for position, entry in enumerate(self.sequence(fields, "inputs", where))
        ]
        if op == "null" and inputs:
            raise self.error(where, f"a variable with {len(inputs)} inputs")
        control = [
            self.earlier(node, index, f"{where}.control_deps")
            for node in self.sequence(fields, "control_deps", where, [])
        ]
        subgraphs = [
            self.graph(graph, f"{where}.subgraphs[{position}]", version)
            for position, graph in enumerate(self.sequence(fields, "subgraphs", where, []))
        ]
        return Draft(op, name, self.attrs(fields, where), inputs, subgraphs, control)

    def attrs(self, fields: Mapping[str, object], where: str) -> dict[str, str]:
        attrs: dict[str, str] = {}
        param: dict[str, str] = {}
        for key, value in fields.items():
            if key in ("attrs", "attr"):
                attrs = self.strings(value, f"{where}.{key}")
            elif key == "param":
                param = self.strings(value, f"{where}.{key}")
        return {**param, **attrs}

    def strings(self, value: object, where: str) -> dict[str, str]:
        strings = self.mapping(value, where, None)
        return {key: self.text(strings, key, where, MAX_ATTRIBUTE_CHARS) for key in strings}

    def entry(self, value: object, limit: int, where: str) -> Entry:
        """Return an entry ``[node, index]``; a third number counts updates and says no more."""
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise self.error(where, f"expected [node, output], found {_show(value)}")
        node = self.earlier(value[0], limit, where)
        index, *_ = (self.index(number, where) for number in value[1:])
        return Entry(node, index)

    def earlier(self, value: object, limit: int, where: str) -> int:
        node = self.index(value, where)
        if node >= limit:
            raise self.error(where, f"expected one of the {limit} nodes before, found {node}")
        return node

    def index(self, value: object, where: str) -> int:
        if type(value) is not int or not 0 <= value < 2**32:
            raise self.error(where, f"expected a number from 0, found {_show(value)}")
        return value

    def heads(
        self, document: Mapping[str, object], drafts: Sequence[Draft], where: str
    ) -> list[Entry]:
        heads = [
            self.entry(head, len(drafts), f"{where}.heads[{position}]")
            for position, head in enumerate(self.sequence(document, "heads", where))
        ]
        if not heads:
            raise self.error(f"{where}.heads", "expected at least one output")
        return heads

    def check_arguments(
        self, document: Mapping[str, object], drafts: Sequence[Draft], where: str
    ) -> None:
        where = f"{where}.arg_nodes"
        for value in self.sequence(document, "arg_nodes", where.rpartition(".")[0]):
            node = self.earlier(value, len(drafts), where)
            if drafts[node].op != "null":
                raise self.error(where, f"node {node} is no variable but {drafts[node].op}")
        if "node_row_ptr" in document:
            for value in self.sequence(document, "node_row_ptr", where):
                self.index(value, f"{where.rpartition('.')[0]}.node_row_ptr")

    def check_variables(self, drafts: Sequence[Draft], heads: Sequence[Entry], where: str) -> None:
        """Refuse a further output of a variable, which has one."""
        used = [entry for draft in drafts for entry in draft.inputs]
        for entry in (*used, *heads):
            if entry.index and drafts[entry.node].op == "null":
                name = _show(drafts[entry.node].name)
                raise self.error(where, f"the variable {name} has no output {entry.index}")

    def mapping(
        self, value: object, where: str, allowed: frozenset[str] | None
    ) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self.error(where, f"expected an object, found {_show(value)}")
        unknown = set() if allowed is None else value.keys() - allowed
        if unknown:
            raise self.error(where, f"unknown key {_show(min(unknown))}")
        return value

    def sequence(
        self, fields: Mapping[str, object], key: str, where: str, default: list[Any] | None = None
    ) -> list[Any]:
        value = fields.get(key, default)
        if not isinstance(value, list):
            found = _show(value) if key in fields else "nothing"
            raise self.error(f"{where}.{key}", f"expected a list, found {found}")
        return value

    def text(self, fields: Mapping[str, object], key: str, where: str, limit: int) -> str:
        value = fields.get(key)
        if not isinstance(value, str):
            found = _show(value) if key in fields else "nothing"
            raise self.error(f"{where}.{key[:100]}", f"expected a string, found {found}")
        if len(value) > limit:
            raise self.error(f"{where}.{key[:100]}", f"{len(value)} characters, at most {limit}")
        if not value.isascii() and not _is_unicode(value):
            raise self.error(f"{where}.{key[:100]}", "half of a surrogate pair")
        return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(value: object) -> str:
    text = repr(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}..."


def _assemble(
    drafts: Sequence[Draft], heads: Sequence[Entry], version: int, attrs: dict[str, object]
) -> Graph:
    """Return the nodes that `heads` need, in the order in which MXNet writes them."""
    order = _post_order(drafts, [head.node for head in heads])
    place = {old: new for new, old in enumerate(order)}
    nodes = tuple(_node(drafts[old], place) for old in order)
    moved = tuple(Entry(place[head.node], head.index) for head in heads)
    return Graph(nodes, moved, version, attrs)


def _post_order(drafts: Sequence[Draft], roots: Sequence[int]) -> list[int]:
    order: list[int] = []
    seen = [False] * len(drafts)
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(drafts[root].dependencies()))]
        while stack:
            node, children = stack[-1]
            child = next((child for child in children if not seen[child]), None)
            if child is None:
                order.append(node)
                stack.pop()
                continue
            seen[child] = True
            stack.append((child, iter(drafts[child].dependencies())))
    return order


def _node(draft: Draft, place: Mapping[int, int]) -> Node:
    attrs: dict[str, str] = {}
    hidden: dict[str, str] = {}
    for key, value in draft.attrs.items():
        (hidden if _is_hidden(key, draft.op) else attrs)[key] = value
    return Node(
        draft.op,
        draft.name,
        attrs,
        tuple(Entry(place[entry.node], entry.index) for entry in draft.inputs),
        hidden,
        tuple(draft.subgraphs),
        tuple(place[node] for node in draft.control),
    )


def _is_hidden(key: str, op: str) -> bool:
    if key.startswith("__") and key.endswith("__"):
        return True
    if op == "null":
        return key in HIDDEN_KEYS
    return key.endswith(HIDDEN_KEYS)


def plain_name(name: str) -> str:
    """Return a name that MXNet can read: it knows escapes of line ends and tabs alone."""
    return _UNREADABLE.sub("_", name)


def symbol_text(graph: Graph) -> str:
    """Return a graph as the symbol JSON of MXNet 1.9.1 has it."""
    return json.dumps(_symbol_dict(graph), indent=2, ensure_ascii=False)


def marked_text(graph: Graph) -> tuple[str, int]:
    """Return a graph as symbol JSON that carries the mark of its pair, and that mark."""
    document = _symbol_dict(graph)
    blank = "0" * _HEX_DIGITS
    document["attrs"][PAIR_KEY] = ["str", blank]
    text = json.dumps(document, indent=2, ensure_ascii=False)
    mark = mark_of(text.encode())
    before, _, after = text.rpartition(blank)
    return f"{before}{mark:0{_HEX_DIGITS}x}{after}", mark


def symbol_mark(graph: Graph) -> int:
    """Return the mark of the pair that a symbol's JSON carried."""
    try:
        return int(str(graph.attrs.get(PAIR_KEY, "")), 16)
    except ValueError:
        return UNMARKED


def _symbol_dict(graph: Graph) -> dict[str, Any]:
    """Return a graph as the JSON has it, subgraphs included."""
    nodes = []
    for node in graph.nodes:
        entry: dict[str, Any] = {
            "op": node.op,
            "name": node.name,
            "inputs": [[source.node, source.index, 0] for source in node.inputs],
        }
        attrs = {**node.attrs, **node.hidden}
        if attrs:
            entry["attrs"] = attrs
        if node.subgraphs:
            entry["subgraphs"] = [_symbol_dict(body) for body in node.subgraphs]
        if node.control_deps:
            entry["control_deps"] = list(node.control_deps)
        nodes.append(entry)
    return {
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op == "null"],
        "heads": [[head.node, head.index, 0] for head in graph.heads],
        "attrs": {
            "mxnet_version": ["int", LATEST_VERSION],
            **{
                key: ["int" if type(value) is int else "str", value]
                for key, value in graph.attrs.items()
                if type(value) is int or key == METADATA_KEY
            },
        },
    }
