"""What the JSON of ``serde batch`` holds, for its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["batch_properties"]


def batch_properties() -> Mapping[str, dict[str, Any]]:
    """Return what a batch adds to the object of a command."""
    from serde.command.schemas import object_of, properties_of, schema_of, table_of
    from serde.fleet.batching.findings import Reason
    from serde.fleet.batching.gaps import OperatorGap
    from serde.fleet.batching.records import Outcome, Settings

    outcome = properties_of(Outcome)
    outcome["exit_code"] = {"description": "The code of its status.", "type": "integer"}
    counts = table_of({"type": "integer"})
    numbers = ("models", "done", "failed", "reused", "bytes_read", "bytes_written")
    return {
        "interrupted": schema_of(bool),
        **{name: schema_of(int) for name in numbers},
        "statuses": counts,
        "verdicts": counts,
        "reasons": {"type": "array", "items": object_of(properties_of(Reason))},
        "operators": {"type": "array", "items": object_of(properties_of(OperatorGap))},
        "seconds": schema_of(float),
        "models_per_second": schema_of(float),
        "settings": object_of(properties_of(Settings, hidden=("storage",))),
        "ledger": schema_of(str),
        "fault": schema_of(str),
        "outcomes": {"type": "array", "items": object_of(outcome)},
    }
