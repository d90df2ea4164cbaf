"""Fingerprints: whether a large file is still what it was, told from small pieces of it.

The pieces are both ends of the file, where formats keep their headers and tables, and the begin,
middle and end of ranges in it. So a fingerprint costs a few hundred small reads, whatever the
size of the file. A change between the pieces that leaves the length as it is goes unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, new
from typing import Final, Literal

from serde.core import CHUNK_BYTES, OpenFile, dataclass
from serde.errors import FormatError

__all__ = ["DIGEST_BYTES", "MOST_RANGES", "Fingerprint", "digest_of"]

DIGEST_BYTES: Final = 16
MOST_RANGES: Final = 4096
"""Ranges that a fingerprint looks into."""

_END: Final = 2**16
_PIECE: Final = 1024


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is remembered of a file.

    Attributes:
        size: Length of the file in bytes.
        ranges: First byte and length of the ranges that were looked into.
        digest: BLAKE2b of the size and the pieces, in hexadecimal digits.
    """

    size: int
    ranges: tuple[tuple[int, int], ...]
    digest: str

    @classmethod
    def take(
        cls, opened: OpenFile, ranges: Iterable[tuple[int, int]], most: int = MOST_RANGES
    ) -> Fingerprint:
        """Return the fingerprint of a file as it is.

        Args:
            opened: The file.
            ranges: First byte and length of the ranges that matter.
            most: How many of them are looked into; of more, some at equal distances.

        Raises:
            FormatError: The file is shorter than that, or changed meanwhile.
        """
        chosen = _choose(sorted(set(ranges)), most)
        return cls(opened.size, tuple(chosen), _digest(opened, chosen))

    def fault(self, opened: OpenFile) -> str | None:
        """Return how a file is not the one that this was taken of, None if nothing tells.

        Raises:
            FormatError: The file changed meanwhile.
        """
        if opened.size != self.size:
            return f"expected {self.size} bytes, found {opened.size}"
        found = _digest(opened, self.ranges)
        return None if found == self.digest else f"expected {self.digest}, found {found}"


def _choose(ranges: Sequence[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    if len(ranges) <= most:
        return ranges
    return [ranges[index * len(ranges) // most] for index in range(most)]


def _digest(opened: OpenFile, ranges: Iterable[tuple[int, int]]) -> str:
    digest = blake2b(opened.size.to_bytes(8, "little"), digest_size=DIGEST_BYTES)
    for start, stop in _pieces(opened.size, ranges):
        if not 0 <= start <= stop <= opened.size:
            raise FormatError(
                f"expected bytes {start} to {stop}, the file has {opened.size}", path=opened.path
            )
        buffer = bytearray(stop - start)
        opened.read_into(buffer, start)
        digest.update(buffer)
    opened.check_unchanged()
    return digest.hexdigest()


def _pieces(size: int, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield first byte and end of what is looked at."""
    yield 0, min(_END, size)
    yield max(0, size - _END), size
    for offset, length in ranges:
        if length <= 3 * _PIECE:
            yield offset, offset + length
            continue
        for start in (offset, offset + (length - _PIECE) // 2, offset + length - _PIECE):
            yield start, start + _PIECE


def digest_of(opened: OpenFile, algorithm: Literal["sha1", "sha256"]) -> str:
    """Return the digest of a whole file in hexadecimal digits.

    Raises:
        FormatError: The file cannot be read, or changed meanwhile.
    """
    digest = new(algorithm, usedforsecurity=False)
    buffer = memoryview(bytearray(min(CHUNK_BYTES, opened.size)))
    for start in range(0, opened.size, CHUNK_BYTES):
        part = buffer[: min(len(buffer), opened.size - start)]
        opened.read_into(part, start)
        digest.update(part)
    opened.check_unchanged()
    return digest.hexdigest()
