"""Processes of their own: how each way of ending is told, and that nothing of them stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serde.fleet.batching.isolation import ForkServer, FreshProcesses, Isolation, ServerEnded

KINDS = [FreshProcesses, *([ForkServer] if sys.platform == "linux" else [])]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def isolation(request: pytest.FixtureRequest) -> Iterator[Isolation]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer()
    yield made
    made.close()


def call(isolation: Isolation, function: str, request: object, **limits: object):
    given = {"seconds": 60, "memory": None, **limits}
    return isolation.call(tuple(function.rsplit(".", 1)), request, **given)


@pytest.mark.wide
def test_a_call_answers(isolation: Isolation) -> None:
    found = call(isolation, "operator.length_hint", [1, 2, 3])
    assert (found.answer, found.code, found.in_time) == (3, 0, True)
    assert 10**6 < found.memory < 10**9


@pytest.mark.wide
def test_an_error_is_an_exit_code_and_its_last_line(isolation: Isolation) -> None:
    found = call(isolation, "json.loads", "[")
    assert (found.answer, found.code) == (None, 1)
    assert found.said.startswith("json.decoder.JSONDecodeError: Expecting value")


def test_a_process_that_takes_too_long_is_killed(isolation: Isolation) -> None:
    start = time.monotonic()
    found = call(isolation, "time.sleep", 600, seconds=0.5)
    assert not found.in_time
    assert time.monotonic() - start < 30


@pytest.mark.wide
def test_a_crash_is_told_by_its_signal(isolation: Isolation) -> None:
    found = call(isolation, "signal.raise_signal", int(signal.SIGABRT))
    assert (found.answer, found.code) == (None, -signal.SIGABRT)


@pytest.mark.wide
def test_what_is_printed_is_no_answer(isolation: Isolation) -> None:
    found = call(isolation, "builtins.print", '{"answer": 1}')
    assert (found.answer, found.code) == (None, 0)
    assert call(isolation, "operator.length_hint", []).answer == 0


@pytest.mark.wide
def test_calls_at_the_same_time_do_not_mix(isolation: Isolation) -> None:
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        found[number] = call(isolation, "operator.length_hint", [0] * number).answer

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {number: number for number in range(4)}


def test_closing_ends_what_runs(isolation: Isolation) -> None:
    ended: list[object] = []

    def ask() -> None:
        try:
            ended.append(call(isolation, "time.sleep", 600))
        except ServerEnded as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(1.0)
    isolation.close()
    thread.join(30)
    assert len(ended) == 1
    with pytest.raises(ServerEnded):
        call(isolation, "operator.length_hint", [])


@pytest.mark.wide
@linux_only
def test_memory_is_limited_beyond_what_a_process_begins_with(server: ForkServer) -> None:
    assert call(server, "builtins.bytearray", 2**27, memory=2**26).answer is None
    found = call(server, "builtins.bytearray", 2**27, memory=2**26)
    assert found.said.startswith("MemoryError")
    # One that has room for it fails only where its result is to be JSON.
    assert "JSON" in call(server, "builtins.bytearray", 2**27, memory=2**28).said


@pytest.mark.wide
@linux_only
def test_processes_of_a_process_end_with_it(server: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text("import time\ntime.sleep(600)\n")
    call(server, "subprocess.call", [sys.executable, str(script)], seconds=1.0)
    wait_for(lambda: not running(str(script)))


@pytest.mark.wide
@linux_only
def test_a_server_that_is_killed_is_started_again(server: ForkServer) -> None:
    assert call(server, "operator.length_hint", [1]).answer == 1
    parent = server_pid(server)
    os.kill(parent, signal.SIGKILL)
    time.sleep(0.2)
    assert call(server, "operator.length_hint", [1, 2]).answer == 2
    assert server_pid(server) != parent


@linux_only
def test_calls_of_a_server_that_is_killed_are_told_and_their_processes_die(
    server: ForkServer, tmp_path: Path
) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text("import time\ntime.sleep(600)\n")
    told: list[BaseException] = []

    def ask() -> None:
        try:
            call(server, "runpy.run_path", str(script))
        except ServerEnded as error:
            told.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    children = wait_for(lambda: children_of(server_pid(server)))
    os.kill(server_pid(server), signal.SIGKILL)
    thread.join(30)
    assert len(told) == 1
    wait_for(lambda: not any(map(is_alive, children)))


@linux_only
def test_nothing_stays_of_a_process_that_is_killed_with_its_calls(tmp_path: Path) -> None:
    code = (
        "from serde.fleet.batching.isolation import ForkServer\n"
        "s = ForkServer()\n"
        "s.call(('operator', 'length_hint'), [], seconds=60, memory=None)\n"
        "print(s._server._process.pid, flush=True)\n"
        "s.call(('time', 'sleep'), 600, seconds=900, memory=None)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        server = int(process.stdout.readline())
        children = wait_for(lambda: children_of(server))
        process.kill()
    wait_for(lambda: not any(map(is_alive, [server, *children])))


PID = "__import__('os').getpid()"


@linux_only
def test_requests_that_are_alike_share_a_process(server: ForkServer) -> None:
    first, second = (call(server, "builtins.eval", PID, alike="a").answer for _ in range(2))
    others = [call(server, "builtins.eval", PID, alike=each).answer for each in ("b", None, None)]
    assert first == second
    assert len({first, *others}) == 4


@pytest.mark.wide
@linux_only
@pytest.mark.parametrize(
    "leaves",
    [
        "__import__('threading').Timer(60, print).start()",
        "__import__('subprocess').Popen(['sleep', '60']).pid",
        "setattr(__import__('serde'), 'kept', bytearray(2**27))",
    ],
    ids=["a thread", "a process", "memory"],
)
def test_a_process_that_keeps_something_is_not_asked_again(server: ForkServer, leaves: str) -> None:
    code = f"[{PID}, str({leaves})][0]"
    first = call(server, "builtins.eval", code, alike="a").answer
    assert first != call(server, "builtins.eval", PID, alike="a").answer


@linux_only
def test_one_that_dies_of_an_earlier_request_is_told_of_neither(server: ForkServer) -> None:
    first = call(server, "builtins.eval", PID, alike="a").answer
    os.kill(first, signal.SIGKILL)
    found = call(server, "builtins.eval", PID, alike="a")
    assert (found.code, found.answer != first) == (0, True)
    call(server, "signal.alarm", 1, alike="a")  # Kills it, if nothing is done about it.
    assert call(server, "time.sleep", 2, alike="a").code == 0
    assert call(server, "signal.raise_signal", int(signal.SIGABRT), alike="a").code < 0


@pytest.mark.wide
@linux_only
def test_the_memory_of_a_request_is_its_own(server: ForkServer) -> None:
    large, small = (
        call(server, "builtins.eval", f"[{PID}, len(bytes({size}) + b'x')]", alike="a")
        for size in (2**27, 1)
    )
    assert large.answer[0] == small.answer[0]
    assert large.memory - small.memory > 2**26


def server_pid(server: ForkServer) -> int:
    wait_for(lambda: server._server is not None)
    return server._server._process.pid


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def running(text: str) -> list[int]:
    """Processes whose command line holds a text."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in place.read_text().replace("\0", " "):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid() and is_alive(pid)]


def wait_for(condition, seconds: float = 30.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)
    return found
