"""Bounds on what a file may claim before serde believes it.

Every reader takes its bounds from here. A claim that can be checked against
the size of the file is checked so; the figures below bound the rest.
"""

from __future__ import annotations

from typing import Final

CHUNK_BYTES: Final = 16 * 2**20
"""Largest piece in which bytes of weights are read, computed or written."""

MAX_RANK: Final = 32
"""Most axes that a tensor may have (MXNet and NumPy allow no more)."""

MAX_TENSORS: Final = 10_000_000
"""Most tensors in one file."""

MAX_NAME_BYTES: Final = 1_000_000
"""Longest name of a tensor or a node."""

MAX_NODES: Final = 10_000_000
"""Most nodes in one graph."""

MAX_GRAPH_TEXT_BYTES: Final = 1 * 2**30
"""Longest text of a graph (symbol JSON, Relay text)."""

MAX_ONNX_TEXT_BYTES: Final = 2**28
"""Longest ONNX model in one of its text forms."""

MAX_SYMBOL_JSON_BYTES: Final = 32 * 2**20
"""Longest symbol JSON: room for some 200,000 nodes as MXNet writes them."""

MAX_SYMBOL_CONTAINERS: Final = 2_000_000
"""Most lists and objects in a symbol's JSON, of which a node has some six."""

MAX_OPERATOR_CHARS: Final = 1000
"""Longest name of an operator."""

MAX_MANIFEST_BYTES: Final = 2**20
"""Longest manifest of a package."""

MAX_NESTING: Final = 200
"""Deepest nesting of lists, objects and subgraphs in a file's text."""

MAX_SUBGRAPH_DEPTH: Final = 32
"""Deepest nesting of subgraphs and of calls of a model's own functions."""

MAX_LOOP_FORKS: Final = 1000
"""Most branches of a model that take in the layers after them, as iterations may end in them."""

MAX_EXPANDED_NODES: Final = 2_000_000
"""Most nodes that a model may have once its own functions are expanded."""

MAX_ATTRIBUTE_CHARS: Final = 1_000_000
"""Longest textual value of one attribute."""

MAX_INLINE_BYTES: Final = 64 * 2**20
"""Largest constant that a conversion may evaluate inside the graph."""

MAX_WEIGHT_GROWTH: Final = 8
"""How many times the size of all weights one that is computed from them may have."""

MAX_ARCHIVE_MEMBERS: Final = 10_000
"""Most members of an archive."""

MAX_TORCH_ARCHIVE_MEMBERS: Final = 100_000
"""Most members of an archive of PyTorch, which has one for each weight."""

MAX_TORCH_JSON_BYTES: Final = 256 * 2**20
"""Longest text of a program of PyTorch: room for some 200,000 nodes with their stack traces."""

MAX_TORCH_CONTAINERS: Final = 20_000_000
"""Most lists and objects in the text of a program of PyTorch, of which a node has some forty."""

MAX_ARCHIVE_RATIO: Final = 1000
"""Most bytes that one byte of a compressed archive may unpack to."""

MAX_PROTOBUF_BYTES: Final = 2**31 - 1
"""Largest message that protobuf reads."""

MAX_SPLIT_MANIFEST_BYTES: Final = 64 * 2**20
"""Longest manifest of a split model: room for some 100,000 regions."""
