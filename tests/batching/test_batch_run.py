"""Batches of this machine: what is converted, what is not done again, and what fails alone."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from support.batch_nets import hostile_converters, weights_of, write_net, write_nets

import serde
from serde.errors import FormatError, OptionError
from serde.fleet.batching.isolation import ForkServer, FreshProcesses
from serde.fleet.batching.ledger import Ledger, read_outcomes
from serde.fleet.batching.planning import Plan, give_shapes
from serde.fleet.batching.pool import LocalPool
from serde.fleet.batching.records import Job, Outcome
from serde.fleet.batching.report import BatchReport
from serde.fleet.batching.worker import Runner


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """One server for all tests: each would take longer to start than its models to convert."""
    runner = Runner()
    POOL.append(LocalPool(2, runner))
    yield
    POOL.clear()
    runner.close()


POOL: list[LocalPool] = []


def run(tmp_path: Path, *sources: object, **options: object) -> BatchReport:
    given = {"to": "onnx", "out": tmp_path / "out", "scheduler": POOL[0], **options}
    return serde.batch(list(sources), **given)


def ended(report) -> dict[str, str]:
    """How each model ended, by the end of its name."""
    return {Path(each.name).name: each.status for each in report}


def one(report) -> Outcome:
    (found,) = report
    return found


def test_models_of_a_folder_are_converted_under_their_names(tmp_path: Path) -> None:
    nets = [*write_nets(tmp_path / "nets", 2), write_net(tmp_path / "nets" / "a" / "b.onnx", 7)]
    (tmp_path / "nets" / "README.md").write_text("no model")
    report = run(tmp_path, tmp_path / "nets", check=True, opset=15)
    assert report.exit_code == 0
    assert (len(report), report.failed, report.findings.verdicts["agrees"]) == (3, 0, 3)
    made = [tmp_path / "out" / name for name in ("net0.onnx", "net1.onnx", "a/b.onnx")]
    for source, target in zip(nets, made, strict=True):
        expected, found = weights_of(source), weights_of(target)
        assert {name: value.tobytes() for name, value in found.items()} == {
            name: value.tobytes() for name, value in expected.items()
        }
    first = next(iter(report))
    assert first.bytes_read == nets[0].stat().st_size or first.bytes_read > 0
    assert first.memory > 10**7
    assert first.report["facts"]["opset"] == 15


def test_shapes_go_to_the_models_that_are_called_so(tmp_path: Path) -> None:
    for name in ("bert0.onnx", "bert1.onnx", "vit.onnx"):
        write_net(tmp_path / "nets" / name)
    shapes = {"x": (5, 4), "bert*:x": ("N", 4)}
    report = run(tmp_path, tmp_path / "nets", input_shapes=shapes)
    assert report.exit_code == 0
    found = {Path(each.name).stem: each.report["facts"]["inputs"][0]["shape"] for each in report}
    assert found == {"bert0": ["N", 4], "bert1": ["N", 4], "vit": [5, 4]}


@pytest.mark.parametrize(
    ("glob", "taken"),
    [
        ("bert*:x", ["a/bert0.onnx", "b/bert1.onnx"]),
        ("bert?.onnx:x:0", ["a/bert0.onnx", "b/bert1.onnx"]),
        ("a/*:x", ["a/bert0.onnx", "a/vit.onnx"]),
        ("*", ["a/bert0.onnx", "a/vit.onnx", "b/bert1.onnx"]),
    ],
)
def test_a_glob_of_a_shape_is_for_names_and_with_a_slash_for_paths(
    glob: str, taken: list[str]
) -> None:
    sources = ["a/bert0.onnx", "a/vit.onnx", "b/bert1.onnx", "a/own.onnx"]
    jobs = [Job(each, (each,), f"{each}.relay") for each in sources[:3]]
    jobs.append(Job(sources[3], (sources[3],), "o.relay", {"input_shapes": {"x": [9]}}))
    options = {"opset": 17, "input_shapes": {"y": [1], "args[0]": [2], glob: ["N"]}}
    found = Plan(jobs, [])
    common = {"y": [1], "args[0]": [2]}
    assert give_shapes(found, options) == {"opset": 17, "input_shapes": common}
    given = {job.name: job.options["input_shapes"] for job in found.jobs if job.options}
    own = {**common, glob.partition(":")[2]: ["N"]}
    assert given == {**dict.fromkeys(taken, own), "a/own.onnx": {"x": [9]}}


def test_a_glob_of_a_shape_that_fits_no_model_is_refused(tmp_path: Path) -> None:
    write_net(tmp_path / "vit.onnx")
    with pytest.raises(OptionError, match=r"input_shapes: no model is called bert\*$"):
        run(tmp_path, tmp_path / "vit.onnx", input_shapes={"bert*:x": (1, 4)})


def test_a_second_run_does_only_what_is_new(tmp_path: Path) -> None:
    write_nets(tmp_path / "nets", 2)
    source = f"{tmp_path}/nets/*.onnx"
    first = list(run(tmp_path, source))
    write_net(tmp_path / "nets" / "new.onnx", 9)
    report = run(tmp_path, source)
    again = {Path(each.name).name: each.reused for each in report}
    assert again == {"net0.onnx": True, "net1.onnx": True, "new.onnx": False}
    known = {each.name: each for each in report}
    assert [known[each.name].content for each in first] == [each.content for each in first]


@pytest.mark.wide
@pytest.mark.parametrize("change", ["bytes", "options", "target", "gone", "version"])
def test_what_has_changed_is_done_again(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = write_net(tmp_path / "net.onnx", 1)
    target = tmp_path / "out" / "net.onnx"
    run(tmp_path, net)
    options = {}
    if change == "bytes":
        write_net(net, 2)
    elif change == "options":
        options["opset"] = 13
    elif change == "target":
        target.write_bytes(b"something else")
    elif change == "gone":
        target.unlink()
    else:
        monkeypatch.setattr("serde.fleet.batching.ledger.__version__", "0.0.1")
    report = run(tmp_path, net, **options)
    assert not one(report).reused
    assert np.array_equal(weights_of(target)["w"], weights_of(net)["w"])
    assert one(run(tmp_path, net, **options)).reused


def test_a_source_that_was_touched_is_read_but_not_converted(tmp_path: Path) -> None:
    net = write_net(tmp_path / "net.onnx", 1)
    run(tmp_path, net)
    written = (tmp_path / "out" / "net.onnx").stat().st_mtime_ns
    os.utime(net, (1, 1))
    assert one(run(tmp_path, net)).reused
    assert (tmp_path / "out" / "net.onnx").stat().st_mtime_ns == written


def test_parameters_that_appear_beside_a_symbol_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "nets"
    net = write_net(folder / "net.onnx", 1)
    serde.convert(net, folder / "m-symbol.json")
    net.unlink()
    first = one(run(tmp_path, folder))
    other = write_net(tmp_path / "other.onnx", 2)
    serde.convert(other, tmp_path / "m-symbol.json")
    (tmp_path / "m-0000.params").rename(folder / "m-0003.params")
    second = one(run(tmp_path, folder))
    assert (first.status, second.status, second.reused) == ("done", "check failed", False) or (
        second.content != first.content and not second.reused
    )


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("hangs", "out of time", "took more than 2 s"),
        ("aborts", "crashed", "its process crashed (SIGABRT)"),
        ("faults", "crashed", "its process crashed (SIGSEGV)"),
        ("exits", "crashed", "its process ended without an answer (exit code 7)"),
        ("kills", "crashed", "its process was killed, as a system does that runs out of memory"),
        ("devours", "out of memory", "more memory is needed than it may take"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are there on Linux alone")
def test_a_model_that_ends_badly_ends_alone(
    tmp_path: Path, kind: str, status: str, told: str
) -> None:
    good = write_nets(tmp_path / "nets", 2)
    bad = {
        "source": str(write_net(tmp_path / "bad.onnx", 5)),
        "converters": [str(hostile_converters(tmp_path, kind))],
    }
    limit = 2 if kind == "hangs" else 60
    report = run(tmp_path, good[0], bad, good[1], time_limit=limit, memory_limit=2**28)
    found = {Path(each.name).name: each for each in report}
    assert ended(report) == {"net0.onnx": "done", "bad.onnx": status, "net1.onnx": "done"}
    assert found["bad.onnx"].error.startswith(told)
    assert found["bad.onnx"].attempts == (2 if kind == "kills" else 1)
    assert report.exit_code == 101
    assert sorted(os.listdir(tmp_path / "out")) == [".serde", "net0.onnx", "net1.onnx"]
    # Its bytes are known all the same, so that it is not tried again for nothing.
    assert found["bad.onnx"].content


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are there on Linux alone")
def test_a_failure_is_tried_again_when_asked_or_when_its_limit_is_another(tmp_path: Path) -> None:
    source = {
        "source": str(write_net(tmp_path / "net.onnx")),
        "converters": [str(hostile_converters(tmp_path, "hangs"))],
    }
    assert one(run(tmp_path, source, time_limit=0.5)).status == "out of time"
    assert one(run(tmp_path, source, time_limit=0.5)).reused
    assert not one(run(tmp_path, source, time_limit=0.6)).reused
    assert not one(run(tmp_path, source, time_limit=0.6, retry_failed=True)).reused


def test_what_is_refused_is_counted_by_operator(tmp_path: Path) -> None:
    for number in range(3):
        write_net(tmp_path / "nets" / f"n{number}.onnx", number, op="Gate" if number else "Relu")
    report = run(tmp_path, tmp_path / "nets", to="nnef")
    (gap,) = report.findings.gaps.operators()
    assert (report.failed, gap.models, gap.alone) == (2, 2, 2)
    refused = next(each for each in report if not each.is_done)
    assert refused.status == "refused"
    assert "nodes can be converted: " in refused.error
    assert one_line(refused)
    assert [each.reused for each in run(tmp_path, tmp_path / "nets", to="nnef")] == [True] * 3


def one_line(outcome: Outcome) -> bool:
    return "\n" not in outcome.error


def test_a_malformed_file_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08\xff" * 40)
    found = one(run(tmp_path, tmp_path / "bad.onnx"))
    assert found.status == "malformed"
    assert one_line(found)


def test_what_is_not_there_is_told_of_and_looked_for_again(tmp_path: Path) -> None:
    missing, pattern = tmp_path / "no.onnx", f"{tmp_path}/none/*"
    report = run(tmp_path, missing, pattern)
    assert {each.status for each in report} == {"unreachable"}
    assert report.exit_code == 102
    write_net(missing)
    assert [each.status for each in run(tmp_path, missing)] == ["done"]


def test_two_models_of_one_target_are_not_both_written(tmp_path: Path) -> None:
    first = write_net(tmp_path / "a" / "net.onnx", 1)
    second = write_net(tmp_path / "b" / "net.onnx", 2)
    report = run(tmp_path, first, second, first)
    told = {each.name: each for each in report}
    assert (told[str(first)].status, told[str(second)].status) == ("done", "usage")
    assert "is also that of" in told[str(second)].error
    assert len(report) == 2


def test_lines_that_cannot_be_read_are_outcomes(tmp_path: Path) -> None:
    net = write_net(tmp_path / "net.onnx")
    manifest = tmp_path / "m.jsonl"
    manifest.write_text(f'{{"source": "{net}", "target": "x/y.onnx"}}\n{{"source": 1}}\n')
    report = run(tmp_path, manifest)
    assert [(each.name, each.status) for each in report] == [
        (f"{manifest}:2", "unreadable line"),
        (str(net), "done"),
    ]
    assert (tmp_path / "out" / "x" / "y.onnx").is_file()
    # They are told anew by each run, and not kept from earlier ones.
    assert len(list(run(tmp_path, manifest))) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "onix"}, "unknown format 'onix'"),
        ({"colour": "red"}, "unknown option colour"),
        ({"converters": [print]}, "converters: a batch cannot take a builtin_function"),
        ({"workers": 0}, "workers: expected at least 1, found 0"),
        ({"time_limit": -1}, "time_limit: expected a positive number, found -1"),
        ({"memory_limit": 0}, "memory_limit: expected a positive number, found 0"),
        ({"out": "net.onnx/out"}, "cannot be made: Not a directory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_no_model_could_be_converted_with_is_refused_at_once(
    tmp_path: Path, options: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    net = write_net(Path("net.onnx"))
    with pytest.raises(OptionError, match=message):
        run(tmp_path, net, **options)


def test_a_ledger_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    net = write_net(tmp_path / "net.onnx")
    ledger = tmp_path / "notes.txt"
    ledger.write_text("nothing of a ledger " * 100)
    with pytest.raises(FormatError, match=r"notes\.txt: expected a ledger, found something else"):
        run(tmp_path, net, ledger=ledger)
    assert ledger.read_text() == "nothing of a ledger " * 100


def test_progress_is_told_with_each_outcome(tmp_path: Path) -> None:
    write_nets(tmp_path / "nets", 3)
    seen: list[Outcome] = []
    report = run(tmp_path, tmp_path / "nets", progress=seen.append)
    assert sorted(each.name for each in seen) == sorted(each.name for each in report)
    assert all(each.seconds > 0 and each.started <= time.time() for each in seen)


def test_a_disk_that_is_full_costs_no_outcome(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", {})
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    ledger._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    noise = np.random.default_rng(0).bytes(100_000).hex()
    outcomes = [
        Outcome(name=name, sources=(name,), target=name, status="refused", report={"x": noise})
        for name in ("a", "b")
    ]
    for each in outcomes:
        ledger.record(each, options="o")
    assert ledger.fault == f"{tmp_path}/ledger.sqlite: database or disk is full"
    ledger._connection.execute("PRAGMA max_page_count = 100000")
    ledger.flush()
    assert ledger.fault == ""
    assert list(ledger.close()) == []
    assert list(read_outcomes(ledger.path, ledger.run)) == outcomes


def test_what_the_disk_never_takes_is_in_the_report_all_the_same(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", {})
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
    noise = np.random.default_rng(0).bytes(100_000).hex()
    outcome = Outcome(name="a", sources=("a",), target="a", status="done", report={"x": noise})
    ledger.record(outcome, options="o")
    assert ledger.close() == [outcome]


@pytest.mark.wide
def test_a_model_is_converted_by_an_interpreter_of_its_own_where_none_forks(tmp_path: Path) -> None:
    net = write_net(tmp_path / "net.onnx")
    bad = {
        "source": str(write_net(tmp_path / "bad.onnx", 5)),
        "converters": [str(hostile_converters(tmp_path, "exits"))],
    }
    with closing(Runner(isolation=FreshProcesses())) as runner:
        report = run(tmp_path, net, bad, scheduler=LocalPool(2, runner))
    assert ended(report) == {"net.onnx": "done", "bad.onnx": "crashed"}


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
def test_a_runtime_has_the_threads_of_its_share(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    net = write_net(tmp_path / "net.onnx")
    with closing(ForkServer(threads=3)) as server:
        place = ("support.batch_nets", "threads_of_runtime")
        found = server.call(place, str(net), seconds=60, memory=None)
    assert found.answer == 3
