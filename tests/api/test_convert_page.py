"""The page that converts models in the browser: what it runs, and what its policy lets it do."""

from __future__ import annotations

import functools
import hashlib
import html
import http.server
import json
import os
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.batch_nets import write_net
from support.browser import Browser, chromium

import serde
from serde.command.cli import main

SITE = Path(__file__).parents[2] / "tools" / "site"
# A folder of Pyodide's distribution: NumPy and what else comes from there.
DISTRIBUTION = os.environ.get("PYODIDE_DISTRIBUTION", "")
TARGETS = {"onnx": ".onnx", "mxnet": "-symbol.json", "nnef": ".nnef.tgz", "relay": ".relay"}


def module_at(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


browser = module_at(SITE / "convert" / "browser.py")
converter = module_at(SITE / "converter.py")


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    """The folder of a dropped model, with parameters that belong to another one."""
    write_net(tmp_path / "in" / "net.onnx")
    (tmp_path / "in" / "a.params").write_bytes(b"of another")
    return tmp_path / "in"


def by_command_line(source: Path, target: Path, *flags: str) -> dict[str, bytes]:
    target.parent.mkdir()
    assert main(["convert", str(source), str(target), "--quiet", *flags]) == 0
    return contents(target.parent)


@pytest.mark.parametrize("target", TARGETS)
def test_the_page_writes_what_the_command_line_does(
    dropped: Path, tmp_path: Path, target: str
) -> None:
    found = browser.convert(str(dropped), "net.onnx", target, str(tmp_path / "out"))
    expected = by_command_line(dropped / "net.onnx", tmp_path / "cli" / f"net{TARGETS[target]}")
    assert contents(tmp_path / "out") == expected
    assert found["files"] == sorted(expected)
    assert found["report"].startswith(f"onnx -> {target}: 3 nodes, 15 parameters")


def test_shapes_are_read_as_on_the_command_line(dropped: Path, tmp_path: Path) -> None:
    made = tmp_path / "mx"
    browser.convert(str(dropped), "net.onnx", "mxnet", str(made))
    browser.convert(str(made), "net-symbol.json", "onnx", str(tmp_path / "out"), " x : N , 4 ")
    flags = ("--input-shape", "x:N,4")
    expected = by_command_line(made / "net-symbol.json", tmp_path / "cli" / "net.onnx", *flags)
    assert contents(tmp_path / "out") == expected
    assert b"N" in expected["net.onnx"]


def test_the_model_among_files_is_shown(dropped: Path) -> None:
    found = browser.look(str(dropped))
    assert found["name"] == "net.onnx"
    assert found["page"] == serde.view(dropped / "net.onnx").html


@pytest.mark.parametrize(
    ("name", "content", "shapes", "told"),
    [
        ("net.onnx", b"\x08", "", "net.onnx"),
        ("a.params", b"of another", "", "a.params"),
        ("net.onnx", None, "x:1,,2", "expected a shape, as in data:1,3,224,224"),
        ("net.onnx", None, ":1,2", "expected a shape"),
    ],
)
def test_what_cannot_be_read_is_said(
    tmp_path: Path, name: str, content: bytes | None, shapes: str, told: str
) -> None:
    write_net(tmp_path / name)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert told in browser.look(str(tmp_path), shapes)["refused"]


def test_nothing_is_no_model(tmp_path: Path) -> None:
    assert browser.look(str(tmp_path)) == {"refused": "there is no file"}


def test_a_refused_conversion_is_a_text(dropped: Path, tmp_path: Path) -> None:
    found = browser.convert(str(dropped), "a.params", "onnx", str(tmp_path / "out"))
    assert list(found) == ["refused"]
    assert list((tmp_path / "out").iterdir()) == []


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    facts = f"{name}-1.0.dist-info"
    texts = {
        f"{facts}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{facts}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, **texts}.items():
            archive.writestr(file, text)
    return path


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A folder that looks like Pyodide's own, with a package that lies in a distribution."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    for name in converter.RUNTIME:
        (folder / name).write_text(name)
    sha256 = hashlib.sha256(b"numpy").hexdigest()
    entry = {"name": "numpy", "file_name": "n.whl", "sha256": sha256, "depends": []}
    lock = {"info": {}, "packages": {"numpy": entry}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    return folder


def test_packages_are_those_of_the_lock_file(tmp_path: Path, runtime: Path) -> None:
    (tmp_path / "n.whl").write_bytes(b"numpy")
    own = wheel(tmp_path, "serde_relay", {"serde/__init__.py": ""})
    converter.write_page(tmp_path / "site", runtime, [own], str(tmp_path), ["numpy"])
    place = tmp_path / "site" / "convert" / "pyodide"
    entry = json.loads((place / "pyodide-lock.json").read_text())["packages"]["serde-relay"]
    assert entry["depends"] == ["numpy"]
    assert entry["sha256"] == hashlib.sha256((place / own.name).read_bytes()).hexdigest()
    assert (place / "n.whl").read_bytes() == b"numpy"


@pytest.mark.parametrize("content", [b"another", None])
def test_another_file_is_refused(tmp_path: Path, runtime: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "n.whl").write_bytes(content)
    with pytest.raises(SystemExit, match=r"n\.whl: (is not the one|cannot be had)"):
        converter.write_page(tmp_path / "site", runtime, [], str(tmp_path), ["numpy"])


def test_the_policy_names_no_other_place(tmp_path: Path, runtime: Path) -> None:
    converter.write_page(tmp_path / "site", runtime, [], str(tmp_path), [])
    page = (tmp_path / "site" / "convert.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    words = {word for part in html.unescape(policy).split("; ") for word in part.split()[1:]}
    assert {word for word in words if not word.startswith("'sha256-")} == {
        *("'none'", "'self'", "'wasm-unsafe-eval'", "blob:", "data:")
    }
    for name in re.findall(r'(?:src|href)="([^"#:]+)"', page):
        assert name == "index.html" or (tmp_path / "site" / name).is_file()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "site").mkdir()
    handler = functools.partial(_Quiet, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    return converter.fetch_runtime(tmp_path_factory.mktemp("pyodide"))


def until(page: Browser, script: str, seconds: float = 120) -> Any:
    """What a script returns once that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := page.run(script):
            return found
        time.sleep(0.2)
    raise AssertionError(page.run("return document.body.innerText") + str(page.faults()))


SAID = "const e = document.getElementById('said'); return e.className !== 'busy' && e.innerText"
SHOWN = "return document.getElementById('view').srcdoc"
# What asks for another place, as what runs in the browser's Python might.
ASKS = """
import js
def ask():
    try:
        request = js.XMLHttpRequest.new()
        request.open('GET', 'http://localhost:9/', False)
        request.send()
    except Exception as error:
        return str(error)
    return 'was sent'
"""
# In place of serde, of which NumPy is not among Pyodide's own files.
STAND_IN = """
from pathlib import Path
from types import SimpleNamespace
SerdeError, OptionError, Report = ValueError, ValueError, object
def view(path, **given):
    return SimpleNamespace(html=Path(__file__).with_name('page.html').read_text('utf-8'))
def convert(source, target, target_format, allow):
    Path(target).write_bytes(Path(source).read_bytes()[::-1])
    facts = {'source': 'a', 'target': target_format, 'parameters': 1, 'bytes': 2}
    return SimpleNamespace(facts=facts, nodes=3, allowed=[], notes=[ask()])
"""


def convert_in(page: Browser, address: str, net: Path, folder: Path, target: str) -> Path:
    """Drop a model on the page, have it converted, and return the folder of downloads."""
    behavior = {"behavior": "allow", "downloadPath": str(folder)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    page.driver.get(f"{address}convert.html")
    page.driver.find_element("id", "files").send_keys(str(net))
    until(page, SHOWN)
    page.run("document.getElementById('target').value = arguments[0]", target)
    page.driver.find_element("id", "start").click()
    assert until(page, SAID).startswith("Done")
    links = page.driver.find_elements("css selector", "#made a")
    for link in links:
        link.click()
    names = [link.get_attribute("download") for link in links]
    end = time.monotonic() + 20
    while not all((folder / name).is_file() for name in names):
        assert time.monotonic() < end, names
        time.sleep(0.1)
    return folder


@pytest.mark.slow
def test_the_page_in_chromium(tmp_path: Path, served: str, pyodide: Path) -> None:
    net = write_net(tmp_path / "net.onnx")
    files = {"serde/__init__.py": ASKS + STAND_IN, "serde/page.html": serde.view(net).html}
    own = wheel(tmp_path, "serde_relay", files)
    converter.write_page(tmp_path / "site", pyodide, [own], "", [])
    with chromium() as page:
        found = convert_in(page, served, net, tmp_path / "downloads", "onnx")
        assert contents(found) == {"net.onnx": net.read_bytes()[::-1]}
        assert "Failed to load 'http://localhost:9/'" in page.run(
            "return document.getElementById('report').innerText"
        )
        refused = [each for each in page.faults() if "Loading" not in each and "Loaded" not in each]
        assert len(refused) == 1
        assert "Connecting to" in refused[0]
        assert all(each.startswith((served, "blob:")) for each in page.requests())
        page.driver.switch_to.frame("view")
        assert page.run("return document.querySelectorAll('#nodes > *').length") >= 3


@pytest.mark.slow
@pytest.mark.skipif(not DISTRIBUTION, reason="PYODIDE_DISTRIBUTION names no folder")
def test_numbers_are_those_of_the_command_line(tmp_path: Path, served: str, pyodide: Path) -> None:
    net = write_net(tmp_path / "net.onnx")
    wheels = [converter.fetch_onnx(tmp_path), converter.build_serde(tmp_path)]
    converter.write_page(tmp_path / "site", pyodide, wheels, DISTRIBUTION)
    with chromium() as page:
        found = convert_in(page, served, net, tmp_path / "downloads", "mxnet")
        expected = by_command_line(net, tmp_path / "cli" / "net-symbol.json")
        assert contents(found) == expected
        page.driver.switch_to.frame("view")
        assert page.run("return document.querySelectorAll('#nodes > *').length") >= 3
