"""Relay's text: printer and parser of TVM's spelling and of serde's dialect."""

from __future__ import annotations

from serde.relay.text.parser import fromtext, parse_expr

__all__ = ["fromtext", "parse_expr"]
