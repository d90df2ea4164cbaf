"""Shells complete commands, flags and their values: asked through click, and in the shells."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from serde.bridge.formats import format_names
from serde.command.cli import COMMANDS, cli, main
from serde.core.lossy import lossy_steps

ROOT = Path(__file__).parents[2]


def completed(*args: str, incomplete: str = "") -> dict[str, str]:
    """What is offered for the next word, by value the kind of item."""
    found = ShellComplete(cli, {}, "serde", "_SERDE_COMPLETE").get_completions(
        list(args), incomplete
    )
    return {item.value: item.type for item in found}


def test_commands() -> None:
    assert set(completed()) == set(COMMANDS)
    assert set(completed(incomplete="con")) == {"convert"}


@pytest.mark.parametrize("flag", ["--from", "--to"])
def test_formats(flag: str) -> None:
    assert set(completed("convert", "a.onnx", flag)) == set(format_names())
    assert set(completed("convert", flag, incomplete="co")) == {"coreml"}


def test_lossy_steps_with_what_they_lose() -> None:
    shell = ShellComplete(cli, {}, "serde", "_SERDE_COMPLETE")
    found = {item.value: item.help for item in shell.get_completions(["check", "--allow"], "")}
    assert found == {step.name: step.loses for step in lossy_steps().values()}


def test_limits_with_what_they_are() -> None:
    assert set(completed("inspect", "--limit", incomplete="t")) == {"terms=64", "turns=4096"}


@pytest.mark.parametrize(
    ("args", "incomplete", "expected"),
    [
        (("convert", "--yardstick"), "", {"on", "off"}),
        (("convert", "--quantized"), "q", {"qdq", "qlinear"}),
        (("partition", "--host"), "", {"relay", "tvm"}),
        (("completion",), "", {"bash", "zsh", "fish"}),
        (("convert",), "--yardstick=of", {"off"}),
    ],
)
def test_choices(args: tuple[str, ...], incomplete: str, expected: set[str]) -> None:
    assert set(completed(*args, incomplete=incomplete)) == expected


def test_flags_of_formats() -> None:
    found = completed("convert", incomplete="--ops")
    assert set(found) == {"--opset"}


@pytest.mark.parametrize(
    "args",
    [
        ("convert",),
        ("convert", "a.onnx"),
        ("diff", "a.onnx"),
        ("check", "--check-data"),
        ("convert", "--report"),
        ("convert", "--class-labels"),
        ("convert", "--converters"),
    ],
)
def test_paths_are_the_shells(args: tuple[str, ...]) -> None:
    assert completed(*args, incomplete="so") == {"so": "file"}


def test_commands_whose_schema_is_printed() -> None:
    assert set(completed("schema", incomplete="con")) == {"convert"}


def test_every_source_is_a_path() -> None:
    arguments = [
        param
        for name in COMMANDS
        for param in (cli.get_command(click.Context(cli), name) or cli).params
        if isinstance(param, click.Argument)
        and param.metavar not in (None, "COMMAND", "[OPERATOR]")
    ]
    for each in arguments:
        items = each.shell_complete(click.Context(cli), "x")
        assert [item.type for item in items] == ["file"]


@pytest.mark.parametrize("shell", [BashComplete, FishComplete, ZshComplete])
def test_the_script_is_printed(
    shell: type[ShellComplete], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell.name]) == 0
    text = capsys.readouterr().out
    assert text.strip() == shell(cli, {}, "serde", "_SERDE_COMPLETE").source().strip()
    assert f"_SERDE_COMPLETE={shell.name}_complete" in text


def test_another_shell_is_refused() -> None:
    assert main(["completion", "tcsh"]) == 2


@pytest.fixture
def command(tmp_path: Path) -> dict[str, str]:
    """An environment in which the command is found."""
    script = tmp_path / "bin" / "serde"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m serde "$@"\n')
    script.chmod(0o755)
    (tmp_path / "somewhere.onnx").touch()
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}


IN_BASH = """
eval "$(serde completion bash)"
COMP_WORDS=({words}) COMP_CWORD={place}
_serde_completion serde
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.wide
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["serde", "conv"], {"convert"}, marks=pytest.mark.wide),
        (["serde", "convert", "a.onnx", "--allow", "o"], {"other-lengths"}),
        pytest.param(["serde", "check", "--fr"], {"--from"}, marks=pytest.mark.wide),
    ],
    ids=["command", "value", "flag"],
)
def test_bash(command: dict[str, str], words: list[str], expected: set[str]) -> None:
    script = IN_BASH.format(words=" ".join(words), place=len(words) - 1)
    run = subprocess.run(
        ["bash", "-c", script], env=command, capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) == expected, run.stderr


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(command: dict[str, str]) -> None:
    script = "serde completion fish | source; complete --do-complete 'serde convert --allow other'"
    run = subprocess.run(
        ["fish", "-c", script], env=command, capture_output=True, text=True, check=True
    )
    step = lossy_steps()["other-lengths"]
    assert run.stdout.strip().split("\t") == [step.name, step.loses], run.stderr


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh(command: dict[str, str]) -> None:
    """The function that the script defines offers what it is to, in the form of ``_describe``."""
    script = (
        "compdef() { :; }; _describe() { print -rl -- ${(P)3} }; "
        "words=(serde convert --allow other); CURRENT=4; "
        'eval "$(serde completion zsh)"; _serde_completion'
    )
    run = subprocess.run(
        ["zsh", "-f", "-c", script], env=command, capture_output=True, text=True, check=True
    )
    step = lossy_steps()["other-lengths"]
    assert run.stdout.strip() == f"{step.name}:{step.loses}", run.stderr


FRAMEWORKS = {"coremltools", "mxnet", "nnef", "onnx", "onnxruntime", "safetensors", "torch", "tvm"}


@pytest.mark.wide
@pytest.mark.parametrize(
    "words",
    [
        "serde convert --al",
        *(
            pytest.param(each, marks=pytest.mark.wide)
            for each in ("serde check --allow ", "serde c")
        ),
    ],
)
def test_completing_loads_no_framework(words: str) -> None:
    parts = words.split(" ")
    code = (
        "import json, sys\nfrom serde.command.cli import main\n"
        "try: main([])\nexcept SystemExit: pass\n"
        "print(json.dumps([*sys.modules]), file=sys.stderr)"
    )
    environment = {
        **os.environ,
        "_SERDE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(parts),
        "COMP_CWORD": str(len(parts) - 1),
    }
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout
    loaded = {name.partition(".")[0] for name in json.loads(run.stderr)}
    assert not loaded & FRAMEWORKS
    assert "rich" not in loaded
