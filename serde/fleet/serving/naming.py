"""What a served model is called, and its class labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.bridge.contract import AnyBridge
from serde.bridge.formats import FORMATS, get_bridge
from serde.errors import CheckError, FormatError, OptionError
from serde.fleet.stores.listing import stem_of
from serde.io.contained import read_small

__all__ = ["LABELS_BESIDE", "find_format", "known_labels", "local_folder", "served_name", "telling"]

LABELS_BESIDE: Final = "synset.txt"
"""The file with a class label on each line that archives of MXNet have."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_MOST: Final = 128
_LABEL_BYTES: Final = 64 * 2**20


def served_name(source: AnyValue, given: str | None) -> str:
    """Return what a served model is called: as asked for, or as its file is.

    Raises:
        OptionError: A folder cannot have that name, or nothing tells one.
    """
    name = _stem(source) if given is None else given
    if name is None:
        raise OptionError("model_name: nothing tells the model's name; give one")
    if len(name) > _MOST or not _NAME.fullmatch(name):
        raise OptionError(
            f"model_name: expected letters, digits, '_', '-' and '.', found {name!r}"
            + (" (of the source); give another" if given is None else "")
        )
    return name


def local_folder(path: str | os.PathLike[str], what: str) -> Path:
    """Return the full path of a folder that is written to.

    Raises:
        OptionError: It is the URL of a store.
    """
    text = os.fspath(path)
    if "://" in text:
        raise OptionError(f"{text}: {what} is written to a local folder; copy it from there")
    return Path(os.path.abspath(text))


def _stem(source: AnyValue) -> str | None:
    """Return the name of a source's file without its suffix; None where it is no file."""
    first = source[0] if isinstance(source, (tuple, list)) and source else source
    if not isinstance(first, (str, os.PathLike)):
        return None
    name = os.path.basename(os.path.normpath(os.fspath(first)))
    stem = stem_of(name)
    return name.partition(".")[0] if stem == name else stem


@contextmanager
def telling(place: Path, hidden: Path) -> Iterator[None]:
    """Let a check that fails name the place of a model, not where it was made."""
    try:
        yield
    except CheckError as error:
        raise CheckError(
            str(error).replace(os.fspath(hidden), os.fspath(place)), error.report
        ) from error


def find_format(has: str, name: str | None, what: str) -> AnyBridge:
    """Return the format of served models: the one named, or the first that there is.

    Args:
        has: The method of a bridge that tells whether its files can be served.
        name: Name of the format, if one is asked for.
        what: The server, for messages.

    Raises:
        OptionError: The server does not take the format.
    """
    bridges = [get_bridge(name)] if name is not None else map(get_bridge, sorted(FORMATS))
    for bridge in bridges:
        if getattr(bridge, has)():
            return bridge
    known = [each for each in sorted(FORMATS) if getattr(get_bridge(each), has)()]
    raise OptionError(f"{what} does not run format {name}; it runs {', '.join(known)}")


def known_labels(
    source: AnyValue, given: AnyValue, facts: Mapping[str, AnyValue]
) -> tuple[str, ...]:
    """Return class labels: those given, those of the model, or those in a file beside it.

    Args:
        source: The model.
        given: Labels, or a file with one on each line; None if the user gives none.
        facts: What a conversion reported.

    Raises:
        OptionError: They are no labels, or the file cannot be read.
    """
    if given is not None:
        return _labels(given)
    if facts.get("labels"):
        return tuple(facts["labels"])
    first = source[0] if isinstance(source, (tuple, list)) and source else source
    if isinstance(first, (str, os.PathLike)):
        beside = Path(first) if os.path.isdir(first) else Path(first).parent
        if (beside / LABELS_BESIDE).is_file():
            return _labels(beside / LABELS_BESIDE)
    return ()


def _labels(given: AnyValue) -> tuple[str, ...]:
    where = "class_labels"
    if isinstance(given, (str, os.PathLike)):
        where = f"class_labels: {os.fspath(given)}"
        given = _lines(Path(given), where)
    if not isinstance(given, Iterable):
        raise OptionError(f"{where}: expected labels or a file of them, found {given!r}")
    labels = tuple(map(str, given))
    broken = [each for each in labels if "\n" in each or "\r" in each]
    if broken or not labels:
        found = repr(broken[0]) if broken else "none"
        raise OptionError(f"{where}: expected a label for each class, on one line, found {found}")
    return labels


def _lines(path: Path, where: str) -> Sequence[str]:
    try:
        return read_small(path, _LABEL_BYTES).decode("utf-8").splitlines()
    except (FormatError, UnicodeDecodeError) as error:
        raise OptionError(f"{where}: no file of labels: {error}") from error
