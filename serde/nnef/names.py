"""Identifiers and labels of a text for names of any kind."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Final

from serde.core.systems import DEVICES
from serde.nnef.fragments import FRAGMENTS
from serde.nnef.text.tokens import WORDS

__all__ = ["Identifiers", "Labels", "is_identifier", "title_identifier"]

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_CHARACTERS: Final = 120
"""Of an identifier; longer names end in a digest."""

_MOST_PART_BYTES: Final = 200
"""Of a part of a label: file systems take 255 with the suffix, and numbers may follow."""

_MOST_LABEL_BYTES: Final = 800
_SUFFIX: Final = ".dat"
_TAKEN: Final = frozenset(("graph.nnef", "graph.quant"))


class Identifiers:
    """Identifiers that are taken so far, with the names that they stand for.

    Args:
        fragments: Names of fragments beside the standard's; tensors do not share them.
    """

    def __init__(self, fragments: Iterable[str] = ()) -> None:
        self.names: dict[str, str] = {}
        self._fragments = {*FRAGMENTS, *fragments}
        self._next: Counter[str] = Counter()

    def claim(self, name: str, *, exact: bool = False) -> str:
        """Return an identifier like `name` that nothing else has.

        Args:
            name: The name.
            exact: Whether it may be that of a fragment, which the language allows.
        """
        plain = title_identifier(name)
        taken = () if exact else self._fragments
        found, between = plain, "" if plain in taken else "_"
        while found in self.names or found in taken:
            self._next[plain] += 1
            found = f"{plain}{between}{self._next[plain]}"
        self.names[found] = name
        return found

    def claim_fragment(self, name: str) -> str:
        """Return an identifier like `name` that no tensor and no other fragment has."""
        found = self.claim(name)
        self._fragments.add(found)
        return found


def is_identifier(name: str) -> bool:
    """Whether the language takes `name` for that of a tensor, a parameter or a fragment."""
    return _VALID.fullmatch(name) is not None and name not in WORDS


def title_identifier(name: str) -> str:
    """Return an identifier like `name`, the same for the same name."""
    if is_identifier(name) and len(name) <= _MOST_CHARACTERS:
        return name
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "x"
    if plain[0].isdigit() or plain in WORDS:
        plain = f"_{plain}"
    return plain if len(plain) <= _MOST_CHARACTERS else _shorten(plain, name, _MOST_CHARACTERS)


class Labels:
    """Labels of variables that are taken so far, with the names that they stand for.

    A label is the path of a file, without its suffix. It is the name where that is a path that
    every system has: relative, without parts such as ``..``, signs that only some systems allow,
    and letters that differ from those of another label by their case alone.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next: Counter[str] = Counter()

    def claim(self, name: str) -> str:
        """Return a label like `name` that nothing else has."""
        plain = _label(name)
        found = plain
        while _fold_case(found) in self._taken:
            self._next[plain] += 1
            found = f"{plain}_{self._next[plain]}"
        self._taken.add(_fold_case(found))
        self.names[found] = name
        return found


def _label(name: str) -> str:
    *folders, last = [_part(each) for each in name.split("/") if each] or ["_"]
    label = "/".join([*(_folder(each) for each in folders), last])
    if len(label.encode()) > _MOST_LABEL_BYTES:
        return _shorten(label.replace("/", "_"), name, _MOST_PART_BYTES)
    return label


def _part(name: str) -> str:
    """Return a part of a path that every system has."""
    plain = "".join(each if _is_plain(each) else "_" for each in name)
    plain = plain.rstrip(". ").lstrip(" ") or "_"
    if DEVICES.fullmatch(plain):
        plain = f"_{plain}"
    if len(plain.encode()) > _MOST_PART_BYTES:
        return _shorten(plain, name, _MOST_PART_BYTES)
    return plain


def _is_plain(character: str) -> bool:
    return character.isprintable() and character not in "\\:*?\"'<>|"


def _folder(part: str) -> str:
    """Return the name of a folder, which no file of the model has."""
    key = _fold_case(part)
    return f"{part}_" if key.endswith(_SUFFIX) or key in _TAKEN else part


def _shorten(plain: str, name: str, most: int) -> str:
    """Return the beginning of a name with a digest of all of it."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    kept = plain.encode()[: most - len(digest) - 1].decode(errors="ignore")
    return f"{kept.rstrip('. ')}_{digest}"


def _fold_case(label: str) -> str:
    """Return what labels have in common that some file system takes for the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
