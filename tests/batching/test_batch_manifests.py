"""Manifests: what each line means, and what becomes of lines that mean nothing."""

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from serde.errors import OptionError
from serde.fleet.batching.manifest import NO_TRUST, Entry, Trust, is_manifest, read_manifest

KNOWN = ("input_shapes", "opset", "check", "source_format", "converters", "cc")


def entries(
    tmp_path: Path, name: str, content: str | bytes, trust: Trust = NO_TRUST
) -> list[Entry]:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = list(read_manifest(str(path), KNOWN, trust))
    return [
        Entry(e.where.removeprefix(f"{tmp_path}/"), e.sources, e.target, e.options, e.fault)
        for e in found
    ]


def test_lines_of_json_give_sources_targets_and_options(tmp_path: Path) -> None:
    text = (
        '{"source": "a.onnx", "opset": 13}\n\n# said aside\n'
        '{"sources": ["b-symbol.json", "b-0000.params"], "target": "x/b.onnx",'
        ' "input_shapes": {"data": [1, 3]}}\n'
    )
    assert entries(tmp_path, "m.jsonl", text) == [
        Entry("m.jsonl:1", ("a.onnx",), "", {"opset": 13}),
        Entry(
            "m.jsonl:4",
            ("b-symbol.json", "b-0000.params"),
            "x/b.onnx",
            {"input_shapes": {"data": [1, 3]}},
        ),
    ]


def test_csv_has_json_in_cells_and_leaves_empty_ones_out(tmp_path: Path) -> None:
    text = 'source,opset,input_shapes,check\na.onnx,13,"{""data"": [1, 3]}",\n123,,,true\n'
    assert entries(tmp_path, "m.csv", text) == [
        Entry("m.csv:2", ("a.onnx",), "", {"opset": 13, "input_shapes": {"data": [1, 3]}}),
        Entry("m.csv:3", ("123",), "", {"check": True}),
    ]


def test_plain_lines_are_sources_and_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    found = entries(tmp_path, "m.txt", b"\xef\xbb\xbfa b.onnx\r\n  s3://bucket/c.onnx \n")
    assert [each.sources for each in found] == [("a b.onnx",), ("s3://bucket/c.onnx",)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"source": "a.onnx"', "expected JSON"),
        (b'{"opset": 3}', "expected a source, found None"),
        (b'{"source": ""}', "expected a source, found ''"),
        (b'{"source": 3}', "expected a source, found 3"),
        (b'{"sources": ["a", 3]}', "expected a source"),
        (b'{"source": "a", "target": 3}', "target: expected a path or URL, found 3"),
        (b'{"source": "a", "colour": "red"}', "there is no option colour"),
        (b'{"source": "a\\u0000b"}', "expected a path, found"),
        (b'{"source": "a\\ud800b"}', "expected a path, found"),
        (b'{"source": "a", "target": "\\ud800"}', "expected a path, found"),
        (b"a\xffb.onnx", "expected UTF-8, found 0xff"),
        (b'{"source": ' + b"[" * 100_000 + b"}", "expected JSON: nested too deeply"),
        (b"x" * (2**20 + 1), "the line is longer than 1,048,576 bytes"),
    ],
    ids=range(13),
)
def test_a_line_that_cannot_be_read_is_told_of_and_the_others_are_read(
    tmp_path: Path, line: bytes, fault: str
) -> None:
    first, found, last = entries(tmp_path, "m.jsonl", b"a.onnx\n" + line + b"\nz.onnx\n")
    assert (first.sources, last.sources) == (("a.onnx",), ("z.onnx",))
    assert found.where == "m.jsonl:2"
    assert found.fault.startswith(fault)


BEYOND = [
    ({"converters": "evil.py"}, "converters: a manifest may not name what is run", "code"),
    ({"converters": ["evil.py"]}, "converters: a manifest may not name what is run", "code"),
    ({"cc": "./evil.sh"}, "cc: a manifest may not name what is run", "code"),
    ({"target": "../x.onnx"}, "target: '../x.onnx' leaves the directory of the targets", "targets"),
    ({"target": "a/../../x.onnx"}, "target: .* leaves the directory of the targets", "targets"),
    ({"target": "/etc/x.onnx"}, "target: '/etc/x.onnx' is an absolute path", "targets"),
    ({"target": "C:\\x.onnx"}, "target: .* names a drive", "targets"),
    ({"target": "file:///x.onnx"}, "target: 'file:///x.onnx' is a URL", "targets"),
    ({"target": "s3://other/x.onnx"}, "target: 's3://other/x.onnx' is a URL", "targets"),
    ({"target": "./.serde/ledger.sqlite"}, "target: .* is where the ledger lies", "targets"),
]


@pytest.mark.parametrize(("said", "fault", "trusted"), BEYOND)
def test_what_goes_beyond_sources_and_options_is_allowed_by_name(
    tmp_path: Path, said: dict[str, Any], fault: str, trusted: str
) -> None:
    line = json.dumps({"source": "a.onnx", **said})
    (found,) = entries(tmp_path, "m.jsonl", line)
    hint = f"allow it by --manifest-{trusted} (manifest_{trusted}=True)"
    assert re.fullmatch(f"{fault}; {re.escape(hint)}", found.fault)
    other = Trust(code=trusted != "code", targets=trusted != "targets")
    assert entries(tmp_path, "m.jsonl", line, other) == [found]
    (allowed,) = entries(tmp_path, "m.jsonl", line, Trust(**{trusted: True}))
    assert (allowed.fault, allowed.sources) == ("", ("a.onnx",))


def test_a_line_of_csv_with_another_number_of_cells_is_told_of(tmp_path: Path) -> None:
    _, found = entries(tmp_path, "m.csv", "source,opset\na.onnx,13\nb.onnx\n")
    assert found == Entry("m.csv:3", fault="expected 2 cells, found 1")


def test_csv_without_a_column_of_sources_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"m\.csv:1: expected a column source, found model, op"):
        entries(tmp_path, "m.csv", "model,op\na,b\n")


def test_a_manifest_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"m\.jsonl: cannot be read: No such file"):
        list(read_manifest(str(tmp_path / "m.jsonl"), KNOWN, NO_TRUST))


def test_the_standard_input_is_a_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(b'{"source": "a.onnx"}\n')
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    assert list(read_manifest("-", KNOWN, NO_TRUST)) == [Entry("<stdin>:1", ("a.onnx",))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("-", True),
        ("m.jsonl", True),
        ("s/m.csv", True),
        ("a.onnx", False),
        ("a-symbol.json", False),
    ],
)
def test_a_manifest_is_known_by_its_suffix(name: str, expected: bool) -> None:
    assert is_manifest(name) is expected
