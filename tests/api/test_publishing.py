"""What the distribution, its pages and its repository say of themselves agrees and is valid."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import setuptools
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import serde

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
HOME = "https://github.com/serde-relay/serde"
SITE = "https://serde-relay.github.io/serde/"
SCHEMAS = {
    "vendor.citation-file-format": ["CITATION.cff"],
    "vendor.dependabot": [".github/dependabot.yml"],
    "vendor.github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.github-issue-forms": [
        f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature", "numbers", "refused")
    ],
    "vendor.github-workflows": [
        f".github/workflows/{name}.yml" for name in ("docs", "release", "tests")
    ],
    "custom.github-workflows-require-timeout": [
        f".github/workflows/{name}.yml" for name in ("docs", "release", "tests")
    ],
}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    """What setup.py hands to setuptools."""
    found: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", found.update)
        patch.chdir(ROOT)
        runpy.run_path(str(ROOT / "setup.py"))
    return found


def test_one_version_is_told_everywhere() -> None:
    version = serde.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    assert f'\n  version: "{version}"\n' in text("recipe/recipe.yaml")


def test_the_version_has_a_section_of_the_changelog() -> None:
    sections = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert sections[0] == "Unreleased"
    found = re.fullmatch(rf"{re.escape(serde.__version__)} \((\d{{4}}-\d\d-\d\d)\)", sections[1])
    assert found is not None
    assert f"\ndate-released: {found[1]}\n" in text("CITATION.cff")


def test_every_address_is_that_of_the_project(metadata: dict[str, Any]) -> None:
    assert (metadata["url"], metadata["project_urls"]["Documentation"]) == (HOME, SITE)
    named = [ROOT / name for name in ("CITATION.cff", "Dockerfile", "mkdocs.yml", "setup.py")]
    named += [ROOT / "recipe/recipe.yaml", *GITHUB.rglob("*.yml"), *ROOT.glob("*.md")]
    for path in [*named, *(ROOT / "docs").glob("*.md"), ROOT / "tools/site/pages.py"]:
        found = re.findall(r"https://[\w.]*github\.(?:com|io)[^\s)\"'>}]*", path.read_text("utf-8"))
        ours = [each for each in found if "serde-relay" in each]
        assert all(each.startswith((HOME, SITE.rstrip("/"))) for each in ours), path


def test_no_link_of_the_long_description_is_relative(metadata: dict[str, Any]) -> None:
    links = re.findall(r"\]\(([^)]+)\)", metadata["long_description"])
    assert len(links) >= 20
    assert all(link.startswith("https://") for link in links)
    files = [link.removeprefix(f"{HOME}/blob/v{serde.__version__}/") for link in links]
    within = [name.partition("#")[0] for name in files if not name.startswith("https://")]
    assert len(within) >= 20
    assert [name for name in within if not (ROOT / name).is_file()] == []


# Extras for those who work on serde itself, and those whose packages conda-forge does not have.
OURS = {"all", "demo", "dev", "docs", "fuzz", "lint", "test"}
NOT_ON_CONDA = {"mxnet", "nnef", "tflite", "tvm"}


def test_extras_of_the_recipe_are_those_of_the_wheel(metadata: dict[str, Any]) -> None:
    wanted = {
        each.partition(";")[0].replace("torch>", "pytorch>").replace(">=", " >=")
        for extra, requirements in metadata["extras_require"].items()
        if extra not in OURS | NOT_ON_CONDA
        for each in requirements
    }
    recipe = yaml.safe_load(text("recipe/recipe.yaml"))
    constraints = recipe["requirements"]["run_constraints"]
    assert wanted - {"protobuf >=6.31"} <= set(constraints)
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"][1:]}
    assert run == set(metadata["install_requires"])
    (python,) = {line for line in recipe["requirements"]["run"] if line.startswith("python ")}
    bounds = python.removeprefix("python ").replace("${{ python_min }}", "3.10")
    assert SpecifierSet(bounds) == SpecifierSet(metadata["python_requires"])


def pins(name: str) -> dict[str, str]:
    """Return the version that a file of constraints gives each package."""
    lines = re.findall(r"^([\w.-]+)==(\S+)", text(f"constraints/{name}.txt"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in lines}


PYTHONS = [f"3.{minor}" for minor in range(10, 15)]


def test_every_python_is_tested_pinned_and_told(metadata: dict[str, Any]) -> None:
    flow = yaml.safe_load(text(".github/workflows/tests.yml"))
    assert flow["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    told = [
        each.removeprefix("Programming Language :: Python :: ") for each in metadata["classifiers"]
    ]
    assert [each for each in told if each.startswith("3.")] == PYTHONS
    wanted = SpecifierSet(metadata["python_requires"])
    assert [f"3.{minor}" for minor in range(30) if wanted.contains(f"3.{minor}")] == PYTHONS
    assert f"| Python | {PYTHONS[0]} to {PYTHONS[-1]} |" in text("docs/stability.md")
    files = {path.stem for path in (ROOT / "constraints").glob("py*.txt")}
    assert files == {f"py{each.replace('.', '')}" for each in PYTHONS}


@pytest.mark.parametrize("python", PYTHONS)
def test_everything_that_make_installs_is_pinned(python: str, metadata: dict[str, Any]) -> None:
    environment = {"python_version": python, "sys_platform": "linux"}
    found = pins(f"py{python.replace('.', '')}")
    extras = metadata["extras_require"]
    listed = {*metadata["install_requires"], *(each for name in OURS for each in extras[name])}
    for requirement in map(Requirement, listed):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            version = found[re.sub(r"[-_.]+", "-", requirement.name).lower()]
            assert requirement.specifier.contains(version), requirement
    assert {"gluoncv", "gluonnlp", "mxnet"} <= found.keys()


def test_one_release_of_pytorch_is_pinned_for_tests(metadata: dict[str, Any]) -> None:
    (torch,) = (each for each in metadata["extras_require"]["torch"] if each.startswith("torch"))
    wanted = Requirement(torch).specifier
    assert wanted.contains(pins("torch")["torch"])
    assert {each.operator for each in wanted} == {">="}  # What people have, not one release.


def test_targets_install_extras_that_are_there(metadata: dict[str, Any]) -> None:
    named = re.findall(r"-e '\.\[([\w,]+)\]'", text("Makefile"))
    assert {"demo", "dev", "lint", "test"} <= set(named)
    assert {each for names in named for each in names.split(",")} <= metadata[
        "extras_require"
    ].keys()


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("uv", ["", "/usr/bin/uv"])
@pytest.mark.parametrize(
    ("target", "extras"),
    [
        ("demo", ["demo"]),
        ("test", ["demo", "test"]),
        ("lint", ["demo", "docs", "lint"]),
        ("site", ["demo", "docs", "lint", "test", "dev"]),
        ("test-wide", ["demo", "docs", "lint", "test", "dev"]),
    ],
)
def test_a_target_installs_what_it_uses(target: str, extras: list[str], uv: str) -> None:
    command = ["make", "--dry-run", "--always-make", f"PYTHON={sys.executable}", f"UV={uv}", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"-e '\.\[(\w+)\]'", done.stdout) == extras
    installs = [
        line for line in done.stdout.splitlines() if " install " in line and "apt" not in line
    ]
    by = "/usr/bin/uv pip install" if uv else ".venv/bin/python -m pip install"
    assert all(line.startswith(by) and " -c constraints/py3" in line for line in installs)


def test_every_workflow_may_only_read_unless_a_job_says_more() -> None:
    for path in (GITHUB / "workflows").glob("*.yml"):
        flow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert flow["permissions"] == {"contents": "read"}, path
        for name, job in flow["jobs"].items():
            writes = {
                scope for scope, right in job.get("permissions", {}).items() if right != "read"
            }
            assert not writes or name in ("announce", "deploy", "publish"), (path, name)


def test_workflows_call_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", text("Makefile"), re.MULTILINE))
    for path in (GITHUB / "workflows").glob("*.yml"):
        for line in re.findall(r"make PYTHON=python ([\w -]+)", path.read_text(encoding="utf-8")):
            assert set(line.split()) <= targets, path


def test_forms_ask_for_what_inspect_prints() -> None:
    for name in ("bug", "numbers", "refused"):
        assert re.search(r"serde inspect \w+ --json", text(f".github/ISSUE_TEMPLATE/{name}.yml"))


@pytest.mark.wide
@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_github_fit_their_schemas(schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run(
        [*command, *SCHEMAS[schema]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.wide
def test_workflows_give_nothing_away() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [str(zizmor), "--offline", "--no-progress", ".github"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


BUNDLED = json.loads((ROOT / "serde/viewing/assets/bundled.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("facts", BUNDLED, ids=[each["name"] for each in BUNDLED])
def test_what_is_bundled_is_what_its_facts_say(facts: dict[str, str]) -> None:
    folder = ROOT / "serde/viewing/assets"
    found = hashlib.sha256((folder / facts["file"]).read_bytes()).hexdigest()
    assert found == facts["sha256"]
    assert f'"{facts["version"]}"' in (folder / facts["file"]).read_text(encoding="utf-8")
    assert (folder / facts["license_file"]).exists()
    assert facts["version"] in facts["source"]


def test_every_minified_script_has_its_facts() -> None:
    scripts = {path.name for path in (ROOT / "serde").rglob("*.min.js")}
    assert scripts == {each["file"] for each in BUNDLED}


def test_what_builds_a_release_is_pinned_by_hash_and_as_elsewhere() -> None:
    text = (ROOT / "constraints/release.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^(\S+==\S+) \\\n    --hash=sha256:[0-9a-f]{64}", text, flags=re.MULTILINE)
    assert len(pins) == text.count("==")
    known = (ROOT / "constraints/py311.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    assert [pin for pin in pins if pin not in known] == []


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda p: p.stem)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    uses = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert uses
    assert [each for each in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)] == []
