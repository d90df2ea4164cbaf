"""What the end of a model's process says of the model."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any as AnyValue, Final

from serde.engine.base import out_of_memory
from serde.fleet.batching.isolation import Ending
from serde.fleet.batching.records import Job, Outcome, Settings

__all__ = ["answered", "died", "was_killed_from_outside"]

_FAULTS_OF_WINDOWS: Final = 0xC0000000
"""From here on exit codes say there what is a signal elsewhere."""
_KILLS: Final = tuple(getattr(signal, name, None) for name in ("SIGKILL", "SIGTERM"))


def answered(job: Job, ending: Ending) -> Outcome:
    """Return the outcome of a model whose process said how its conversion ended."""
    answer = ending.answer
    return job.outcome(
        answer["status"],
        error=answer["error"],
        bytes_written=answer.get("bytes_written", 0),
        memory=ending.memory,
        **_known(answer, answer["report"]),
    )


def died(
    job: Job, ending: Ending, settings: Settings, identified: Mapping[str, AnyValue]
) -> Outcome:
    """Return the outcome of a model whose process ended without an answer.

    Args:
        job: The model.
        ending: How its process ended.
        settings: The limits that it had.
        identified: What was found out about its bytes.
    """
    status, error = _cause(ending, settings)
    said = f": {ending.said}" if ending.said and status != "out of time" else ""
    known = _known(identified, {})
    return job.outcome(status, error=error + said, memory=ending.memory, **known)


def _known(answer: Mapping[str, AnyValue], report: Mapping[str, AnyValue]) -> dict[str, AnyValue]:
    """Return what an outcome says of the bytes that were read, as far as they were."""
    return {
        "content": answer.get("content", ""),
        "bytes_read": answer.get("bytes_read", 0),
        "report": {
            **report,
            "batch": {"files": answer.get("files", []), "wants": answer.get("wants", [])},
        },
    }


def _cause(ending: Ending, settings: Settings) -> tuple[str, str]:
    if not ending.in_time:
        return "out of time", f"took more than {settings.seconds:g} s"
    if out_of_memory(ending.said):
        return "out of memory", "more memory is needed than it may take"
    if was_killed_from_outside(ending):
        return "crashed", "its process was killed, as a system does that runs out of memory"
    if ending.code < 0:
        return "crashed", f"its process crashed ({_signal_name(-ending.code)})"
    if ending.code >= _FAULTS_OF_WINDOWS:
        return "crashed", f"its process crashed ({ending.code:#x})"
    return "crashed", f"its process ended without an answer (exit code {ending.code})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def was_killed_from_outside(ending: Ending) -> bool:
    """Whether somebody else ended a process, so that it may end otherwise if tried again."""
    return ending.in_time and -ending.code in _KILLS
