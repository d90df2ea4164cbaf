"""The table of formats, and which of them a source or a target is of.

The table names the module that holds the bridge of each format; it is imported when the format is
first used. Other packages add formats through the entry-point group ``serde.formats``, whose
entries name a :class:`~serde.bridge.contract.Bridge` object.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any as AnyValue

from serde.errors import FormatError, OptionError

if TYPE_CHECKING:
    from serde.bridge.contract import AnyBridge

__all__ = [
    "FORMATS", "PIVOT", "facts_of", "format_facts", "format_names", "get_bridge",
    "source_bridge", "target_bridge",
]  # fmt: skip

ENTRY_POINTS = "serde.formats"

FORMATS = MappingProxyType(
    {
        "coreml": "serde.coreml.bridge",
        "mxnet": "serde.mxnet.bridge",
        "nnef": "serde.nnef.bridge",
        "onnx": "serde.onnx.bridge",
        "relax": "serde.relax.bridge",
        "relay": "serde.relayfile.bridge",
        "tflite": "serde.tflite.bridge",
        "torch": "serde.torch.bridge",
        "tvm": "serde.relax.library",
    }
)
"""Modules with the bridges of this package, each called ``BRIDGE``."""

PIVOT = "relay"
"""The format whose models are the pivot's own."""


def format_names() -> list[str]:
    """Return the names of all formats, those of other packages included."""
    return sorted({*FORMATS, *_entry_points()})


def get_bridge(name: str) -> AnyBridge:
    """Return the bridge of the format called `name`.

    Other packages are looked at only if the name is none of this package's own, in whatever case.

    Raises:
        OptionError: There is no such format, or two packages claim the name.
    """
    from serde.bridge.contract import check_bridge

    spelled = (name, str(name).lower())
    for each in spelled:
        if each in FORMATS:
            return check_bridge(each, importlib.import_module(FORMATS[each]).BRIDGE)
    others = _entry_points()
    name = next((each for each in spelled if each in others), name)
    if name not in others:
        raise OptionError(f"unknown format {name!r}; known: {', '.join(format_names())}")
    try:
        loaded = others[name].load()
    except Exception as error:
        raise OptionError(f"format {name}: {others[name].value} does not load: {error}") from error
    return check_bridge(name, loaded)


def facts_of(bridge: AnyBridge) -> dict[str, AnyValue]:
    """Return what tells a format from others, without its bridge."""
    reads, writes = bridge.import_options is not None, bridge.export_options is not None
    return {
        "module": type(bridge).__module__,
        "title": bridge.title,
        "reads": reads,
        "writes": writes,
        "suffixes": list(bridge.suffixes),
        "of_targets": [each for each in bridge.suffixes if each not in bridge.read_suffixes],
    }


@cache
def _index() -> dict[str, dict[str, AnyValue]]:
    """Return what ``index.json``, which ``make docs`` writes, says of this package's formats."""
    path = Path(__file__).with_name("index.json")
    found: AnyValue = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def format_facts(name: str) -> Mapping[str, AnyValue]:
    """Return what :func:`facts_of` does; a format of another package is loaded for it.

    Raises:
        OptionError: There is no such format, or it does not load.
    """
    known = _index().get(name, {})
    return known if known.get("module", "") == FORMATS.get(name) else facts_of(get_bridge(name))


_SCANNED: dict[object, dict[str, AnyValue]] = {}
"""What other packages offer, for each function that finds it: a process scans once."""


def _entry_points() -> dict[str, AnyValue]:
    """Return the formats of other packages."""
    from importlib import metadata

    finder = metadata.entry_points
    if finder not in _SCANNED:
        found: dict[str, AnyValue] = {}
        for entry in finder(group=ENTRY_POINTS):
            known = found[entry.name].value if entry.name in found else FORMATS.get(entry.name)
            if known is not None and known != entry.value:
                raise OptionError(f"format {entry.name} is claimed by {known} and {entry.value}")
            found[entry.name] = entry
        _SCANNED[finder] = found
    return _SCANNED[finder]


def source_bridge(source: object, format_name: str | None = None) -> AnyBridge:
    """Return the bridge that reads `source`: as named, or as its content says.

    A format that the suffix of a path names is asked first, then all others. A file that no
    format recognises goes to the one that its suffix names, which says what is wrong with it.

    Raises:
        FormatError: It is a file of no known format.
        OptionError: There is no such file, or no format takes such an object.
    """
    if format_name is not None:
        return get_bridge(format_name)
    first = source[0] if isinstance(source, (tuple, list)) and source else source
    if isinstance(first, (str, os.PathLike)) and os.path.exists(first):
        for name in FORMATS:
            named = os.fspath(first).endswith(tuple(format_facts(name)["suffixes"]))
            if named and (bridge := get_bridge(name)).detect(Path(first)):
                return bridge
    broken: list[str] = []
    bridges = [*map(get_bridge, sorted(FORMATS)), *_load_others(broken)]
    for bridge in bridges:
        if bridge.accepts(source):
            return bridge
    hint = "; ".join([f"name one ({', '.join(format_names())})", *broken])
    if not isinstance(first, (str, os.PathLike)):
        raise OptionError(f"no format accepts {type(source).__name__}; {hint}")
    for bridge in bridges:
        if bridge.detect(Path(first)):
            return bridge
    if not os.path.exists(first):
        scheme, is_url, _ = os.fspath(first).partition("://")
        if is_url and scheme.isalnum():
            raise OptionError(
                f"{scheme}://...: expected a local path; functions that give no model take "
                "URLs, such as convert, and serde.fleet.stores.staging.stage brings one to "
                "local disk"
            )
        raise OptionError(f"{os.fspath(first)}: there is no such file or model")
    for bridge in bridges:
        if bridge.import_options is not None and os.fspath(first).endswith(bridge.suffixes):
            return bridge
    from serde.io.other_files import describe_unrecognised

    found = describe_unrecognised(first)
    told = f"no format recognises it; {hint}" if found is None else f"found {found}"
    raise FormatError(told, path=first)


def _load_others(broken: list[str]) -> Iterator[AnyBridge]:
    """Yield the formats of other packages; what is wrong with one goes to a list."""
    for name in sorted({*_entry_points()} - {*FORMATS}):
        try:
            yield get_bridge(name)
        except OptionError as error:
            broken.append(str(error))


def target_bridge(path: str | os.PathLike[str], format_name: str | None = None) -> AnyBridge:
    """Return the bridge that writes `path`: as named, or by its suffix.

    Raises:
        OptionError: No format has that suffix.
    """
    if format_name is not None:
        return get_bridge(format_name)
    text = os.fspath(path).rstrip("/")  # Shells complete the name of a package so.
    broken: list[str] = []
    for names in (sorted(FORMATS), (bridge.name for bridge in _load_others(broken))):
        found: dict[int, str] = {}
        for name in names:
            facts = format_facts(name)
            lengths = [len(each) for each in facts["of_targets"] if text.endswith(each)]
            if facts["writes"] and lengths:
                found.setdefault(max(lengths), name)
        if found:
            return get_bridge(found[max(found)])
    hint = "; ".join([f"name the target's format ({', '.join(format_names())})", *broken])
    raise OptionError(f"{text}: no format is known by this suffix; {hint}")
