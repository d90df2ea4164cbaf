"""``python -m serde``: the command line."""

from __future__ import annotations

from serde.command.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
