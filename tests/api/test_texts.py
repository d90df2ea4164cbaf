"""The last line of what a process printed."""

from __future__ import annotations

import io
import tempfile

import pytest

from serde.core.texts import last_line


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (b"", ""),
        (b" \n\n", ""),
        (b"one line", "one line"),
        (b"Traceback:\n  File\nValueError: no  \n\n", "ValueError: no"),
        (b"first\r\n\xff second\r\n", "\ufffd second"),
        (b"x" * 5000, "x" * 300),
        (b"y" * 100_000 + b"\nz\n", "z"),
    ],
)
def test_the_last_line_is_found_and_cut(printed: bytes, expected: str) -> None:
    assert last_line(io.BytesIO(printed)) == expected


def test_only_the_end_of_a_long_stream_is_read() -> None:
    with tempfile.TemporaryFile() as file:
        file.seek(2**36)
        file.write(b"\nkilled\n")
        assert last_line(file) == "killed"
