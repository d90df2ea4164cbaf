"""A partition as a picture: the graph from top to bottom, coloured by region, as SVG.

Nodes stand in rows by the longest path that leads to them. In a row they are put in the order of
the places of what they read and of what reads them, in a few sweeps. An edge that crosses the edge
of a region is red. All of it is linear in the graph but for the sorting of rows.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from serde.target.partition import Partition, PlacedNode

__all__ = ["draw"]

_WIDTH, _HEIGHT = 132, 26
_GAP_X, _GAP_Y = 14, 30
_MARGIN, _LEGEND = 20, 24
_SWEEPS = 4
_TEXT_CHARS = 19
_GOLDEN = 0.618033988749895
_LEGEND_ENTRIES = 24
_HOST = "#e4e4e4"
_NO_CHARACTERS = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 does not take as characters."""


def draw(partition: Partition) -> str:
    """Return the picture of a partition as the text of an SVG file."""
    nodes = partition.nodes
    ranks = _rank(nodes)
    rows = _order(nodes, ranks)
    places = _place(rows)
    width = max((x for x, _ in places), default=0) + _WIDTH + _MARGIN
    width = max(width, _MARGIN + _LEGEND * 16)
    legend = list(_legend(partition))
    top = _MARGIN + _LEGEND * len(legend) // 2
    height = max((y for _, y in places), default=0) + _HEIGHT + _MARGIN + top
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        "<style>.e{fill:none;stroke:#888;stroke-width:1}.c{stroke:#c22;stroke-width:1.6}"
        ".n{stroke:#555;stroke-width:.7}text{dominant-baseline:middle}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *legend,
        f'<g transform="translate(0 {top})">',
        *_edges(nodes, places),
        *_boxes(nodes, places),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def color_of(region: int | None) -> str:
    """Return the colour of a region: neighbours in number are far apart in hue."""
    if region is None:
        return _HOST
    lightness = 0.72 + 0.08 * (region % 2)
    channels = colorsys.hls_to_rgb((0.33 + region * _GOLDEN) % 1.0, lightness, 0.65)
    return "#" + "".join(f"{round(255 * each):02x}" for each in channels)


def _rank(nodes: Sequence[PlacedNode]) -> list[int]:
    """Return the row of each node: one below the lowest that it reads."""
    ranks: list[int] = []
    for node in nodes:
        ranks.append(max((ranks[source] + 1 for source in node.sources), default=0))
    return ranks


def _order(nodes: Sequence[PlacedNode], ranks: Sequence[int]) -> list[list[int]]:
    """Return the rows, in each the nodes from left to right."""
    rows: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for number, rank in enumerate(ranks):
        rows[rank].append(number)
    readers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for source in node.sources:
            readers[source].append(number)
    spots = [0.0] * len(nodes)
    for row in rows:
        _spread(row, spots)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            means = {}
            for number in row:
                around = nodes[number].sources if down else readers[number]
                known = [spots[each] for each in around]
                means[number] = sum(known) / len(known) if known else spots[number]
            row.sort(key=means.__getitem__)
            _spread(row, spots)
    return rows


def _spread(row: Sequence[int], spots: list[float]) -> None:
    for index, number in enumerate(row):
        spots[number] = index - (len(row) - 1) / 2


def _place(rows: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the upper left corner of each node; every row is centred."""
    widest = max(map(len, rows), default=0)
    found: dict[int, tuple[int, int]] = {}
    for rank, row in enumerate(rows):
        left = _MARGIN + (widest - len(row)) * (_WIDTH + _GAP_X) // 2
        for index, number in enumerate(row):
            found[number] = (left + index * (_WIDTH + _GAP_X), rank * (_HEIGHT + _GAP_Y))
    return [found[number] for number in range(len(found))]


def _edges(nodes: Sequence[PlacedNode], places: Sequence[tuple[int, int]]) -> Iterator[str]:
    for number, node in enumerate(nodes):
        x, y = places[number]
        for source in node.sources:
            left, above = places[source]
            crosses = nodes[source].region != node.region
            start, end = left + _WIDTH // 2, x + _WIDTH // 2
            below = above + _HEIGHT
            middle = (below + y) // 2
            kind = "e c" if crosses else "e"
            yield (
                f'<path class="{kind}" d="M{start} {below}C{start} {middle} {end} {middle} '
                f'{end} {y}"/>'
            )


def _boxes(nodes: Sequence[PlacedNode], places: Sequence[tuple[int, int]]) -> Iterator[str]:
    for node, (x, y) in zip(nodes, places, strict=True):
        where = "host" if node.region is None else f"region {node.region}"
        reasons = "".join(f"\n{gap.op} {gap.reason}".rstrip() for gap in node.gaps)
        title = _escape(f"{node.op} {node.name}\n{where}{reasons}")
        short = node.op if len(node.op) <= _TEXT_CHARS else node.op[: _TEXT_CHARS - 1] + "…"
        yield (
            f'<g><title>{title}</title><rect class="n" x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="4" fill={quoteattr(color_of(node.region))}/>'
            f'<text x="{x + 6}" y="{y + _HEIGHT // 2}">{_escape(short)}</text></g>'
        )


def _escape(text: str) -> str:
    """Return text as XML has it, where some characters have no place at all."""
    return escape(_NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text))


def _legend(partition: Partition) -> Iterator[str]:
    """Yield the colours of the host and of the first regions with what they are."""
    entries = [(_HOST, f"host: {sum(node.calls for node in partition.staying)} nodes")]
    entries += [
        (color_of(number), f"{number}: {region.calls} nodes")
        for number, region in enumerate(partition.regions[:_LEGEND_ENTRIES])
    ]
    left = len(partition.regions) - _LEGEND_ENTRIES
    if left > 0:
        entries.append(("none", f"and {left} regions more"))
    for index, (color, text) in enumerate(entries):
        x = _MARGIN + (index % 2) * _LEGEND * 8
        y = _MARGIN // 2 + (index // 2) * _LEGEND
        yield (
            f'<rect class="n" x="{x}" y="{y}" width="16" height="16" fill="{color}"/>'
            f'<text x="{x + 22}" y="{y + 9}">{escape(text)}</text>'
        )
