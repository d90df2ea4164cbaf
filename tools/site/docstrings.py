"""Docstrings for the site: what Sphinx would read in them becomes Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([^`]+)`")
_LITERAL_BLOCK = re.compile(r"::(?=\n\n(?: {4}|\t))")


class AsMarkdown(Extension):
    """Rewrites roles (``:class:`` and others), colons before literal blocks, and examples."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object that was loaded."""
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            # Of sections, griffe has one for several examples only.
            text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^:$", "", _LITERAL_BLOCK.sub(":", text), flags=re.M)
