"""What a batch is asked for becomes jobs: globs expanded, targets named, each target once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any as AnyValue

from serde.core.outcome import OUTCOMES, error_message, exit_code
from serde.core.records import dataclass, replace
from serde.core.systems import ignores_case
from serde.errors import OptionError, SerdeError
from serde.fleet.batching.manifest import Entry
from serde.fleet.batching.records import Job, Outcome
from serde.fleet.batching.sources import find_sources, join, target_name
from serde.fleet.stores.listing import LISTED
from serde.fleet.stores.urls import Address

__all__ = ["Plan", "give_shapes", "plan"]

_SHAPES = "input_shapes"


@dataclass(slots=True)
class Plan:
    """What a batch will do.

    Attributes:
        jobs: One for each model.
        faults: What can be said of the others at once.
    """

    jobs: list[Job]
    faults: list[Outcome]


def plan(
    entries: Iterable[Entry],
    out: str,
    suffix: str,
    storage: Mapping[str, AnyValue],
    limit: int = LISTED,
) -> Plan:
    """Return the jobs that entries ask for, and those that cannot be.

    Args:
        entries: What was asked for.
        out: Where targets go that have no place of their own.
        suffix: How their names end.
        storage: What ``fsspec`` is given.
        limit: Names that may be looked at for one path, glob or folder.
    """
    found = Plan([], [])
    place = Address.of(out)
    folds = not place.protocol and ignores_case(Path(place.path))
    taken: dict[str, Job] = {}
    for entry in entries:
        try:
            if entry.fault:
                raise OptionError(entry.fault)
            for job in _jobs(entry, out, suffix, storage, limit):
                key = job.target.casefold() if folds else job.target
                _add(found, taken.setdefault(key, job), job, entry.where)
        except (SerdeError, OSError) as error:
            found.faults.append(_fault(entry, error))
    return found


def give_shapes(found: Plan, options: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Give jobs the shapes whose names begin with a glob; return the options without these.

    ``bert*:ids`` is the input `ids` of models whose file is called so, ``bert*`` their only one. A
    glob with a slash is for the end of the path. What a manifest says of a model goes before.

    Raises:
        OptionError: No model is called as a glob says.
    """
    shapes = options.get(_SHAPES)
    named = shapes if isinstance(shapes, Mapping) else {}
    globs = {name: name.partition(":") for name in named if set("*?") & {*name.partition(":")[0]}}
    common = {name: shape for name, shape in named.items() if name not in globs}
    unused = {pattern for pattern, _, _ in globs.values()}
    for index, job in enumerate(found.jobs):
        fits = {name: parts for name, parts in globs.items() if _is_called(job, parts[0])}
        unused -= {pattern for pattern, _, _ in fits.values()}
        own = {parts[2]: named[name] for name, parts in fits.items()}
        if own and _SHAPES not in job.options:
            given = {**job.options, _SHAPES: {**common, **own}}
            found.jobs[index] = replace(job, options=given)
    if unused:
        raise OptionError(f"{_SHAPES}: no model is called {' or '.join(sorted(unused))}")
    return {**options, _SHAPES: common} if globs else dict(options)


def _is_called(job: Job, pattern: str) -> bool:
    path = job.sources[0].replace(os.sep, "/").rstrip("/")
    if "/" in pattern:
        return fnmatchcase(f"/{path}", f"*/{pattern}")
    return fnmatchcase(path.rpartition("/")[2], pattern)


def _add(found: Plan, other: Job, job: Job, where: str) -> None:
    """Add a job, unless it is there already or its target is that of an other."""
    if other is job:
        found.jobs.append(job)
    elif other != job:
        error = f"{where}: its target {job.target} is also that of {other.name}"
        found.faults.append(job.outcome("usage", error=error))


def _fault(entry: Entry, error: Exception) -> Outcome:
    """Return the outcome of an entry of which there is no model."""
    status = "unreadable line"
    if not entry.fault:
        status = "unreachable" if isinstance(error, OSError) else OUTCOMES[exit_code(error)]
    told = " ".join(error_message(error).split())
    return Outcome(name=entry.where, sources=entry.sources, target="", status=status, error=told)


def _jobs(
    entry: Entry, out: str, suffix: str, storage: Mapping[str, AnyValue], limit: int
) -> Iterator[Job]:
    """Yield the jobs of an entry."""
    if len(entry.sources) > 1:
        target = entry.target or target_name(Address.of(entry.sources[0]).name, suffix)
        yield Job(entry.sources[0], entry.sources, join(out, target), entry.options)
        return
    (given,) = entry.sources
    if not entry.target:
        for source, name in find_sources(given, storage, limit):
            yield Job(source, (source,), join(out, target_name(name, suffix)), entry.options)
        return
    found = [source for source, _ in islice(find_sources(given, storage, limit), 2)]
    if len(found) > 1:
        raise OptionError(f"{given}: several models, but one target")
    yield Job(found[0], (found[0],), join(out, entry.target), entry.options)
