"""Windows along axes."""

from __future__ import annotations
