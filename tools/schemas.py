"""Writes the JSON Schema of what each command prints with ``--json`` to ``docs/schemas``.

``python tools/schemas.py``, as ``make docs`` does.
"""

from __future__ import annotations

from pathlib import Path

from serde.command.base import Command
from serde.command.cli import COMMANDS, find_command
from serde.command.render import as_json
from serde.command.schemas import VERSION, command_schema

FOLDER = Path(__file__).parents[1] / "docs" / "schemas" / f"v{VERSION}"


def main() -> None:
    """Write the schemas, and remove those of no command."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        command = find_command(name)
        own = (command.result, command.codes) if isinstance(command, Command) else (None,)
        text = as_json(command_schema(name, *own)) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.json"):
        if path.stem not in COMMANDS:
            path.unlink()


if __name__ == "__main__":
    main()
