"""What a batch is asked for becomes jobs: globs expanded, targets named, each target once."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any as AnyValue

from serde.batching.manifest import Entry
from serde.batching.records import Job, Outcome
from serde.batching.sources import expand, is_pattern, is_url, root_of, source_suffixes
from serde.errors import OptionError, SerdeError
from serde.outcome import exit_code

__all__ = ["Plan", "plan"]


@dataclass(slots=True)
class Plan:
    """What a batch will do.

    Attributes:
        jobs: One for each model.
        faults: What can be said of the others at once.
    """

    jobs: list[Job]
    faults: list[Outcome]


def plan(entries: Iterable[Entry], out: str, suffix: str, storage: Mapping[str, AnyValue]) -> Plan:
    """Return the jobs that entries ask for, and those that cannot be.

    Args:
        entries: What was asked for.
        out: Where targets go that have no place of their own.
        suffix: How their names end.
        storage: What ``fsspec`` is given.
    """
    found = Plan([], [])
    taken: dict[str, Job] = {}
    for entry in entries:
        try:
            if entry.fault:
                raise OptionError(entry.fault)
            for job in _jobs(entry, out, suffix, storage):
                _add(found, taken, job, entry.where)
        except (SerdeError, OSError) as error:
            found.faults.append(_fault(entry, error))
    return found


def _add(found: Plan, taken: dict[str, Job], job: Job, where: str) -> None:
    """Add a job, unless it is there already or its target is another's."""
    other = taken.setdefault(job.target, job)
    if other is job:
        found.jobs.append(job)
    elif other != job:
        error = f"{where}: its target {job.target} is also that of {other.name}"
        found.faults.append(
            Outcome(
                name=job.name, sources=job.sources, target=job.target, status="usage", error=error
            )
        )


def _fault(entry: Entry, error: Exception) -> Outcome:
    """Return the outcome of an entry of which there is no model."""
    status = "unreachable"
    if entry.fault:
        status = "unreadable line"
    elif exit_code(error) == 2 and not isinstance(error, OSError):
        status = "usage"
    told = " ".join(str(error).split())
    return Outcome(name=entry.where, sources=entry.sources, target="", status=status, error=told)


def _jobs(entry: Entry, out: str, suffix: str, storage: Mapping[str, AnyValue]) -> Iterator[Job]:
    """Yield the jobs of an entry.

    Raises:
        OptionError: A pattern stands for nothing, or for several models with one target.
        StoreError: A store does not answer.
    """
    if len(entry.sources) > 1:
        yield _job(entry, entry.sources, _named(entry.sources[0]), out, suffix)
        return
    (given,) = entry.sources
    root, count = root_of(given), 0
    for source in expand(given, storage):
        count += 1
        inside = _relative(source, root) if source != given else _named(given)
        if entry.target and count > 1:
            raise OptionError(f"{given}: several models, but one target")
        yield _job(entry, (source,), inside, out, suffix)
    if not count:
        kind = "pattern" if is_pattern(given) else "folder"
        raise FileNotFoundError(0, f"the {kind} {given} holds no model")


def _job(entry: Entry, sources: tuple[str, ...], inside: str, out: str, suffix: str) -> Job:
    target = entry.target or _with_suffix(inside, suffix)
    if not is_url(target) and not os.path.isabs(target):
        target = f"{out.rstrip('/')}/{target}" if is_url(out) else os.path.join(out, target)
    return Job(sources[0], sources, target, entry.options)


def _named(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2]


def _relative(source: str, root: str) -> str:
    """Return where a source lies below the fixed part of the pattern that found it."""
    inside = source.removeprefix(root).lstrip("/")
    parts = [part for part in posixpath.normpath(inside).split("/") if part not in ("..", ".")]
    return "/".join(parts)


def _with_suffix(name: str, suffix: str) -> str:
    """Return a name with the suffix of the target in place of its own."""
    known = [each for each in source_suffixes() if name.endswith(each) and len(name) > len(each)]
    own = max(known, key=len, default="")
    stem = name[: len(name) - len(own)] if own else name
    return stem.rstrip("/") + suffix
