"""The documentation site: built without a warning, whole, and read without a network."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import serde
import serde.relay as relay
from serde.bridge.formats import FORMATS, get_bridge
from serde.errors import __all__ as errors
from serde.relay.ir.builders import builder_names
from serde.relay.transform import __all__ as passes

pytest.importorskip("zensical")

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.wide
LOADED = re.compile(
    r"<(?:script|img|iframe|audio|video|source)\b[^>]*\bsrc=[\"']?(https?:[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon))"
    r"[^>]*\bhref=[\"']?(https?:[^\"'\s>]+)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "tools/site/build.py", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def pages(site: Path) -> dict[str, str]:
    found = site.rglob("*.html")
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in found}


def headings(site: Path, name: str) -> set[str]:
    """The texts of the headings of a page of the reference."""
    text = (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
    parts = re.findall(r"<h[23] id=.*?</h[23]>", text, re.DOTALL)
    plain = (
        re.sub(r"<code.*?</code>|<a .*?</a>|<[^>]+>", "", part, flags=re.DOTALL) for part in parts
    )
    return {text.strip().replace("&para;", "").strip() for text in plain}


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    loaded = {name: LOADED.findall(text) for name, text in pages(site).items()}
    assert {name: found for name, found in loaded.items() if found} == {}
    assert len(loaded) > 25


def test_no_mark_of_markdown_or_sphinx_is_left(site: Path) -> None:
    for name, text in pages(site).items():
        shown = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        shown = re.sub(r"<[^>]+>", "", shown)
        assert re.findall(r"\|\s*-{3}|```|:(?:class|func|meth):|\]\(|^::: ", shown, re.M) == [], (
            name
        )


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    shown = headings(site, "functions") | headings(site, "classes")
    modules = {name for name in serde.__all__ if isinstance(getattr(serde, name), ModuleType)}
    names = {f"serde.{name}" for name in {*serde.__all__} - modules - {*errors, "__version__"}}
    for module in modules - {"relay", "target"}:
        names |= {f"serde.{module}.{name}" for name in getattr(serde, module).__all__}
    assert names - shown == set()


def test_every_error_is_in_the_reference(site: Path) -> None:
    classes = {name for name in errors if name[0].isupper()}
    assert classes - headings(site, "errors") == set()


def test_every_pass_is_in_the_reference(site: Path) -> None:
    shown = headings(site, "passes")
    modules = {
        name for name in passes if not hasattr(getattr(relay.transform, name), "__qualname__")
    }
    assert {f"relay.transform.{name}" for name in set(passes) - modules} - shown == set()


def test_every_builder_is_in_the_reference(site: Path) -> None:
    shown = headings(site, "builders")
    assert len(builder_names("nn.")) > 50
    assert set(builder_names("nn.")) - {"internal"} - shown == set()
    assert {"add", "take", "quantize", "resize2d", "gelu"} <= shown


def test_every_option_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "options.html").read_text(encoding="utf-8")
    for bridge in map(get_bridge, FORMATS):
        for options in filter(None, (bridge.import_options, bridge.export_options)):
            for item in dataclasses.fields(options):
                assert f"<code>{item.name}</code></strong>" in text, item.name


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser that finds no host."""
    webdriver = pytest.importorskip("selenium.webdriver")
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--window-size=1400,900",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


RESULTS = "return document.querySelector('.focus-visible').shadowRoot.textContent"
FIRST = "return document.querySelector('.focus-visible').shadowRoot.querySelector('ol a').href"


def search(site: Path, browser: Any, words: str, until: str) -> str:
    """What the search says of words, once it says what is waited for."""
    from selenium.webdriver.common.action_chains import ActionChains

    browser.get((site / "index.html").as_uri())
    browser.find_element("css selector", ".md-search__button").click()
    deadline, found = time.monotonic() + 20, ""
    ActionChains(browser).pause(0.5).send_keys(words).perform()
    while until not in found and time.monotonic() < deadline:
        time.sleep(0.2)
        found = browser.execute_script(RESULTS)
    assert until in found
    assert browser.get_log("browser") == []
    return browser.execute_script(FIRST)


def test_the_search_finds_a_word_without_a_server(site: Path, browser: Any) -> None:
    search(site, browser, "bisect", "serde bisect")


@pytest.mark.parametrize("word", ["quantise", "quantize"])
def test_guides_are_found_first_in_either_spelling(site: Path, browser: Any, word: str) -> None:
    first = search(site, browser, word, "Quantise and shrink")
    assert first.partition("?")[0] == (site / "quantize.html").as_uri()


@pytest.mark.parametrize("name", ["view", "batch"])
def test_guides_show_pictures(site: Path, name: str) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    assert f'src="screenshots/{name}.png"' in pages(site)[f"{name}.html"]
    assert (site / f"screenshots/{name}.png").read_bytes().startswith(b"\x89PNG")
