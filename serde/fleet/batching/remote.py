"""What a worker of a cluster does for a batch: it runs models, and lets go of what it has kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any as AnyValue, Final

from serde._version import __version__
from serde.fleet.batching.records import Job, Settings
from serde.fleet.batching.worker import Runner

__all__ = ["UnfitWorker", "dask_setup", "end_run", "run_model"]

_RUNS: Final = 4
"""Batches that a worker keeps processes for; those of one that was cut off go when others come."""

_LOCK: Final = threading.Lock()


class UnfitWorker(Exception):
    """Raised on a worker that has another version of serde than who asks."""


def run_model(
    job: Mapping[str, AnyValue], settings: Settings, version: str, run: str
) -> dict[str, AnyValue]:
    """Run one model on a worker.

    Args:
        job: :meth:`Job.as_dict`.
        settings: What all jobs have in common. Dask prints arguments in its log, and of these not
            what may be secret.
        version: Version of serde that asks.
        run: What tells batches apart that use the same worker.

    Returns:
        The fields of an outcome.

    Raises:
        UnfitWorker: The worker has another version.
    """
    if version != __version__:
        raise UnfitWorker(f"serde {__version__} there, {version} here")
    outcome = _runner(run, settings.threads).run(Job(**job), settings)
    fields = outcome.as_dict()
    del fields["exit_code"]
    return fields


def dask_setup(_worker: object) -> None:
    """Leave an interrupt from the terminal to the one who asks, who ends the cluster then.

    Dask calls this in the workers of a cluster of this machine, which preload this module.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_run(run: str, threads: int) -> None:
    """Kill what a worker still runs of a batch, and what it has kept for it."""
    _runner(run, threads).close()


def _runner(run: str, threads: int) -> Runner:
    with _LOCK:
        return _kept_runner(run, threads)


@lru_cache(maxsize=_RUNS)
def _kept_runner(_run: str, threads: int) -> Runner:
    return Runner(threads)
