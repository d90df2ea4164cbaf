"""The public function of batches."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.api import convert
from serde.bridge.contract import AnyBridge
from serde.bridge.formats import get_bridge
from serde.bridge.options import bind_options, refuse_options
from serde.checking.tolerance import Tolerance
from serde.conversion.prepare import PrepareOptions
from serde.conversion.signature import takes_options
from serde.core.limits import Limits
from serde.core.systems import has_fork_server
from serde.errors import OptionError
from serde.fleet.batching.manifest import (
    LEDGER_FOLDER,
    NO_TRUST,
    Entry,
    Trust,
    is_manifest,
    read_entry,
    read_manifest,
)
from serde.fleet.batching.planning import give_shapes, plan
from serde.fleet.batching.pool import LocalPool, usable_cores
from serde.fleet.batching.records import Executor, Outcome, Settings
from serde.fleet.batching.report import BatchReport
from serde.fleet.batching.run import BatchRun
from serde.fleet.batching.sandbox import has_landlock
from serde.fleet.batching.sources import written_suffix
from serde.fleet.stores.listing import LISTED
from serde.fleet.stores.urls import Address, is_url
from serde.relay.ir.types import TensorType

__all__ = ["DASK", "batch", "prepare_batch"]

Source = str | os.PathLike[str] | Mapping[str, AnyValue]

DASK: Final = "dask"
"""What is given in place of a scheduler for a Dask cluster of this machine."""

_NOT_OF_A_BATCH: Final = frozenset(
    ("source", "params", "target", "target_format", "tensor_mapping", "overwrite", "report")
)
"""Parameters of :func:`serde.convert` that a model of a batch has not, or by another name."""


@takes_options(reads="source_format", writes="to", passes=PrepareOptions)
def batch(
    sources: Source | Iterable[Source],
    *,
    to: str,
    out: str | os.PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | os.PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = LISTED,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    **options: AnyValue,
) -> BatchReport:
    """Convert many models in processes of their own, and go on where an earlier run ended.

    Args:
        sources: Paths, globs, folders, URLs, manifests (``.jsonl``, ``.csv``, ``.txt``), and
            mappings as a line of a manifest has them: ``{"source": "a.onnx", "opset": 13}``.
        to: Name of the target's format.
        out: Folder or URL that the targets are written to.
        source_format: Name of the sources' format; recognised by content if left out.
        check: Run source and target on this many seeded inputs before the target appears.
        tolerance: What the check accepts; by dtype if left out.
        dims: Lengths of dynamic dimensions during the check.
        check_data: Path of inputs to check with instead of seeded ones; see :func:`convert`.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        workers: How many models are converted at the same time; as there are cores if left out.
        scheduler: Address of a Dask scheduler, a connected ``distributed.Client``, ``"dask"`` for
            a cluster of this machine, or what runs the jobs; without Dask if left out.
        time_limit: Seconds that the process of one model may take.
        memory_limit: Bytes that the process of one model may allocate; on Linux only.
        name_limit: Names of files and folders that may be looked at for one glob or folder.
        manifest_code: Whether lines of manifests may name what is run: converters, and ``cc``.
        manifest_targets: Whether lines of manifests may name targets outside `out`.
        sandbox: Whether the process of a model is kept to its sources and its target, by Landlock
            of Linux; where the kernel has it if left out.
        retries: How often a model is tried again whose process was killed by somebody else.
        ledger: File of what is done; ``.serde/ledger.sqlite`` in a local `out` if left out.
        retry_failed: Try again what failed in an earlier run.
        overwrite: Whether files beside targets may be replaced that serde did not write.
        scratch: Folder for what is fetched from stores meanwhile; the system's if left out.
        storage_options: What ``fsspec`` gives to file systems; the environment otherwise.
        progress: Called with each outcome as it comes in.
        options: Options of the sources, of the passes and of the target, for all models; in
            ``input_shapes``, ``"bert*:ids"`` is an input of those that are called so.

    Returns:
        What became of the models; iterating over it gives an outcome for each.

    Raises:
        FormatError: The ledger is another file.
        MissingDependency: A package is not installed.
        OptionError: An option is unknown or cannot be used, nothing can be written to `out`, or
            another run has the ledger open. What is wrong with a model is never raised.

    Example:
        >>> report = serde.batch(["net.onnx", "other.onnx"], to="relay", out="converted")
        >>> [outcome.status for outcome in report]
        ['done', 'done']
    """
    given = {
        "source_format": source_format,
        "tolerance": tolerance,
        "dims": dims,
        "check_data": check_data,
        "yardstick": None if yardstick else False,
        **options,
    }
    run = prepare_batch(
        sources,
        Settings(
            to=to,
            out=os.fspath(out),
            options={name: value for name, value in given.items() if value is not None},
            check=int(check),
            seconds=time_limit,
            memory=memory_limit,
            retries=retries,
            scratch="" if scratch is None else os.fspath(scratch),
            overwrite=overwrite,
            sandbox=sandbox,
            storage=storage_options or {},
        ),
        workers=workers,
        scheduler=scheduler,
        name_limit=name_limit,
        trust=Trust(manifest_code, manifest_targets),
        ledger=ledger,
        retry_failed=retry_failed,
    )
    for outcome in run:
        if progress is not None:
            progress(outcome)
    return run.report


def prepare_batch(
    sources: Source | Iterable[Source],
    settings: Settings,
    *,
    workers: int | None = None,
    scheduler: AnyValue = None,
    name_limit: int = LISTED,
    trust: Trust = NO_TRUST,
    ledger: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
) -> BatchRun:
    """Return the run of a batch, which begins when it is iterated over.

    Args:
        sources: As :func:`batch` takes them.
        settings: What all models have in common; the options as :func:`serde.convert` takes them.
        workers: As :func:`batch` takes it, and so the others.
        scheduler: What runs the jobs.
        name_limit: Names that may be looked at for one glob or folder.
        trust: What lines of manifests may do besides naming sources and options.
        ledger: Where outcomes are kept.
        retry_failed: Whether failures are tried again.

    Raises:
        FormatError: The ledger is another file.
        OptionError: Something cannot be used as it is given.
    """
    count = usable_cores() if workers is None else workers
    if count < 1:
        raise OptionError(f"workers: expected at least 1, found {count}")
    if name_limit < 1:
        raise OptionError(f"name_limit: expected at least 1, found {name_limit}")
    _check_limits(settings)
    writer = get_bridge(settings.to)
    known = _known_options()
    options = {name: _plain(name, value) for name, value in settings.options.items()}
    _check_options(writer, settings.options, known)
    settings = dataclasses.replace(
        settings, to=writer.name, options=options, threads=max(1, usable_cores() // count)
    )
    suffix = _check_out(writer, settings)
    entries = _entries(sources, known, trust)
    found = plan(entries, settings.out, suffix, settings.storage, name_limit)
    settings = dataclasses.replace(settings, options=give_shapes(found, settings.options))
    place = _ledger_path(settings.out) if ledger is None else Path(ledger)
    executor = _executor(scheduler, workers)
    return BatchRun(found, settings, executor, place, retry_failed=retry_failed)


def _executor(scheduler: AnyValue, workers: int | None) -> Executor:
    if scheduler is None:
        return LocalPool(workers)
    from serde.fleet.batching.dask import DaskExecutor, is_client

    if not isinstance(scheduler, str) and not is_client(scheduler):
        return scheduler

    return DaskExecutor(scheduler, workers)


def _check_limits(settings: Settings) -> None:
    """Refuse limits that are none, or that this system does not have."""
    for name, value in (("time_limit", settings.seconds), ("memory_limit", settings.memory)):
        if value is not None and not value > 0:
            raise OptionError(f"{name}: expected a positive number, found {value}")
    if settings.memory is not None and not has_fork_server():
        raise OptionError(f"memory_limit: there is none on {sys.platform}, only on Linux")
    if settings.sandbox and not has_landlock():
        raise OptionError("sandbox: this kernel has no Landlock, which Linux has from 5.13 on")
    if settings.retries < 0 or settings.check < 0:
        raise OptionError("retries and check: expected no negative number")


def _check_options(
    writer: AnyBridge, options: Mapping[str, AnyValue], known: frozenset[str]
) -> None:
    """Refuse what no model of the batch could be converted with."""
    if writer.export_options is None:
        raise OptionError(f"format {writer.name} cannot be written")
    refuse_options([name for name in options if name not in known], known)
    named = options.get("converters", ())
    for path in (named,) if isinstance(named, str) else named:
        if not Path(path).is_file():
            raise OptionError(f"converters: {path}: there is no such file")
    bind_options(writer.export_options, _without_code(options))
    bind_options(PrepareOptions, _without_code(options))


def _without_code(options: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return options less files of converters, which the process of each model alone runs."""
    return {name: value for name, value in options.items() if name != "converters"}


@cache
def _known_options() -> frozenset[str]:
    """Return the names of what :func:`serde.convert` takes for one model, of whatever formats."""
    return frozenset({*inspect.signature(convert).parameters} - _NOT_OF_A_BATCH)


def _plain(name: str, value: AnyValue) -> AnyValue:
    """Return the value of an option as JSON holds it."""
    if isinstance(value, (Tolerance, Limits)):
        value = dataclasses.asdict(value)
    try:
        return json.loads(json.dumps(value, default=_simple))
    except TypeError as error:
        told = "what no text can hold goes into a file, whose name is given"
        raise OptionError(f"{name}: a batch cannot take a {error} ({told})") from None


def _simple(value: AnyValue) -> AnyValue:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, TensorType):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if hasattr(value, "__index__"):
        return value.__index__()
    raise TypeError(type(value).__name__)


def _check_out(writer: AnyBridge, settings: Settings) -> str:
    """Make the folder of the targets, or refuse it; return how their names end."""
    options, _ = bind_options(writer.export_options or object, _without_code(settings.options))
    if is_url(settings.out) and Address.of(settings.out).protocol:
        return written_suffix(writer, "model", options)
    folder = Path(Address.of(settings.out).path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"{folder}: cannot be made: {error.strerror}") from None
    return written_suffix(writer, folder / ".serde-probe", options)


def _entries(
    sources: Source | Iterable[Source], known: frozenset[str], trust: Trust
) -> list[Entry]:
    """Return what was asked for, by lines of manifests and by arguments."""
    listed: Iterable[AnyValue]
    listed = [sources] if isinstance(sources, (str, os.PathLike, Mapping)) else sources
    found: list[Entry] = []
    for number, each in enumerate(listed):
        if isinstance(each, Mapping):
            where = f"sources[{number}]"
            try:
                found.append(read_entry(where, {k: _plain(k, v) for k, v in each.items()}, known))
            except OptionError as error:
                found.append(Entry(where, fault=str(error)))
        elif is_manifest(os.fspath(each)):
            found += read_manifest(os.fspath(each), known, trust)
        else:
            found.append(Entry(os.fspath(each), (os.fspath(each),)))
    return found


def _ledger_path(out: str) -> Path:
    """Return where the ledger of an output lies if nobody says so."""
    address = Address.of(out)
    if not address.protocol:
        folder = Path(address.path) / LEDGER_FOLDER
        if folder.is_symlink():
            raise OptionError(f"{folder}: is a link, which is not followed; name a --ledger")
        return folder / "ledger.sqlite"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = hashlib.blake2b(out.rstrip("/").encode(), digest_size=8).hexdigest()
    return Path(state) / "serde" / f"{name}.sqlite"
