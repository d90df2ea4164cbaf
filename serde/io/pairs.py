"""Pairs of files whose names a convention fixes, and what else lies beside a file.

The files of a pair are renamed one after the other, so a kill between the renames leaves an old
graph beside new parameters. Both therefore carry a mark, a digest of the graph: the graph as its
format allows, the parameters in the word behind the magic number of the file, which MXNet and TVM
reserve and do not read. Pairs of which both are marked, and differently, are not read.

Parameters for the same graph have the same mark, of whatever epoch they are. Files that others
wrote, or that MXNet or TVM wrote anew, have none. The values of the parameters are not looked at.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from serde.core.lossy import MISMATCHED_PAIR
from serde.core.weights import OpenFile
from serde.errors import FormatError, OptionError

__all__ = [
    "PARAMS_HEAD_BYTES", "UNMARKED", "Neighbours", "belong_together", "check_pair",
    "check_replaced", "has_mark", "mark_of", "params_mark",
]  # fmt: skip

UNMARKED: Final = 0
"""The mark of files that carry none."""

# Of a parameter file: its magic number, then the reserved word.
_HEAD: Final = struct.Struct("<QQ")
PARAMS_HEAD_BYTES: Final = _HEAD.size


def mark_of(graph: bytes) -> int:
    """Return the mark of a graph's text: 64 bits, never `UNMARKED`."""
    return int.from_bytes(blake2b(graph, digest_size=8).digest(), "big") or 1


def params_mark(source: OpenFile | bytes) -> int:
    """Return the mark of a parameter file of MXNet's or TVM's, which has at least a head."""
    if isinstance(source, bytes):
        return int(_HEAD.unpack_from(source)[1])
    head = bytearray(_HEAD.size)
    source.read_into(head, 0)
    return params_mark(bytes(head))


def has_mark(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Whether a file is of parameters that begin with `magic` and carry a mark."""
    try:
        with OpenFile.open(path) as opened:
            head = bytearray(_HEAD.size)
            opened.read_into(head, 0)
    except FormatError:
        return False
    return head.startswith(magic) and params_mark(bytes(head)) != UNMARKED


def belong_together(graph_mark: int, mark: int) -> bool:
    """Whether parameters may have been written with a graph, by the marks of both."""
    return UNMARKED in (graph_mark, mark) or graph_mark == mark


def check_pair(
    graph_mark: int, mark: int, graph: str, params: str | None, allow: Collection[str] = ()
) -> None:
    """Refuse parameters that were written with another graph.

    Args:
        graph_mark: The mark of the graph.
        mark: The mark of the parameters.
        graph: Where the graph is from, for the message.
        params: Where the parameters are from.
        allow: Names of steps that may be taken.

    Raises:
        FormatError: Both have marks, and these differ.
    """
    if belong_together(graph_mark, mark) or MISMATCHED_PAIR.name in allow:
        return
    raise FormatError(
        f"mismatched pair: these parameters were not written with the graph in {graph}; the "
        "writing was interrupted, or one of the files is another conversion's. Convert again, "
        f"or {MISMATCHED_PAIR.hint} to read them together",
        path=params,
    )


def check_replaced(originals: Collection[str | os.PathLike[str]], *, overwrite: bool) -> None:
    """Refuse to replace files that serde did not write and that the user did not name.

    Raises:
        OptionError: There are such files, and replacing them was not asked for.
    """
    if originals and not overwrite:
        named = ", ".join(os.fspath(each) for each in originals)
        raise OptionError(
            f"{named}: would be replaced, but serde did not write what is there; take another "
            "name, or --overwrite (overwrite=True)"
        )


class Neighbours(Protocol):
    """Files beside one that was fetched from where they all lie."""

    def names(self, start: str) -> Sequence[str]:
        """Return the names of files beside it that begin with `start`.

        Raises:
            StoreError: They cannot be listed.
        """

    def has(self, name: str) -> bool:
        """Whether there is a file of this name, relative to the folder."""
