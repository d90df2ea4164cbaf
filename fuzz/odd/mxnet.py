"""Symbols and parameter files of MXNet with texts, types and sparse arrays that are odd."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fuzz.case import Case

__all__ = ["make_cases"]


def _symbol(attrs: Mapping[str, str], op: str = "Convolution", **more: Any) -> bytes:
    """Return the JSON of a symbol of one operator with a weight."""
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {"op": op, "name": "y", "attrs": dict(attrs), "inputs": [[0, 0, 0], [1, 0, 0]], **more},
    ]
    graph = {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}
    return json.dumps({**graph, "attrs": {"mxnet_version": ["int", 10901]}}).encode()


def _params(array: bytes, name: str = "arg:w") -> bytes:
    """Return a parameter file of one array."""
    head = struct.pack("<QQQ", 0x112, 0, 1)
    return head + array + struct.pack("<QQ", 1, len(name)) + name.encode()


def _sparse(
    kind: int, stored: Sequence[int], shape: Sequence[int], indices: Sequence[Sequence[int]]
) -> bytes:
    """Return an array of float32 in sparse storage: 1 for rows, 2 for CSR."""
    made = struct.pack(f"<Iii{len(stored)}q", 0xF993FAC9, kind, len(stored), *stored)
    made += struct.pack(f"<i{len(shape)}q", len(shape), *shape) + struct.pack("<iii", 1, 0, 0)
    for each in indices:
        made += struct.pack("<iiq", 6, 1, len(each))
    count = 1
    for length in stored:
        count *= length
    made += struct.pack(f"<{count}f", *range(count))
    return made + b"".join(struct.pack(f"<{len(each)}q", *each) for each in indices)


_KERNELS: Final = ("(3, 3)", "(((3, 3)))", "(3, 3", "3, 3)", "(3," * 3000, "None", "[3, 3]", "")


def make_cases() -> Iterator[Case]:
    shapes = {"input_shapes": {"data": [2, 3, 8, 8], "w": [4, 3, 3, 3]}}
    for number, kernel in enumerate(_KERNELS):
        symbol = _symbol({"kernel": kernel, "num_filter": "4", "no_bias": "True"})
        yield Case.of("mxnet", f"odd-kernel{number}", {"m-symbol.json": symbol}, **shapes)
    for text in ("1e999", "9" * 30, "inf", "nan", "None", "x", "1" * 70_000):
        symbol = _symbol({"scalar": text}, "_plus_scalar")
        yield Case.of("mxnet", f"odd-scalar-{text[:5]}", {"m-symbol.json": symbol}, **shapes)
        symbol = _symbol({"dtype": text}, "Cast")
        yield Case.of("mxnet", f"odd-type-{text[:5]}", {"m-symbol.json": symbol}, **shapes)
    flagged = _symbol({"kernel": "(3, 3)", "num_filter": "4", "no_bias": "True"})
    for flag in ("0", "12", "99", "-1", "x"):
        changed = flagged.replace(
            b'"name": "w"', b'"name": "w", "attrs": {"__dtype__": "%s"}' % flag.encode()
        )
        yield Case.of("mxnet", f"odd-flag{flag}", {"m-symbol.json": changed}, **shapes)
    named = flagged.replace(b'"name": "w"', '"name": "wé"'.encode())
    yield Case.of("mxnet", "odd-name", {"m-symbol.json": named}, **shapes)
    named = flagged.replace(b'"name": "w"', b'"name": "%s"' % (b"w" * 70_000))
    yield Case.of("mxnet", "odd-long-name", {"m-symbol.json": named})
    after = _symbol({"a_min": "0", "a_max": "1"}, "clip", control_deps=[0])
    yield Case.of("mxnet", "odd-control", {"m-symbol.json": after}, **shapes)
    dense = struct.pack("<Iii4q", 0xF993FAC9, 0, 4, 4, 3, 3, 3) + struct.pack("<iii", 1, 0, 0)
    dense += bytes(4 * 108)
    arrays = {
        "dense": _params(dense),
        "other": _params(dense, "arg:other"),
        "zip": b"PK\x03\x04" + bytes(40),
        "gzip": b"\x1f\x8b" + bytes(40),
        "rows": _params(_sparse(1, (2, 3), (4, 3), [[0, 2]])),
        "rows-fall": _params(_sparse(1, (2, 3), (4, 3), [[2, 0]])),
        "rows-beyond": _params(_sparse(1, (2, 3), (4, 3), [[0, 9]])),
        "no-rows": _params(_sparse(1, (0, 3), (4, 3), [[]])),
        "csr-fall": _params(_sparse(2, (2,), (4, 3), [[0, 2, 2, 2, 2], [2, 1]])),
        "csr": _params(_sparse(2, (2,), (4, 3), [[0, 1, 2, 2, 2], [0, 1]])),
        "csr-pointers": _params(_sparse(2, (2,), (4, 3), [[0, 5, 2, 2, 2], [0, 1]])),
        "csr-beyond": _params(_sparse(2, (2,), (4, 3), [[0, 1, 2, 2, 2], [0, 7]])),
        "csr-large": _params(_sparse(2, (2,), (4, 2**33), [[0, 1, 2, 2, 2], [0, 1]])),
    }
    matrix = _symbol({"num_hidden": "4", "no_bias": "True"}, "FullyConnected")
    for name, params in arrays.items():
        symbol = flagged if name in ("dense", "other") else matrix
        files = {"m-symbol.json": symbol, "m-0000.params": params}
        data = {"data": [2, 3, 8, 8] if symbol is flagged else [2, 3]}
        yield Case.of("mxnet", f"odd-params-{name}", files, input_shapes=data)
        reversed_files = dict(reversed(files.items()))
        yield Case.of("mxnet", f"odd-beside-{name}", reversed_files)
        for epoch in (0, 3):
            yield Case.of("mxnet", f"odd-epoch{epoch}-{name}", files, epoch=epoch)
            yield Case.of("mxnet", f"odd-of-epoch{epoch}-{name}", reversed_files, epoch=epoch)
