"""What commands print with ``--json`` is what their schemas say, whether they succeed or fail."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.cli_goldens import models
from support.toy_format import TOY

from serde.command.base import Command
from serde.command.cli import COMMANDS, find_command, main
from serde.command.schemas import VERSION, command_schema, schema_of

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas" / f"v{VERSION}"


def schema_for(name: str) -> dict[str, Any]:
    command = find_command(name)
    assert isinstance(command, Command)
    return command_schema(name, command.result, command.codes)


def without_others(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name."""
    if isinstance(schema, dict):
        found = {key: without_others(value) for key, value in schema.items()}
        if found.get("type") == "object" and isinstance(found.get("properties"), dict):
            found.setdefault("additionalProperties", False)
        return found
    return [without_others(each) for each in schema] if isinstance(schema, list) else schema


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """What runs a command where models lie, and returns its exit code and its object."""
    found = {"serde.formats": [TOY]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found.get(group, []))
    monkeypatch.chdir(tmp_path)
    for file, model in models().items():
        (tmp_path / file).write_text(json.dumps(model))

    def run(line: str) -> tuple[int, Any]:
        code = main([*line.split(), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


LINES = {
    "batch none.onnx --to relay --out out": 101,
    "batch none.onnx": 2,
    "bisect m.toy m.toy": 0,
    "bisect m.toy other.toy": 4,
    "bisect m.toy missing.toy": 2,
    "check m.toy m.toy": 0,
    "check m.toy other.toy": 4,
    "check m.toy": 2,
    "completion fish": 0,
    "completion tcsh": 2,
    "convert m.toy o.relay --check": 0,
    "convert broken.toy o.toy": 1,
    "convert m.toy o.toy --outputs shift": 2,
    "convert m.toy": 2,
    "convert m.toy o.toy --opst 17": 2,
    "convert missing.toy o.toy": 2,
    "convert chip.json o.toy": 3,
    "diff m.toy m.toy": 0,
    "diff m.toy other.toy": 1,
    "diff m.toy missing.toy": 2,
    "edit m.toy o.relay --rename data=x": 0,
    "edit m.toy o.toy --rename dat=x": 2,
    "formats": 0,
    "inspect m.toy": 0,
    "inspect m.toy --relay": 0,
    "inspect m.toy --nodes": 0,
    "inspect chip.json": 3,
    "ops --format onnx": 0,
    "ops --format none": 2,
    "partition m.toy out": 0,
    "partition m.toy out --supported chip.json": 1,
    "partition m.toy out --supported wrong.json": 2,
    "route m.toy": 0,
    "route m.toy --to nnef --to toy": 0,
    "route m.toy --to cafe": 2,
    "schema convert": 0,
    "schema convrt": 2,
    "view m.toy": 0,
    "view m.toy other.toy": 0,
    "view broken.toy": 0,
    "view missing.toy": 2,
}
"""Commands with their exit codes."""


@pytest.mark.parametrize("line", LINES)
def test_what_is_printed_is_what_the_schema_says(printed: Any, line: str) -> None:
    code, found = printed(line)
    assert (code, found["exit_code"]) == (LINES[line], LINES[line])
    schema = schema_for(line.split()[0])
    jsonschema.Draft202012Validator(schema).validate(found)
    jsonschema.Draft202012Validator(without_others(schema)).validate(found)


def test_every_command_is_run() -> None:
    assert {line.split()[0] for line in LINES} == set(COMMANDS)


@pytest.mark.wide
@pytest.mark.parametrize("name", COMMANDS)
def test_the_published_schemas_are_current(name: str) -> None:
    text = (PUBLISHED / f"{name}.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    assert schema == json.loads(json.dumps(schema_for(name)))
    assert schema["$id"].endswith(f"/schemas/v{VERSION}/{name}.json")
    jsonschema.Draft202012Validator.check_schema(schema)


def test_no_other_schema_is_published() -> None:
    assert {path.stem for path in PUBLISHED.iterdir()} == set(COMMANDS)


@pytest.mark.wide
def test_a_report_file_is_what_convert_prints(printed: Any, tmp_path: Path) -> None:
    printed("convert m.toy o.relay --report r.json")
    jsonschema.validate(json.loads((tmp_path / "r.json").read_text()), schema_for("convert"))


@pytest.mark.wide
@pytest.mark.parametrize(
    ("change", "value"), [("exit_code", "0"), ("stages", {}), ("error", 3), ("nodes", None)]
)
def test_what_is_otherwise_is_refused(printed: Any, change: str, value: object) -> None:
    found = copy.deepcopy(printed("convert m.toy o.relay")[1])
    found[change] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema_for("convert"))


@pytest.mark.wide
def test_numbers_that_are_not_finite_are_text(printed: Any) -> None:
    found = printed("check m.toy m.toy")[1]
    found["verdicts"][0]["max_rel"] = "inf"
    jsonschema.validate(found, schema_for("check"))
    found["verdicts"][0]["max_rel"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema_for("check"))


def test_what_json_cannot_hold_has_no_schema() -> None:
    with pytest.raises(TypeError, match="JSON has no"):
        schema_of(bytes)
