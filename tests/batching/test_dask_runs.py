"""Batches on a Dask cluster: nothing is lost, nothing twice, whoever dies."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.batch_outcomes import CHAINS, write_net
from support.dask_cluster import Cluster, dask_cluster, descendants, is_running, kill

from serde.command.cli import main
from serde.errors import ClusterError, OptionError
from serde.fleet.batching.records import Job, Outcome, Settings

distributed = pytest.importorskip("distributed")

from serde.fleet.batching.dask import DaskExecutor  # noqa: E402

pytestmark = pytest.mark.wide

KINDS = list(CHAINS)
ENDLESS = """
import time

time.sleep(600)
"""
KILLER = """
import os
import signal

with open(f"/proc/{os.getppid()}/stat") as file:  # of the process that models are forked from
    os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
"""
"""Files of converters that are run in the process of a model."""


def make_jobs(folder: Path, count: int, **options: object) -> list[Job]:
    """Return jobs for small nets of all kinds."""
    jobs = []
    for place in range(count):
        ops = CHAINS[KINDS[place % len(KINDS)]]
        source = write_net(folder / f"net-{place}.onnx", ops, width=1 + place % 97)
        target = folder / "out" / f"net-{place}-symbol.json"
        jobs.append(Job(source.name, (str(source),), str(target), options))
    return jobs


def settings(folder: Path, **options: object) -> Settings:
    return Settings(to="mxnet", out=str(folder / "out"), **options)


def expected(jobs: list[Job]) -> dict[str, str]:
    """How each job must end, by the operators of its net."""
    kinds = {job.name: KINDS[place % len(KINDS)] for place, job in enumerate(jobs)}
    return {
        name: "refused" if any("." in op for op in CHAINS[kind]) else "done"
        for name, kind in kinds.items()
    }


def check_all(jobs: list[Job], outcomes: list[Outcome]) -> None:
    """Nothing is lost, nothing twice, and what is done is there."""
    assert Counter(o.name for o in outcomes) == Counter(job.name for job in jobs)
    assert {o.name: o.status for o in outcomes} == expected(jobs)
    for outcome in outcomes:
        assert os.path.exists(outcome.target) == (outcome.status == "done")
    folder = Path(jobs[0].target).parent
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.fixture(scope="module")
def client() -> Iterator[object]:
    """A cluster within this process: two threads, and the models' own processes."""
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as connected:
        yield connected


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with dask_cluster(tmp_path, workers=2) as started:
        yield started


def test_a_connected_client_stays_connected(client: object, tmp_path: Path) -> None:
    jobs = make_jobs(tmp_path, 10)
    before = set(descendants(os.getpid()))
    outcomes = list(DaskExecutor(client).run(jobs, settings(tmp_path)))
    check_all(jobs, outcomes)
    assert client.status == "running"
    assert set(descendants(os.getpid())) == before
    assert all(outcome.bytes_read and outcome.started for outcome in outcomes)


def test_jobs_are_taken_as_there_is_room(
    client: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.fleet.batching.dask._WINDOW", 4)
    jobs, taken = make_jobs(tmp_path, 16), 0

    def listed() -> Iterator[Job]:
        nonlocal taken
        for job in jobs:
            taken += 1
            yield job

    outcomes = []
    for outcome in DaskExecutor(client).run(listed(), settings(tmp_path)):
        outcomes.append(outcome)
        assert taken - len(outcomes) <= 4
    check_all(jobs, outcomes)


def test_what_still_runs_ends_with_the_iterator(client: object, tmp_path: Path) -> None:
    before = set(descendants(os.getpid()))
    endless = tmp_path / "endless.py"
    endless.write_text(ENDLESS)
    jobs = make_jobs(tmp_path, 8, converters=[str(endless)])
    first = Job(jobs[0].name, jobs[0].sources, jobs[0].target)
    with closing(DaskExecutor(client).run([first, *jobs[3:]], settings(tmp_path))) as outcomes:
        assert next(outcomes).status == "done"
        time.sleep(0.5)
    deadline = time.monotonic() + 20
    while set(descendants(os.getpid())) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(descendants(os.getpid())) == before
    assert not any(client.processing().values())


def test_workers_get_what_is_secret_and_dask_prints_none_of_it(
    client: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = []

    class Failing:
        def run(self, job: Job, given: Settings) -> Outcome:
            seen.append(given.storage)
            raise RuntimeError("a defect")

        def close(self) -> None: ...

    monkeypatch.setattr("serde.fleet.batching.remote._kept_runner", lambda run, threads: Failing())
    storage = {"s3": {"secret": "hunter2"}}
    jobs = make_jobs(tmp_path, 1)
    (outcome,) = DaskExecutor(client).run(jobs, settings(tmp_path, storage=storage))
    assert (outcome.status, seen) == ("internal error", [storage])
    assert outcome.error == "on its worker: RuntimeError: a defect"
    assert "a defect" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_scheduler_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.fleet.batching.dask._CONNECTING", 0.3)
    jobs = make_jobs(tmp_path, 1)
    with pytest.raises(ClusterError) as caught:
        list(DaskExecutor("tcp://127.0.0.1:9").run(jobs, settings(tmp_path)))
    assert str(caught.value) == "scheduler tcp://127.0.0.1:9: no answer within 0.3 s"


@pytest.mark.parametrize("scheduler", ["http://127.0.0.1:9", "", 7])
def test_what_is_no_scheduler_is_refused(scheduler: object, tmp_path: Path) -> None:
    jobs = make_jobs(tmp_path, 1)
    with pytest.raises(OptionError, match=r"^(--)?scheduler.*: "):
        list(DaskExecutor(scheduler).run(jobs, settings(tmp_path)))


def test_relative_paths_are_those_of_who_asks(
    client: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Recording:
        def run(self, job: Job, given: Settings) -> Outcome:
            seen.extend([*job.sources, job.target, *job.options["converters"], given.scratch])
            return Outcome(name=job.name, sources=job.sources, target=job.target, status="done")

        def close(self) -> None: ...

    kept = "serde.fleet.batching.remote._kept_runner"
    monkeypatch.setattr(kept, lambda run, threads: Recording())
    monkeypatch.chdir(tmp_path)
    job = Job("a", ("a.onnx", "s3://store/b"), "out/a", {"converters": ["ops.py"]})
    (outcome,) = DaskExecutor(client).run([job], settings(tmp_path, scratch="scratch"))
    assert (outcome.sources, outcome.target) == (job.sources, job.target)
    wanted = ["a.onnx", "s3://store/b", "out/a", "ops.py", "scratch"]
    assert seen == [each if "://" in each else str(tmp_path / each) for each in wanted]


def test_no_job_needs_no_cluster(tmp_path: Path) -> None:
    assert list(DaskExecutor("tcp://127.0.0.1:9").run([], settings(tmp_path))) == []


def test_workers_are_those_of_the_cluster() -> None:
    with pytest.raises(OptionError, match=r"^workers: "):
        DaskExecutor("tcp://127.0.0.1:9", 2)


@pytest.mark.wide
def test_a_worker_is_killed_half_way(cluster: Cluster, tmp_path: Path) -> None:
    run_and_kill(cluster, tmp_path, 240)


@pytest.mark.slow
def test_a_worker_is_killed_half_way_through_2000_nets(cluster: Cluster, tmp_path: Path) -> None:
    run_and_kill(cluster, tmp_path, 2000)


def run_and_kill(cluster: Cluster, folder: Path, count: int) -> None:
    """Run a batch on two workers, and kill one of them when half is done, some of it there.

    A worker starts its server of processes first, which takes as long as many small nets.
    """
    jobs, outcomes = make_jobs(folder, count), []
    victim = cluster.workers[0]
    below: list[int] = []
    for outcome in DaskExecutor(cluster.address).run(jobs, settings(folder)):
        outcomes.append(outcome)
        begun = any(each.worker.endswith(f":{victim.pid}") for each in outcomes)
        if not below and begun and len(outcomes) >= count // 2:
            below = descendants(victim.pid)
            kill(victim.pid)
    check_all(jobs, outcomes)
    ran = Counter(outcome.worker.rpartition(":")[2] for outcome in outcomes)
    assert set(ran) == {str(worker.pid) for worker in cluster.workers}
    assert below
    assert not [pid for pid in below if is_running(pid)]


@pytest.mark.wide
def test_a_cluster_of_this_machine(tmp_path: Path) -> None:
    run_locally(tmp_path, 60)


@pytest.mark.slow
def test_2000_nets_on_a_cluster_of_this_machine(tmp_path: Path) -> None:
    run_locally(tmp_path, 2000)


def run_locally(folder: Path, count: int) -> None:
    """Run a batch on a cluster of its own, and kill one of its workers when half is done."""
    before = set(descendants(os.getpid()))
    jobs, outcomes = make_jobs(folder, count), []
    for outcome in DaskExecutor("dask", 2).run(jobs, settings(folder)):
        outcomes.append(outcome)
        if len(outcomes) == count // 2:
            kill(int(outcome.worker.rpartition(":")[2]))
    check_all(jobs, outcomes)
    assert set(descendants(os.getpid())) == before


@pytest.mark.wide
def test_a_model_that_kills_workers_is_crashed_and_others_are_not(tmp_path: Path) -> None:
    killer = tmp_path / "killer.py"
    killer.write_text(KILLER)
    jobs = make_jobs(tmp_path, 8)
    place = KINDS.index("gate")
    jobs[place] = Job(**{**jobs[place].as_dict(), "options": {"converters": [str(killer)]}})
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50
    )
    free = replace(settings(tmp_path), sandbox=False)  # In one, it could signal to no worker.
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        outcomes = {o.name: o for o in DaskExecutor(client).run(jobs, free)}
    crashed = outcomes.pop(jobs[place].name)
    assert crashed.status == "crashed"
    assert crashed.error == "workers of the cluster died whenever they had it"
    wanted = {name: status for name, status in expected(jobs).items() if name != crashed.name}
    assert {name: outcome.status for name, outcome in outcomes.items()} == wanted


@pytest.mark.wide
def test_a_scheduler_that_dies_ends_the_run_in_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.fleet.batching.dask._CONNECTING", 2.0)
    jobs = make_jobs(tmp_path, 60)
    outcomes = DaskExecutor(cluster.address).run(jobs, settings(tmp_path))
    next(outcomes)
    kill(cluster.scheduler.pid)
    with pytest.raises(ClusterError) as caught:
        list(outcomes)
    assert str(caught.value) == f"scheduler {cluster.address}: the connection is lost"


@pytest.mark.wide
def test_workers_of_another_version_get_no_models(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = tmp_path / "other" / "serde_relay-99.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: serde-relay\nVersion: 99.0\n")
    path = f"{metadata.parent}{os.pathsep}{Path(__file__).parents[2]}"
    jobs = make_jobs(tmp_path, 4)
    with dask_cluster(tmp_path) as cluster:
        cluster.start_worker(PYTHONPATH=path)
        cluster.await_workers(1)
        with pytest.raises(ClusterError, match=r"^worker tcp://\S+: serde 99.0 is there, "):
            list(DaskExecutor(cluster.address).run(jobs, settings(tmp_path)))
        cluster.start_worker()
        cluster.await_workers(2)
        check_all(jobs, list(DaskExecutor(cluster.address).run(jobs, settings(tmp_path))))
    assert "1 of 2 workers get no models" in caplog.text


@pytest.mark.wide
def test_a_cluster_that_stays_empty_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("serde.fleet.batching.dask._WATCH", 0.1)
    monkeypatch.setattr("serde.fleet.batching.dask._EMPTY", 0.5)
    jobs = make_jobs(tmp_path, 2)
    with dask_cluster(tmp_path) as cluster:
        with pytest.raises(ClusterError, match=r"no worker for 0\.5 s"):
            list(DaskExecutor(cluster.address).run(jobs, settings(tmp_path)))
        assert caplog.messages == [f"scheduler {cluster.address} has no worker yet"]


@pytest.mark.wide
def test_the_command_runs_on_a_cluster_and_knows_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nets").mkdir()
    for place, kind in enumerate(("small", "gate", "deep")):
        write_net(tmp_path / "nets" / f"{kind}.onnx", CHAINS[kind], width=4 + place)
    reports = [tmp_path / "report.html", tmp_path / "report.parquet"]
    command = ["batch", str(tmp_path / "nets"), "--to", "mxnet", "--out", str(tmp_path / "out")]
    flags = [part for path in reports for part in ("--report", str(path))]
    assert main([*command, "--dask", "--workers", "1", *flags]) == 101
    assert "2 of 3 models done" in capsys.readouterr().out
    assert all(path.stat().st_size for path in reports)

    def connect(*_: object) -> None:
        raise AssertionError("there is nothing to run")

    monkeypatch.setattr(DaskExecutor, "_connect", connect)
    assert main([*command, "--dask"]) == 101
    assert "3 of an earlier run" in capsys.readouterr().out
