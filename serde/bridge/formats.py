"""The table of formats, and which of them a source or a target is of.

The table names the module that holds the bridge of each format; it is imported when the format is
first used. Other packages add formats through the entry-point group ``serde.formats``, whose
entries name a :class:`~serde.bridge.contract.Bridge` object.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any as AnyValue

from serde.bridge.contract import AnyBridge, Bridge
from serde.bridge.options import ExportOptions, ImportOptions
from serde.errors import FormatError, OptionError

__all__ = ["FORMATS", "PIVOT", "format_names", "get_bridge", "source_bridge", "target_bridge"]

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
    spelled = (name, str(name).lower())
    for each in spelled:
        if each in FORMATS:
            return _check_bridge(each, importlib.import_module(FORMATS[each]).BRIDGE)
    others = _entry_points()
    name = next((each for each in spelled if each in others), name)
    if name not in others:
        raise OptionError(f"unknown format {name!r}; known: {', '.join(format_names())}")
    try:
        loaded = others[name].load()
    except Exception as error:
        raise OptionError(f"format {name}: {others[name].value} does not load: {error}") from error
    return _check_bridge(name, loaded)


def _check_bridge(name: str, bridge: object) -> AnyBridge:
    """Return an object that claims to be the bridge of the format `name`.

    Raises:
        OptionError: It is no bridge, or lacks what every bridge has.
    """
    if not isinstance(bridge, Bridge):
        raise OptionError(f"format {name}: expected a Bridge, found {bridge!r}")
    wrong = [attribute for attribute, holds in _ATTRIBUTES.items() if not holds(bridge)]
    if wrong:
        kind = type(bridge).__name__
        raise OptionError(f"format {name}: {kind} lacks {', '.join(wrong)}, or has a wrong one")
    if bridge.name != name:
        raise OptionError(f"format {name}: the name of its bridge is {bridge.name!r}")
    return bridge


def _is_options(bridge: AnyBridge, attribute: str, base: type) -> bool:
    """Whether a bridge has a class of options, or says that it has none."""
    found = getattr(bridge, attribute, False)
    return found is None or (isinstance(found, type) and issubclass(found, base))


_ATTRIBUTES: Mapping[str, Callable[[AnyBridge], bool]] = {
    "name": lambda bridge: isinstance(getattr(bridge, "name", None), str),
    "title": lambda bridge: isinstance(getattr(bridge, "title", None), str),
    "suffixes": lambda bridge: isinstance(getattr(bridge, "suffixes", None), tuple),
    "import_options": lambda bridge: _is_options(bridge, "import_options", ImportOptions),
    "export_options": lambda bridge: _is_options(bridge, "export_options", ExportOptions),
}
"""Attributes that every bridge has, and whether one is as it must be."""


_SCANNED: dict[object, dict[str, AnyValue]] = {}
"""What other packages offer, for each function that finds it: a process scans once."""


def _entry_points() -> dict[str, AnyValue]:
    """Return the formats of other packages.

    Raises:
        OptionError: Two claim a name, or one claims a name of this package's own.
    """
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
        for bridge in map(get_bridge, FORMATS):
            if os.fspath(first).endswith(bridge.suffixes) and bridge.detect(Path(first)):
                return bridge
    broken: list[str] = []
    bridges = [*_load_own(), *_load_others(broken)]
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


def _load_own() -> Iterator[AnyBridge]:
    return map(get_bridge, sorted(FORMATS))


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
    for group in (_load_own(), _load_others(broken)):
        found: dict[int, AnyBridge] = {}
        for bridge in group:
            ends = [each for each in bridge.suffixes if each not in bridge.read_suffixes]
            lengths = [len(each) for each in ends if text.endswith(each)]
            if bridge.export_options is not None and lengths:
                found.setdefault(max(lengths), bridge)
        if found:
            return found[max(found)]
    hint = "; ".join([f"name the target's format ({', '.join(format_names())})", *broken])
    raise OptionError(f"{text}: no format is known by this suffix; {hint}")
