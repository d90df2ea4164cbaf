"""What an interpreter does that was started for one call: where there is no fork that is safe.

Its request is a line on its input and its answer goes to its output, which nothing that is called
can reach: what that prints goes to the error stream. When its input ends, so does it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import traceback

__all__ = ["largest_memory", "main"]


def main() -> None:
    """Answer one request."""
    # Who waits for the answer is interrupted too, and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    module, name = asked["function"]
    code = 1
    try:
        said = getattr(importlib.import_module(module), name)(asked["request"])
        text = json.dumps({"answer": said, "memory": largest_memory()}).encode()
        with answers:
            answers.write(text)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def largest_memory() -> int:
    """Return the largest resident memory of this process in bytes, 0 where that is not known.

    On Linux what the process that started this one held would be counted, too, by `getrusage`.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as file:
        figures = dict(line.split(":", 1) for line in file)
        return int(figures["VmHWM"].split()[0]) * 1024
    try:
        import resource
    except ImportError:  # Not on Windows.
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
