"""Identifiers and labels of a text for names of any kind, which stay when it is written again."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from serde.core.systems import DEVICES
from serde.nnef.fragments import FRAGMENTS
from serde.nnef.model import NnefModel, Operation, rename_operation
from serde.nnef.text.tokens import WORDS

__all__ = ["Identifiers", "Labels", "is_identifier", "rename_tensors", "title_identifier"]

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


_DECLARED: Final = ("external", "variable", "constant")


def rename_tensors(
    model: NnefModel, nodes: Collection[str], constants: Collection[str]
) -> NnefModel:
    """Return a graph whose tensors are called after the nodes that they come from.

    The last assignment of a node has its name, those before it have numbers behind that, and a
    constant is called after the first that reads it. In a file that is read each assignment is a
    node, and what makes one of several has the name of the last.

    Args:
        model: The graph.
        nodes: Names that nodes of the source have, beside those made of operators' names.
        constants: Labels of variables that are constants of the source.
    """
    identifiers, labels = Identifiers(), Labels()
    renamed = {
        name: identifiers.claim(name, exact=True)
        for name in dict.fromkeys((*model.inputs, *model.outputs))
    }
    relabelled: dict[str, str] = {}
    held: dict[str, str] = {}
    for name, each in model.variables().items():
        label = each.attributes["label"]
        if label in constants:
            held[name] = label
        else:
            relabelled[label] = labels.claim(label)
            renamed[name] = identifiers.claim(label)
    steps = [each for each in model.operations if each.op not in _DECLARED]
    sources = {place: model.sources.get(each.results()[0], "") for place, each in enumerate(steps)}
    last = {source if source in nodes else place: place for place, source in sources.items()}
    named = frozenset(last.values())
    order = sorted(sources, key=lambda place: place not in named)
    for place in order:
        for name in steps[place].results():
            if name not in renamed:
                renamed[name] = identifiers.claim(sources[place] or name)
    for step in steps:
        for ref in step.refs():
            if ref.name not in renamed:
                name = f"{renamed[step.results()[0]]}_constant"
                renamed[ref.name] = identifiers.claim(name)
                if ref.name in held:
                    relabelled[held[ref.name]] = labels.claim(name)
    names = {**model.names, **{name: relabelled[label] for name, label in held.items()}}
    return replace(
        model,
        operations=[_rename(each, renamed, relabelled) for each in model.operations],
        weights={relabelled[label]: each for label, each in model.weights.items()},
        quantization={renamed[name]: each for name, each in model.quantization.items()},
        stored_quantized=frozenset(relabelled[label] for label in model.stored_quantized),
        names={renamed[name]: each for name, each in names.items() if name in renamed},
        sources={renamed[name]: each for name, each in model.sources.items()},
    )


def _rename(
    operation: Operation, renamed: Mapping[str, str], relabelled: Mapping[str, str]
) -> Operation:
    found = rename_operation(operation, renamed)
    if found.op != "variable":
        return found
    label = relabelled[found.attributes["label"]]
    return replace(found, attributes={**found.attributes, "label": label})
