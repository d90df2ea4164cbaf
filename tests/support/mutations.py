"""Small changes of Relay text and of TVM's JSON, as slips and faulty writers make them."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

from serde.relay.ir.registry import all_ops

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|%?@?[A-Za-z_0-9][A-Za-z_0-9./]*|->|==|!=|<=|>=|\s+|.', re.DOTALL
)
_DTYPES = ("float32", "float16", "float64", "int32", "int64", "int8", "uint8", "bool", "bfloat16")
_NUMBERS = ("0", "1", "-1", "2", "3", "7", "100", "2147483648", "-9", "1f", "0.5f", "nanf", "2i64")
_WORDS = ("None", "True", "False", '"NHWC"', '"NCHW"', '""', "[]", "[1]", "[1, 2]", "()", "?", "n")
_MARKS = ("(", ")", "{", "}", "[", "]", ",", ";", "=", ".", "->", "+", ":")
_OPERATORS = tuple(all_ops())
_KEYS = (
    "relay.Call", "relay.Constant", "relay.Tuple", "relay.TupleGetItem", "relay.Var", "Array",
    "relay.Function", "relay.If", "relay.Let", "relay.TensorType", "IntImm", "runtime.String", "Op",
    "Map", "IRModule", "GlobalVar", "TupleType", "tir.Any", "FloatImm", "", "DictAttrs",
)  # fmt: skip


def mutate_text(text: str, rng: random.Random) -> str:
    """Return Relay text with one to three changes."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if len(tokens) < 3:
            break
        _change(tokens, rng)
    found = "".join(tokens)
    if rng.random() < 0.05:
        found = found[: rng.randrange(len(found) + 1)]
    return found


def _change(tokens: list[str], rng: random.Random) -> None:
    """Change one token: mostly to one of its kind, sometimes to any, so that rules are met."""
    kind = rng.randrange(20)
    any_kind = kind < 3
    place = _place(tokens, rng, any_kind)
    if kind == 0:
        other = _place(tokens, rng, any_kind)
        tokens[place], tokens[other] = tokens[other], tokens[place]
    elif kind == 1:
        del tokens[place]
    elif kind == 2:
        tokens.insert(place, tokens[_place(tokens, rng, any_kind)])
    elif kind < 8:
        alike = [each for each in tokens[12:] if _kind(each) == _kind(tokens[place])]
        tokens[place] = rng.choice(alike or tokens)
    else:
        tokens[place] = _alike(tokens[place], rng)


def _kind(token: str) -> str:
    if token in _DTYPES or token in _OPERATORS:
        return "dtype" if token in _DTYPES else "operator"
    if token[:1].isdigit() or token[:1] in '%@"':
        return "number" if token[:1].isdigit() else token[0]
    return "value" if token in ("True", "False", "None") else ""


def _place(tokens: list[str], rng: random.Random, any_kind: bool) -> int:
    """Return a place in the text that is no space, comment or header."""
    for _ in range(100):
        place = rng.randrange(len(tokens))
        token = tokens[place]
        if place > 12 and (_kind(token) or (any_kind and not token.isspace())):
            return place
    return len(tokens) - 1


def _alike(token: str, rng: random.Random) -> str:
    """Return another token of the same kind."""
    if token in _DTYPES:
        return rng.choice(_DTYPES)
    if token in _OPERATORS:
        return rng.choice(_OPERATORS)
    if token[:1].isdigit():
        return rng.choice((*_NUMBERS, str(rng.randrange(12))))
    if token[:1] == '"' or token in ("True", "False", "None"):
        return rng.choice((*_WORDS, *_NUMBERS))
    if token[:1] in "%@":
        return rng.choice(("%x", "%x0", "%x1", "%0", "%1", "%0.0", "1f", "(%x0, %x0)", "()"))
    return rng.choice((*_MARKS, *_WORDS, "axis", "@main"))


def mutate_json(text: str, rng: random.Random) -> str:
    """Return TVM's JSON with one to three changes of its nodes."""
    graph = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change_node(graph["nodes"], rng)
    if rng.random() < 0.05:
        graph["root"] = rng.randrange(len(graph["nodes"]))
    found = json.dumps(graph)
    return found[: rng.randrange(len(found))] if rng.random() < 0.03 else found


def _change_node(nodes: list[Any], rng: random.Random) -> None:
    place = rng.randrange(len(nodes))
    node = nodes[place]
    fields = node.get("attrs") or {}
    kind = rng.randrange(6)
    if kind == 0:
        node["type_key"] = rng.choice(_KEYS)
    elif kind == 1 and fields:
        del fields[rng.choice(list(fields))]
    elif kind == 2 and node.get("data"):
        data = node["data"]
        data[rng.randrange(len(data))] = rng.choice((rng.randrange(len(nodes)), 0, -1))
    elif kind == 3:
        nodes[place] = copy.deepcopy(rng.choice(nodes))
    elif "repr_str" in node:
        node["repr_str"] = rng.choice((*_OPERATORS, "1", "-1", "NHWC"))
    elif fields:
        fields[rng.choice(list(fields))] = rng.choice(
            (*_DTYPES, str(rng.randrange(len(nodes))), "0", "1", "-1", "99999999999", "x")
        )
