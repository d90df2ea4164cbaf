"""Modules of Relax as TVMScript: the text is checked, and then TVM parses it."""

from __future__ import annotations
