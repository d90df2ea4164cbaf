"""The executor of a batch on a Dask cluster: one that runs, or one of this machine.

A task is one model. The worker that gets it runs it as this machine's own pool does, in a process
forked from one that the worker keeps for the batch. Weights never pass the scheduler: a task is
the names of a model's files, and its result is what is known of how it ended. Only so many tasks
are on the cluster at the same time that its workers never wait, whatever the number of models.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any as AnyValue, Final

from serde._version import __version__
from serde.core import dataclass, is_installed, replace, require
from serde.errors import ClusterError, OptionError
from serde.fleet.batching.pool import usable_cores
from serde.fleet.batching.records import Job, Outcome, Settings
from serde.fleet.batching.remote import dask_setup, end_run, run_model
from serde.fleet.stores.urls import Address

__all__ = ["LOCAL", "DaskExecutor", "is_client"]

LOCAL: Final = "dask"
"""What stands for a cluster of this machine, in the place of an address."""

_LOG = logging.getLogger("serde.batch")
_DISTRIBUTION: Final = "serde-relay"

_WINDOW: Final = 1000
"""Tasks on the cluster at the same time; two for each thread, where there are more of these."""

_RESUBMITTED: Final = 3
"""How often a task is given to the cluster again that was cancelled there."""

_CONNECTING: Final = 10.0
_EMPTY: Final = 300.0
"""Seconds until a scheduler has to answer, and for which it may have no worker."""

_POLL: Final = 0.02
_CLOSELY: Final = 0.5
_WATCH: Final = 5.0
"""Seconds between looks at results, at a task that may kill its worker, and at the cluster."""

_DEATHS: Final = 2
"""Workers that die of a job that is alone; of one, the job before it may still be the cause."""

_UNREADABLE: Final = "Error during deserialization of the task graph"
"""What a scheduler answers that cannot import what a task calls."""

_OPTIONS_OF_PATHS: Final = frozenset(("check_data", "converters"))
"""Options that are paths of files."""


class DaskExecutor:
    """Runs models on a Dask cluster.

    Args:
        scheduler: Address of a scheduler (``tcp://...``, ``tls://...``) or a connected
            ``distributed.Client``, which stays connected; ``"dask"`` for a cluster of processes
            of this machine, which is started for each run and ended with it.
        workers: How many processes that cluster of this machine has; as there are cores if left
            out.

    Raises:
        MissingDependency: distributed is not installed.
        OptionError: `scheduler` is none of these, or `workers` is given for one that runs.
    """

    def __init__(self, scheduler: AnyValue = LOCAL, workers: int | None = None) -> None:
        require("distributed")
        if not isinstance(scheduler, str) and not is_client(scheduler):
            found = type(scheduler).__name__
            raise OptionError(
                f"scheduler: expected an address or a distributed.Client, found {found}"
            )
        if scheduler != LOCAL and workers is not None:
            raise OptionError("workers: a cluster that runs has those that it has")
        self._scheduler = scheduler
        self._workers = workers

    def run(self, jobs: Iterable[Job], settings: Settings) -> Iterator[Outcome]:
        """Yield an outcome for each job, in the order in which they end.

        Jobs are taken as there is room for them. Closing the iterator cancels what is on the
        cluster and kills what its workers still run.

        Raises:
            ClusterError: The scheduler cannot be reached, is lost, or has no worker for long; or
                no worker has this version of serde.
        """
        coming = iter(jobs)
        first = next(coming, None)
        if first is None:  # Everything is done already: there is no need of a cluster.
            return
        with ExitStack() as stack:
            batch = _Batch(self._connect(stack), settings)
            batch.check_workers()
            stack.callback(batch.close)
            yield from batch.outcomes(chain((first,), coming))

    def _connect(self, stack: ExitStack) -> AnyValue:
        """Return a client, which is closed with the stack if it is of our making."""
        distributed, address = require("distributed"), self._scheduler
        if not isinstance(address, str):
            return address
        if address == LOCAL:
            address = stack.enter_context(self._local_cluster(distributed))
        stack.enter_context(_quiet_client())
        try:
            with warnings.catch_warnings():
                # What differs between versions is told of in one line, by `check_workers`.
                warnings.simplefilter("ignore")
                client = distributed.Client(address, timeout=_CONNECTING, set_as_default=False)
        except ValueError as error:
            raise OptionError(f"--scheduler {address}: {_line(error)}") from error
        except (OSError, TimeoutError) as error:
            told = f"scheduler {address}: no answer within {_CONNECTING:g} s"
            raise ClusterError(told) from error
        return stack.enter_context(client)

    def _local_cluster(self, distributed: AnyValue) -> AnyValue:
        """Start a cluster of this machine; its dashboard too, if that is installed."""
        preloaded = require("dask").config.get("distributed.worker.preload", ())
        try:
            cluster = distributed.LocalCluster(
                n_workers=self._workers or usable_cores(),
                threads_per_worker=1,
                processes=True,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                preload=[dask_setup.__module__, *preloaded],
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise ClusterError(f"a cluster of this machine: {_line(error)}") from error
        if is_installed("bokeh"):
            _LOG.info("Dask dashboard: %s", cluster.dashboard_link)
        return cluster


def is_client(value: object) -> bool:
    """Whether something is a client of Dask, which need not be installed to tell."""
    return type(value).__module__.partition(".")[0] == "distributed"


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Leave it to our own errors to say what a client of our making meets."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@dataclass(slots=True)
class _Task:
    """A task on the cluster.

    Attributes:
        job: What it runs.
        future: What stands for its result.
        tries: How often it was given to the cluster.
    """

    job: Job
    future: AnyValue
    tries: int


class _Batch:
    """One run of a batch on a cluster."""

    def __init__(self, client: AnyValue, settings: Settings) -> None:
        self._client = client
        self._address = client.scheduler.address
        scratch = settings.scratch and os.path.abspath(settings.scratch)
        self._settings = replace(settings, scratch=scratch, options=_with_places(settings.options))
        self._run = uuid.uuid4().hex[:12]
        self._numbers = 0
        self._tasks: dict[AnyValue, _Task] = {}
        self._suspects: deque[Job] = deque()
        self._fit: list[str] | None = None
        self._room = max(_WINDOW, 2 * sum(client.nthreads().values()))
        self._watched = self._peopled = time.monotonic()
        self._completed = require("distributed").as_completed(
            loop=client.loop, with_results=True, raise_errors=False
        )

    def outcomes(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Yield an outcome for each job, in the order in which they end."""
        coming, more = iter(jobs), True
        while more or self._tasks:
            while more and len(self._tasks) < self._room and not self._completed.has_ready():
                job = next(coming, None)
                more = job is not None
                if job is not None:
                    self._submit(job)
            if self._tasks:
                for future, result in self._ready():
                    yield from self._landed(future, result)
        while self._suspects:
            yield from self._judge(self._suspects.popleft())

    def _submit(self, job: Job, tries: int = 1) -> None:
        """Give a job to the cluster."""
        self._numbers += 1
        future = self._client.submit(
            run_model, _located(job).as_dict(), self._settings, __version__, self._run,
            key=(f"serde-batch-{self._run}", self._numbers), pure=False, workers=self._fit,
            allow_other_workers=self._fit is not None,
        )  # fmt: skip
        self._tasks[future.key] = _Task(job, future, tries)
        self._completed.add(future)

    def _ready(self) -> list[AnyValue]:
        """Wait for results, and return those that are there."""
        while True:
            batch: list[AnyValue] = self._completed.next_batch(block=False)
            if batch:
                return batch
            time.sleep(_POLL)
            self._watch()

    def _watch(self) -> None:
        """Look now and then whether there is still somebody who works."""
        now = time.monotonic()
        if now - self._watched < _WATCH:
            return
        self._watched = now
        self._require_connection()
        if self._client.nthreads():
            self._peopled = now
        elif now - self._peopled > _EMPTY:
            raise ClusterError(f"scheduler {self._address}: no worker for {_EMPTY:g} s")

    def _require_connection(self) -> None:
        """Wait until a connection that was lost is there again, as long as Dask itself does."""
        while self._client.status == "connecting":
            time.sleep(_POLL)
        if self._client.status != "running":
            raise ClusterError(f"scheduler {self._address}: the connection is lost")

    def _landed(self, future: AnyValue, result: AnyValue) -> Iterator[Outcome]:
        """Yield the outcome of a task that has ended; none if it has to be run again."""
        task = self._tasks.pop(future.key, None)
        if task is None:
            return
        if future.status == "finished":
            yield Outcome(**{**result, "sources": task.job.sources, "target": task.job.target})
        elif future.status == "error":
            yield from self._failed(task, result[1])
        elif task.tries > _RESUBMITTED:
            yield task.job.outcome("interrupted", error="its task was cancelled on the cluster")
        else:
            self._require_connection()
            self._submit(task.job, task.tries + 1)

    def _failed(self, task: _Task, error: BaseException) -> Iterator[Outcome]:
        """Yield the outcome of a task that has raised; none if it has to be run again."""
        if _UNREADABLE in str(error):
            raise ClusterError(
                f"scheduler {self._address}: serde {__version__} is needed there too"
            )
        if isinstance(error, require("distributed").KilledWorker):
            self._suspects.append(task.job)
        elif task.tries <= _RESUBMITTED and self._exclude_unfit():
            self._submit(task.job, task.tries + 1)
        else:
            told = f"on its worker: {type(error).__name__}: {_line(error)}"
            yield task.job.outcome("internal error", error=told)

    def _judge(self, job: Job) -> Iterator[Outcome]:
        """Run a job alone of which workers died, it or another that ran beside it.

        Yields:
            What it ends as: ``crashed`` when workers that have it died again.
        """
        self._submit(job)
        at, deaths = "", 0
        while self._tasks:
            landed = self._completed.next_batch(block=False)
            for future, result in landed:
                yield from self._landed(future, result)
            if landed:
                continue
            time.sleep(_CLOSELY)
            self._watch()
            ((key, task),) = self._tasks.items()
            running = self._client.processing()
            deaths += bool(at) and at not in running
            if deaths == _DEATHS:
                self._client.cancel([task.future])
                del self._tasks[key]
                yield _killed(job)
            at = "" if at not in running else at
            at = next((each for each, keys in running.items() if key in keys), at)
        if self._suspects and self._suspects[-1] is job:
            self._suspects.pop()
            yield _killed(job)

    def check_workers(self) -> None:
        """Require that workers have this version of serde, and say where something differs."""
        if not self._client.nthreads():
            _LOG.warning("scheduler %s has no worker yet", self._address)
            return
        versions = self._client.get_versions(packages=[_DISTRIBUTION])
        ours = versions["client"]["packages"]
        for package in ("python", "dask", "distributed"):
            self._compare(package, ours[package], versions["workers"])
        self._exclude_unfit(versions)

    def _compare(self, package: str, ours: AnyValue, workers: Mapping[str, AnyValue]) -> None:
        """Say in one line where workers have another version of a package."""
        for address, found in workers.items():
            theirs = found["packages"].get(package) if found else None
            if theirs != ours:
                _LOG.warning("worker %s: %s %s there, %s here", address, package, theirs, ours)
                return

    def _exclude_unfit(self, versions: Mapping[str, AnyValue] | None = None) -> bool:
        """Have tasks go to workers with this version of serde only, if there are others.

        Returns:
            Whether there are others.
        """
        found = versions or self._client.get_versions(packages=[_DISTRIBUTION])
        ours = found["client"]["packages"][_DISTRIBUTION]
        told = {
            address: each["packages"].get(_DISTRIBUTION) if each else None
            for address, each in found["workers"].items()
        }
        unfit = [address for address, theirs in told.items() if theirs != ours]
        if not unfit:
            self._fit = None
            return False
        theirs = told[unfit[0]]
        there = "is not installed there" if theirs is None else f"{theirs} is there"
        fault = f"worker {unfit[0]}: serde {there}, {ours} here"
        if len(unfit) == len(told):
            raise ClusterError(fault)
        _LOG.warning("%s; %d of %d workers get no models", fault, len(unfit), len(told))
        self._fit = [address for address in told if address not in unfit]
        return True

    def close(self) -> None:
        """Cancel what is on the cluster, and have workers kill what they still run of it."""
        futures = [task.future for task in self._tasks.values()]
        self._tasks.clear()
        if self._client.status != "running":
            return
        with suppress(Exception):  # What is gone needs no end.
            if futures:
                self._client.cancel(futures, force=True)
            self._client.run(end_run, self._run, self._settings.threads, on_error="ignore")


def _located(job: Job) -> Job:
    """Return a job with paths that mean the same in whatever directory a worker runs."""
    return replace(
        job,
        sources=tuple(_absolute(source) for source in job.sources),
        target=_absolute(job.target),
        options=_with_places(job.options),
    )


def _with_places(options: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return options in which those that name files do so likewise."""
    found = dict(options)
    for name in _OPTIONS_OF_PATHS & set(found):
        value = found[name]
        if isinstance(value, str):
            found[name] = _absolute(value)
        elif isinstance(value, (list, tuple)):
            found[name] = [_absolute(each) for each in value]
    return found


def _absolute(place: str) -> str:
    """Return a path as an absolute one, and a URL as it is."""
    address = Address.of(place)
    return place if address.protocol else os.path.abspath(address.path)


def _killed(job: Job) -> Outcome:
    return job.outcome("crashed", error="workers of the cluster died whenever they had it")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
