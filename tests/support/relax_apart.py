"""Cases judged in a process that another takes the place of when it crashes or hangs.

TVM may end the process where it should raise an error. The script that asks runs itself again,
with ``--here`` and the names of the cases, and answers there by :func:`answer`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from serde.errors import ConverterBug, SerdeError, Unsupported, UnsupportedModelError

__all__ = ["FAILED", "answer", "count", "judge_apart", "verdict_of"]

FAILED = ("WRONG", "ERROR", "BUG", "CRASH")
"""Verdicts that are neither ``right`` nor ``refused``."""

_SAID = 300
"""Characters of a reason that are kept."""


def verdict_of(judge: Callable[[], object]) -> tuple[str, str]:
    """Return the verdict on a case, and the reason where it is not right.

    ``refused`` is a reason that serde tells before TVM compiles; ``WRONG`` other results than
    expected; ``ERROR`` what serde raises otherwise, as where TVM does not compile a module;
    ``BUG`` is any other exception.
    """
    try:
        judge()
    except ConverterBug as error:
        return "BUG", _line(error)
    except UnsupportedModelError as error:
        issues = {f"{each.op}: {each.reason}": None for each in error.report.issues}
        return "refused", "; ".join(issues) or str(error)
    except Unsupported as error:
        return "refused", error.reason
    except AssertionError as error:
        return "WRONG", " ".join(str(error).split())[:_SAID]
    except SerdeError as error:
        return "ERROR", _line(error)
    except Exception as error:
        return "BUG", _line(error)
    return "right", ""


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_SAID]}"


def answer(names: Sequence[str], judge: Callable[[str], tuple[str, str]]) -> None:
    """Judge cases in this process, and print a line of JSON before and after each."""
    for name in names:
        print(json.dumps({"start": name}), flush=True)
        verdict, said = judge(name)
        print(json.dumps({"key": name, "verdict": verdict, "said": said}), flush=True)


def judge_apart(
    script: str, names: Sequence[str], flags: Sequence[str] = (), *, seconds: float = 300
) -> Iterator[tuple[str, str, str]]:
    """Yield name, verdict and reason of each case; a crash is the verdict ``CRASH``.

    Args:
        script: A file that calls :func:`answer` when it is run with ``--here``.
        names: The cases.
        flags: Further arguments of the script.
        seconds: The longest that a case may take; the process is ended then.
    """
    left = list(names)
    while left:
        started = left[0]
        command = [sys.executable, script, "--here", *flags, *left]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        timer = _watch(process, seconds)
        done = set()
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(b'{"'):
                continue
            timer.cancel()
            timer = _watch(process, seconds)
            row = json.loads(line)
            started = row.get("start", started)
            if "key" in row:
                done.add(row["key"])
                yield row["key"], row["verdict"], row["said"]
        timer.cancel()
        if started not in done and process.wait() is not None:
            done.add(started)
            yield started, "CRASH", f"exit code {process.returncode}"
        left = [name for name in left if name not in done]


def _watch(process: subprocess.Popen[bytes], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return timer


def count(verdicts: Sequence[str]) -> str:
    """Return how often each verdict was given, as text."""
    found = Counter(verdicts)
    return ", ".join(f"{each} {n}" for each, n in sorted(found.items())) + f" of {len(verdicts)}"
