"""What the command line prints, kept in ``tests/golden/cli``.

``python tests/support/cli_goldens.py`` from the root writes the files anew; what changed is to
be read like code. Seconds are printed as ``T``.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from support.toy_format import MODEL, TOY

from serde.command.cli import COMMANDS as NAMES, main

FOLDER = Path(__file__).parent.parent / "golden" / "cli"

COMMANDS = {
    "help": "--help",
    **{f"help-{command}": f"{command} --help" for command in NAMES},
    "help-all": "convert --help-all",
    "bisect": "bisect m.toy other.toy",
    "check": "check m.toy m.toy",
    "check-failed": "check m.toy other.toy",
    "convert": "convert m.toy o.relay --check",
    "convert-as-json": "convert m.toy o.relay --json --check",
    "convert-part": "convert m.toy o.toy --inputs scaled --outputs limited,shifted --check",
    "convert-refused": "convert broken.toy o.toy",
    "convert-report": "convert m.toy o.toy --check -q --report r.md",
    "convert-tensor-mapping": "convert m.toy o.toy -q --tensor-mapping r.json",
    "convert-unknown-name": "convert m.toy o.toy --outputs shift",
    "convert-without-simplifying": "convert twice.toy o.toy --no-simplify",
    "convert-simplified": "convert twice.toy o.toy",
    "diff-equal": "diff m.toy m.toy",
    "diff": "diff m.toy other.toy",
    "diff-as-json": "diff m.toy other.toy --json --no-weights",
    "edit": "edit m.toy o.relay --insert-cast data:float64 --rename data=x --check",
    "edit-mistake": "edit m.toy o.toy --rename dat=x",
    "formats": "formats",
    "inspect": "inspect m.toy",
    "inspect-relay": "inspect m.toy --relay",
    "partition": "partition m.toy out --supported chip.json --check --svg r.svg",
    "partition-as-json": "partition m.toy out --supported chip.json --json",
    "partition-mistake": "partition m.toy out --supported wrong.json",
    "partition-whole": "partition m.toy out --opset 13 --min-nodes 2",
    "start": "",
    "usage": "convert m.toy",
}
"""Arguments by the name of the golden file."""


def models() -> dict[str, Any]:
    """Return the files that the commands read, by name."""
    other = copy.deepcopy(dict(MODEL))
    other["nodes"][0]["op"] = "Plus"
    other["nodes"][0]["inputs"] = ["data", "weight"]
    other["weights"] = {"weight": other["weights"]["w"], "b": ["float32", [0.1, 0.2, 0.5]]}
    other["outputs"] = ["out", "shifted"]
    broken = copy.deepcopy(dict(MODEL))
    broken["nodes"][2:] = [
        {"op": "Fold", "name": "limited", "inputs": ["shifted"]},
        {"op": "Limit", "name": "out", "inputs": ["data"], "low": 2.0},
    ]
    twice = copy.deepcopy(dict(MODEL))
    twice["nodes"].append({"op": "Tanh", "name": "again", "inputs": ["limited"]})
    twice["outputs"] = ["out", "again"]
    chip = {"name": "a chip", "operators": {"Mul": True, "Max": {"dtypes": ["float16"]}}}
    wrong = {"operators": ["Mull"]}
    lists = {"chip.json": chip, "wrong.json": wrong}
    return {**lists, "m.toy": MODEL, "other.toy": other, "broken.toy": broken, "twice.toy": twice}


def printed(name: str, directory: Path) -> str:
    """Run a command in an empty directory and return what it printed and wrote.

    The toy format is there beside the others, except where help is asked for.
    """
    args = COMMANDS[name].split()
    found = [] if {"--help", "--help-all"} & {*args} else [TOY]
    for file, model in models().items():
        (directory / file).write_text(json.dumps(model))
    before = os.getcwd()
    os.chdir(directory)
    environment = {"COLUMNS": "100", "NO_COLOR": "1"}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    try:
        with (
            mock.patch("importlib.metadata.entry_points", return_value=found),
            mock.patch.dict(os.environ, environment),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(args)
    finally:
        os.chdir(before)
    parts = [f"$ serde {COMMANDS[name]}\n"]
    for title, stream in (("stdout", out), ("stderr", err)):
        stream.seek(0)
        text = stream.read()
        parts += [f"--- {title}\n{text}"] if text else []
    parts += [
        f"--- {file.name}\n{file.read_text(encoding='utf-8')}"
        for file in sorted(directory.glob("r.*"))
    ]
    return _untimed("".join(parts)) + f"--- exit code {code}\n"


def _untimed(text: str) -> str:
    text = re.sub(r" +\d+\.\d\d s$", " T s", text, flags=re.MULTILINE)
    text = re.sub(r"\| \d+\.\d\d \|$", "| T |", text, flags=re.MULTILINE)
    return re.sub(r'"seconds": [-\d.e]+', '"seconds": T', text)


def write_all() -> None:
    """Write every golden file, and remove those of no command."""
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as directory:
            (FOLDER / f"{name}.txt").write_text(printed(name, Path(directory)), encoding="utf-8")
    for path in FOLDER.glob("*.txt"):
        if path.stem not in COMMANDS:
            path.unlink()


if __name__ == "__main__":
    write_all()
