"""Texts, graphs and parameters of Relay that are odd."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from fuzz.case import Case
from fuzz.odd.relay_texts import ANNOTATIONS, BODIES, HEADS, METADATA, TENSOR, TOPS, TYPES

__all__ = ["make_cases"]


def make_cases() -> Iterator[Case]:
    head = '#[version = "0.0.5"]\n'
    texts = [f"{head}def @main(%x: {TENSOR}) {{ {body} }}" for body in BODIES]
    texts += [f"{head}def @main(%x: Tensor[{each}, float32]) {{ exp(%x) }}" for each in TYPES]
    texts += [f"{head}def @main(%x: {each}) {{ %x }}" for each in ANNOTATIONS]
    texts += [f"{head}def @main(%x: int32) -> {each} {{ %x }}" for each in ANNOTATIONS]
    texts += [head + each for each in TOPS]
    texts += [f"{each}\ndef @main(%x: {TENSOR}) {{ exp(%x) }}" for each in HEADS]
    call = f"def @main(%x: {TENSOR}) {{ add(%x, meta[relay.Constant][0]) }}\n#[metadata]\n"
    texts += [head + call + each for each in METADATA]
    for number, text in enumerate(texts):
        yield Case.of("relay", f"odd-text{number}", {"m.relay": text.encode()})
    yield Case.of("relay", "odd-bytes", {"m.relay": head.encode() + b"def @main() { \xff }"})
    yield from _relay_pairs(head)
    yield from _relay_graphs()


def _relay_pairs(head: str) -> Iterator[Case]:
    """A text or a graph with parameters, handed over in every way, the parameters damaged too."""
    import numpy as np
    from support.tvm_layout import JsonGraph, param_file

    text = f"{head}def @main(%x: {TENSOR}, %w: {TENSOR}) {{ add(%x, %w) }}".encode()
    graph = JsonGraph()
    x, w = (graph.var(name, graph.tensor_type(2, 3)) for name in "xw")
    made = graph.module(main=graph.function([x, w], graph.call(graph.op("add"), x, w)))
    sources = {"m.relay": text, "m.json": json.dumps(made).encode()}
    weight = np.ones((2, 3), np.float32)
    params = {
        "right": param_file({"w": weight}),
        "none": param_file({}),
        "other": param_file({"v": weight}),
        "both": param_file({"v": weight, "w": weight}),
        "typed": param_file({"w": weight.astype(np.int8)}),
        "rank": param_file({"w": weight}).replace(struct.pack("<i", 2), struct.pack("<i", 99)),
        "length": param_file({"w": weight}).replace(struct.pack("<q", 3), struct.pack("<q", -3)),
        "short": param_file({"w": weight})[:-9],
        "count": param_file({"w": weight})[:16] + bytes(8),
        "name": param_file({"w": weight}).replace(b"w", b"\xff"),
    }
    for (name, source), (kind, data) in itertools.product(sources.items(), params.items()):
        for way in ("", "pair", "riap", "paths", "prefix", "bytes"):
            told = {"handed": way} if way else {}
            files = {name: source, "m.params": data}
            yield Case.of("relay", f"odd-{kind}-{name[2:]}{way}", files, **told)
        yield Case.of("relay", f"odd-{kind}-beside-{name[2:]}", {"m.params": data, name: source})
    yield Case.of("relay", "odd-alone", {"m.params": params["right"]})


def _relay_graphs() -> Iterator[Case]:
    """JSON of modules with named lengths, attributes of functions, places and references."""
    from support.tvm_layout import JsonGraph

    def case(name: str, graph: JsonGraph, made: Mapping[str, Any]) -> Case:
        return Case.of("relay", f"odd-json-{name}", {"m.json": json.dumps(made).encode()})

    def variable(graph: JsonGraph, *dims: int, dtype: str = "float32") -> int:
        shape = graph.array(*dims)
        return graph.var("x", graph.object("relay.TensorType", dtype=dtype, shape=shape, span=0))

    for key in ("tir.Add", "tir.Sub", "tir.Mul", "tir.FloorDiv"):
        for other in (0, 2, 2**62, -1):
            graph = JsonGraph()
            n, m = (graph.object(kind, name=graph.text("n")) for kind in ("tir.Var", "tir.SizeVar"))
            number = graph.integer(other)
            dims = [
                graph.object(key, dtype="int32", a=a, b=b, span=0)
                for a, b in ((n, m), (n, number), (number, number))
            ]
            for place in range(8):
                dims.append(graph.object(key, a=dims[-1], b=dims[place % 3], span=0))
            x = variable(graph, *dims[:3], *dims[-2:], n, m, graph.object("tir.Any", span=0))
            yield case(f"{key}{other}", graph, graph.module(main=graph.function([x], x)))
    for kind in ("DictAttrs", "StrMap", "Map", "odd", "nested", "deep"):
        graph = JsonGraph()
        x = variable(graph, graph.integer(2))
        facts = [
            graph.text("a"), graph.integer(1), graph.object("FloatImm", value="1.5"), x,
            graph.add("runtime.BoxInt", repr_str="7"), graph.add("runtime.BoxBool", repr_str="1"),
            graph.add("runtime.BoxFloat", repr_str="2.5"), graph.array(graph.text("b")),
        ]  # fmt: skip
        chosen = facts if kind == "nested" else [each for each in facts if each != x]
        keys = [f"k{place}" for place in range(len(chosen))]
        named = graph.add("StrMap", keys=keys[: -1 if kind == "odd" else None], data=chosen)
        pairs = [
            number
            for key, each in zip(keys, chosen, strict=True)
            for number in (graph.text(key), each)
        ]
        mapped = graph.add("Map", data=pairs if kind != "odd" else pairs[:-1])
        attrs = {"StrMap": named, "odd": named, "Map": mapped}.get(kind)
        if attrs is None:
            attrs = graph.object("DictAttrs", **{"__dict__": mapped if kind == "deep" else named})
        yield case(f"facts-{kind}", graph, graph.module(main=graph.function([x], x, attrs=attrs)))
    for root in ("function", "number", "type"):
        graph = JsonGraph()
        x = variable(graph, graph.integer(2), dtype="float99" if root == "type" else "uint1")
        found = graph.function([x], x)
        chosen_root = graph.integer(3) if root == "number" else found
        yield case(f"root-{root}", graph, graph.whole(chosen_root))
    graph = JsonGraph()
    x = variable(graph, graph.integer(2))
    name = graph.add("SourceName", repr_str="a.py")
    span = graph.object("Span", source_name=name, line=3, column=4, end_line=3, end_column=9)
    spans = graph.object("SequentialSpan", spans=graph.array(span, span))
    held = graph.expr("relay.RefCreate", value=graph.call(graph.op("exp"), x, span=spans))
    reference = graph.var("r", graph.object("relay.RefType", value=graph.tensor_type(2), span=0))
    written = graph.expr("relay.RefWrite", ref=reference, value=x)
    read = graph.expr("relay.RefRead", ref=reference)
    dropped = graph.var("d", graph.object("IncompleteType", kind=0, span=0))
    body = graph.expr("relay.Let", var=dropped, value=written, body=read)
    body = graph.expr("relay.Let", var=reference, value=held, body=body)
    chosen_one = graph.expr(
        "relay.If",
        cond=graph.var("c", graph.tensor_type(dtype="bool")),
        true_branch=body,
        false_branch=x,
    )
    yield case("references", graph, graph.module(main=graph.function([x], chosen_one)))
    yield case("written", graph, graph.module(main=graph.function([x], body)))
    graph = JsonGraph()
    x = variable(graph, graph.integer(2))
    pair = graph.expr("relay.Tuple", fields=graph.array(x, x))
    parts = [graph.object("relay.PatternVar", var=graph.var(each, 0), span=0) for each in "ab"]
    bound = graph.object("relay.PatternTuple", patterns=graph.array(*parts), span=0)
    clause = graph.object("relay.Clause", lhs=bound, rhs=x, span=0)
    body = graph.expr("relay.Match", data=pair, clauses=graph.array(clause), complete=1)
    yield case("pattern", graph, graph.module(main=graph.function([x], body)))
    field = graph.expr("relay.TupleGetItem", tuple_value=pair, index=1)
    yield case("field", graph, graph.module(main=graph.function([x], field)))
    for text in (
        "[" * 5000,
        "{}",
        '{"root": 0}',
        '{"nodes": 3, "root": 1}',
        "[]",
        '{"root": 1e400}',
    ):
        yield Case.of("relay", f"odd-json-{text[:9]}", {"m.json": text.encode()})
