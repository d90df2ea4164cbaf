"""What ``--help`` says is so: its examples parse, its defaults are the options' own."""

from __future__ import annotations

import dataclasses
import re
import shlex
from typing import Any

import click
import pytest

import serde.onnx.versions as versions
from serde.bridge.formats import get_bridge
from serde.command.base import Command
from serde.command.cli import COMMANDS, cli, find_command, main
from serde.command.parameters import FormatCommand, reading_options
from serde.core.lossy import lossy_steps


def examples() -> list[Any]:
    found = [(name, line) for name in COMMANDS for line in find_command(name).examples]
    return [pytest.param(name, line, id=line) for name, line in found]


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The whole help of a command as one line."""
    has_all = isinstance(find_command(name), FormatCommand)
    assert main([name, "--help-all" if has_all else "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = find_command(name)
    assert isinstance(command, Command)
    assert 2 <= len(command.examples) <= 4
    text = help_of(name, capsys).replace("\\ ", "")
    assert all(line in text for line in command.examples)


@pytest.mark.parametrize(("name", "line"), examples())
def test_every_example_parses(name: str, line: str) -> None:
    program, called, *args = shlex.split(line.partition(" > ")[0])
    assert (program, called) == ("serde", name)
    command = find_command(name)
    context = click.Context(cli, info_name="serde", help_option_names=["-h", "--help"])
    made = command.make_context(name, args, parent=context)
    if isinstance(command, FormatCommand):
        reading_options(made.params)


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_is_a_screen_and_names_all_that_there_is(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    short = capsys.readouterr().out
    assert short.count("\n") <= 75
    if isinstance(find_command(name), FormatCommand):
        more = re.findall(r"^  (\S.*?)  +\S", short.partition("More, which --help-all")[2], re.M)
        assert main([name, "--help-all"]) == 0
        titles = re.findall(r"^(\S.*):$", capsys.readouterr().out, re.M)
        ends = ["Lossy steps that --allow takes", "Examples"]
        assert [titles[0], *titles[-2:]] == ["Options", *ends]
        formats = [each for each in titles if each.startswith("Format ")]
        own = [each for each in titles[1:-2] if each not in formats]
        assert own == [each for each in more if each != "Formats"]
        assert bool(formats) == ("Formats" in more)
        assert "--help-all" not in " ".join(find_command(name).examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_long_examples_are_lines_that_a_shell_takes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([name, "--help"])
    printed = capsys.readouterr().out.partition("Examples:\n")[2]
    assert all(len(line) <= 80 for line in printed.splitlines())
    lines = printed.replace("\\\n", " ").splitlines()
    assert [shlex.split(each) for each in lines] == [
        shlex.split(each) for each in find_command(name).examples
    ]


def test_defaults_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of("convert", capsys)
    assert re.search(
        rf"--opset INTEGER\|auto [^\]]+\] [^\[]+\[default: {versions.DEFAULT_TARGET}\]", text
    )
    assert re.search(r"--yardstick \[on\|off\] [^\[]+\[default: on\]", text)
    assert re.search(r"--simplify / --no-simplify [^\[]+\[default: simplify\]", text)
    check = help_of("check", capsys)
    assert re.search(r"--runs INTEGER RANGE [^\[]+\[default: 1; x>=1\]", check)


@pytest.mark.parametrize("format_name", ["coreml", "mxnet", "nnef", "onnx", "relay", "torch"])
def test_the_defaults_of_flags_are_those_of_the_options(
    format_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bridge = get_bridge(format_name)
    text = help_of("convert", capsys)
    shown = dict(
        re.findall(
            r"--([a-z0-9-]+) [^\s]+ \[" + format_name + r"[^]]*\] [^\[]+\[default: ([^\]]+)\]", text
        )
    )
    classes = [each for each in (bridge.import_options, bridge.export_options) if each is not None]
    declared = {
        item.name.replace("_", "-"): str(item.default)
        for cls in classes
        for item in dataclasses.fields(cls)
        if isinstance(item.default, (int, str)) and not isinstance(item.default, bool)
    }
    assert shown == {name: declared[name] for name in shown}


@pytest.mark.parametrize(
    "name", [n for n in COMMANDS if isinstance(find_command(n), FormatCommand)]
)
def test_the_help_lists_lossy_steps(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(name, capsys)
    assert all(f"{step.name} {step.loses}" in text for step in lossy_steps().values())


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["convrt", "a", "b"], "Did you mean convert?"),
        (["formts"], "Did you mean formats?"),
        (["convert", "a", "b", "--opst", "17"], "Did you mean '--opset'?"),
        (["convert", "a", "b", "--input-shap", "3"], "Did you mean '--input-shape'?"),
        (["check", "a", "b", "--alow", "x"], "--allow"),
    ],
)
def test_a_mistyped_word_tells_the_near_one(
    args: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    assert hint in capsys.readouterr().err


def test_a_word_like_none_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err
