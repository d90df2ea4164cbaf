"""What type checkers say of scripts that use `serde`, and that the stubs are current."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import stubs
from mypy import api
from support.tiers import first_of

import serde

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "scripts"
NAMES = sorted(path.name for path in SCRIPTS.glob("*.py"))


def marked_lines(name: str) -> set[int]:
    """The lines of a script on which a mistake is."""
    lines = (SCRIPTS / name).read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# error")}


def run_mypy(*flags: str) -> dict[str, dict[int, str]]:
    """What mypy finds, by script and line."""
    cache = ROOT / ".mypy_cache" / "scripts"
    strict = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={cache}"]
    files = [str(SCRIPTS / name) for name in NAMES]
    out, failure, _ = api.run([*strict, "--hide-error-context", *flags, *files])
    assert failure == ""
    found: dict[str, dict[int, str]] = defaultdict(dict)
    for path, line, text in re.findall(r"^(.+?):(\d+): error: (.*)$", out, re.MULTILINE):
        found[Path(path).name][int(line)] = text
    assert len(found) >= 3, out
    return found


@pytest.fixture(scope="module")
def mypy_errors() -> dict[str, dict[int, str]]:
    return run_mypy()


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
def test_mypy_finds_the_mistakes(name: str, mypy_errors: dict[str, dict[int, str]]) -> None:
    assert set(mypy_errors[name]) == marked_lines(name), mypy_errors[name]


@pytest.mark.wide
def test_types_hold_without_any_other_package() -> None:
    """What a user does not have is not known to mypy; nothing of it may be reported."""
    found = run_mypy("--no-site-packages", "--ignore-missing-imports")
    assert set(found["wrong_convert.py"]) == marked_lines("wrong_convert.py")
    assert set(found["wrong_builders.py"]) == marked_lines("wrong_builders.py")
    assert found["right_convert.py"] == {}


@pytest.fixture(scope="module")
def pyright_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    config = tmp_path_factory.mktemp("pyright") / "pyrightconfig.json"
    settings = {"typeCheckingMode": "standard", "include": [str(SCRIPTS)]}
    config.write_text(json.dumps({**settings, "extraPaths": [str(ROOT)]}), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(config)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = defaultdict(set)
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"]).name].add(each["range"]["start"]["line"] + 1)
    return found


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
def test_pyright_finds_the_mistakes(name: str, pyright_errors: dict[str, set[int]]) -> None:
    assert pyright_errors[name] == marked_lines(name)


@pytest.mark.wide
def test_stubs_are_current() -> None:
    assert [path.name for path in stubs.outdated()] == []


def test_editors_find_documentation() -> None:
    """The stub has that of options; that of functions is where the source imports them from."""
    tree = ast.parse((ROOT / "serde" / "__init__.py").read_text(encoding="utf-8"))
    checked = next(
        node for node in tree.body if isinstance(node, ast.If) and "TYPE" in ast.dump(node.test)
    )
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    found = {alias.name: node.module for node in imports for alias in node.names}
    assert found == {name: getattr(serde, name).__module__ for name in FUNCTIONS}


def test_the_stub_says_shared_options_once() -> None:
    text = (ROOT / "serde" / "__init__.pyi").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 1400
    assert text.count("    minimum_deployment_target: ") == 1
    assert text.count("    input_shapes: ") == 1


FUNCTIONS = [name for name in serde.__all__ if hasattr(getattr(serde, name), "groups")]


def test_functions_with_options_are_these() -> None:
    wanted = [
        "batch",
        "bisect",
        "check",
        "compile",
        "convert",
        "diff",
        "export_model",
        "from_relay",
    ]
    assert sorted(FUNCTIONS) == [
        *wanted,
        "import_model",
        "import_to_gluon",
        "route",
        "to_relay",
        "view",
    ]


@pytest.mark.parametrize("name", first_of(FUNCTIONS, ["check", "to_relay"]))
def test_signature_and_help_name_every_option(name: str) -> None:
    function = getattr(serde, name)
    parameters = inspect.signature(function).parameters
    for group in function.groups():
        for option in group.cls.__dataclass_fields__:
            assert option in parameters
            assert re.search(rf"^ +{option}( \(|: )", function.__doc__, re.MULTILINE), option
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters.values()}


@pytest.mark.wide
def test_help_shows_options_with_type_and_default() -> None:
    text = subprocess.run(
        [sys.executable, "-c", "import serde; help(serde.export_model)"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "opset (int | Literal['auto'], default 17): Version of the default operator set" in text
    assert "Options of writing coreml:" in text


@pytest.mark.wide
def test_options_are_looked_up_only_when_asked_for() -> None:
    code = """
import sys, serde
serde.export_model
assert not [name for name in sys.modules if name.startswith(("serde.onnx", "serde.coreml"))]
serde.export_model.__doc__
assert "serde.onnx" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_is_found_again_by_its_name() -> None:
    import pickle

    assert pickle.loads(pickle.dumps(serde.convert)) is serde.convert
    assert "Convert a model and write it." in inspect.getsource(serde.convert)


@pytest.mark.parametrize(
    ("space", "name"),
    [("", "add"), ("", "const"), ("", "frontend"), ("nn", "conv2d"), ("qnn.op", "quantize"),
     ("image", "resize2d"), ("vision", "roi_align"), ("serde", "lstm"), ("dyn", "reshape")],
)  # fmt: skip
def test_dir_lists_operators(space: str, name: str) -> None:
    found = serde.relay
    for part in filter(None, space.split(".")):
        assert part in dir(found)
        found = getattr(found, part)
    assert name in dir(found)
