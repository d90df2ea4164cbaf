"""What the public functions do for a source or target that is no plain local path.

The source is brought to local disk, the same function called with what lies there, and its result
published: conversions themselves know neither URLs nor the archives of servers.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any as AnyValue, NamedTuple

from serde.conversion.locations import Locations
from serde.core.report import Report
from serde.errors import OptionError
from serde.fleet.stores.archives import is_archive
from serde.fleet.stores.publishing import published
from serde.fleet.stores.staging import stage
from serde.fleet.stores.urls import is_url, safe_url

__all__ = ["AtHand", "at_hand", "call_elsewhere"]


class AtHand(NamedTuple):
    """A source on local disk.

    Attributes:
        source: What the public functions take.
        options: What an archive says of the model, as options of the conversion.
    """

    source: AnyValue
    options: Mapping[str, AnyValue]


@contextmanager
def at_hand(
    source: AnyValue,
    format: str | None,
    options: Mapping[str, AnyValue],
    report: Report,
    storage_options: Mapping[str, AnyValue] | None = None,
    *,
    alone: bool = False,
) -> Iterator[AtHand]:
    """Yield a source on local disk; errors of the body name it as the caller did.

    Args:
        source: What a public function was given: a path or URL, several, or anything else, which
            is yielded as it is.
        format: Name of its format; recognised by content if left out.
        options: Options of the conversion.
        report: Gets a stage, and notes.
        storage_options: What ``fsspec`` gives to the file system; the environment otherwise.
        alone: Whether what belongs to a model, and was not named, stays where it is.

    Raises:
        SerdeError: As :func:`serde.fleet.stores.staging.stage`.
    """
    named = list(source) if isinstance(source, (tuple, list)) else [source]
    if not all(isinstance(each, (str, os.PathLike)) for each in named) or not any(
        is_url(each) or is_archive(each) for each in named
    ):
        yield AtHand(source, {})
        return
    with ExitStack() as stack:
        with report.stage("fetch") if any(map(is_url, named)) else nullcontext():
            staged = stack.enter_context(
                stage(
                    named, format=format, options=options, storage_options=storage_options,
                    alone=alone,
                )
            )  # fmt: skip
        report.notes += staged.notes
        yield AtHand(staged.source if staged.places else source, staged.options)


def call_elsewhere(
    function: Callable[..., AnyValue],
    given: dict[str, AnyValue],
    locations: Locations,
    storage_options: Mapping[str, AnyValue] | None,
) -> AnyValue:
    """Return what a public function returns for models that lie elsewhere.

    Args:
        function: What takes local files.
        given: Its arguments by name.
        locations: Which of them are models.
        storage_options: What ``fsspec`` gives to the file systems; the environment otherwise.

    Raises:
        SerdeError: As `function`, and where a store or an archive is not as it should be.
    """
    report = given["report"] = given.get("report") or Report()
    target: AnyValue = given.get(locations.writes)
    if given.get("link_weights"):
        raise OptionError(
            "link_weights: weights that lie in a store or in an archive can be copied, but not "
            "referred to"
        )
    with ExitStack() as writing:
        if target is not None:
            _refuse_same([given.get(name) for name in (*locations.reads, "params")], target)
            given[locations.writes] = writing.enter_context(
                published(
                    os.fspath(target),
                    storage_options=storage_options,
                    overwrite=given.get("overwrite", False),
                    report=report,
                )
            )
        with ExitStack() as reading:
            result = function(**_brought(given, locations, report, storage_options, reading))
            if locations.keeps:
                # Weights of the result stay in the files.
                weakref.finalize(getattr(result, locations.keeps), reading.pop_all().close)
    if target is not None and is_url(target):
        report.facts["path"] = safe_url(os.fspath(target))
    return result


def _brought(
    given: Mapping[str, AnyValue],
    locations: Locations,
    report: Report,
    storage_options: Mapping[str, AnyValue] | None,
    reading: ExitStack,
) -> dict[str, AnyValue]:
    """Return the arguments of a function with models that are on local disk."""
    found: dict[str, AnyValue] = {}
    said: Mapping[str, AnyValue] = {}
    params = given.get("params")
    for name, format in locations.reads.items():
        if given.get(name) is None:
            continue
        own = at_hand(
            given[name], given.get(format), given, report, storage_options,
            alone=params is not None,
        )  # fmt: skip
        found[name], options = reading.enter_context(own)
        if len(found) == 1 or locations.shared:
            said = {**options, **said}
    if is_url(params):
        own = at_hand(params, None, {}, report, storage_options, alone=True)
        found["params"] = reading.enter_context(own).source
    return {**given, **said, **found}


def _refuse_same(read: Sequence[AnyValue], target: AnyValue) -> None:
    """Refuse a target that is a source; local files are compared where they are written."""
    sources = [each for one in read for each in (one if isinstance(one, (tuple, list)) else [one])]
    if is_url(target) and target in [each for each in sources if isinstance(each, str)]:
        raise OptionError(f"{safe_url(target)}: is the same object as the source")
