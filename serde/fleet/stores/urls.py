"""URLs of stores: taken apart, put together, and printed without what is secret in them.

Nothing here loads ``fsspec``: whether a source is a URL is asked for every conversion.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from serde.core.systems import local_path

__all__ = ["Address", "is_url", "safe_text", "safe_url"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_LOCAL: Final = re.compile(r"(?:file|local)://(?!.*::)", re.DOTALL)
_WEB: Final = re.compile(r"https?://")
_USER: Final = re.compile(r"(://)[^/?#\s]*@")
# Signatures and tokens of shared links are in the query; a chained URL goes on behind it.
_QUERY: Final = re.compile(r"\?(?:(?!::)[^\s'\"])+")


def is_url(source: object) -> bool:
    """Whether a source or target is a URL, and no path, bytes or live object."""
    return isinstance(source, str) and "://" in source and _SCHEME.match(source) is not None


def safe_url(url: str) -> str:
    """Return a URL as it may be printed: without user, password and query."""
    return _USER.sub(r"\1", _QUERY.sub("?...", url))


def safe_text(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return what a library said, on one line, without what is secret in the URLs it names."""
    for secret in secrets:
        text = text.replace(secret, "...")
    return " ".join(safe_url(text).split())


class Address(NamedTuple):
    """The parts of a path or URL.

    Attributes:
        protocol: Such as ``"s3"``; empty of a local path.
        path: The path itself, that within a store without the protocol.
        query: What follows it from ``?`` on, of ``http`` and ``https``.
        rest: What follows a chained URL's first part, from ``::`` on.
    """

    protocol: str
    path: str
    query: str = ""
    rest: str = ""

    @classmethod
    def of(cls, source: str | os.PathLike[str]) -> Address:
        """Take a path or URL apart; ``file://`` is a local path."""
        text = os.fspath(source)
        if not is_url(text):
            return cls("", local_path(text))
        local = _LOCAL.match(text)
        if local is not None:
            return cls("", local_path(text[local.end() :]))
        first, chained, rest = text.partition("::")
        protocol, _, path = first.partition("://")
        query = ""
        if _WEB.match(first):
            path, mark, query = path.partition("?")
            query = mark + query
        return cls(protocol.lower(), path, query, chained + rest)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The path without its last part."""
        return self.path.rstrip("/").rpartition("/")[0]

    def with_path(self, path: str) -> Address:
        """Return the address of another path of the same store; a query was for the one alone."""
        return self._replace(path=path, query="")

    def beside(self, name: str) -> Address:
        """Return the address of what lies beside this one."""
        return self.with_path(f"{self.parent}/{name}" if self.parent else name)

    def within(self, name: str) -> Address:
        """Return the address of what lies in this folder."""
        folder = self.path.rstrip("/")
        return self.with_path(f"{folder}/{name}" if folder else name)

    def __str__(self) -> str:
        if not self.protocol:
            return self.path
        return f"{self.protocol}://{self.path}{self.query}{self.rest}"
