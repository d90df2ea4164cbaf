"""The page of a batch: its figures, its table in a browser, and names that would break it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.batch_outcomes import many_outcomes, real_outcomes
from support.browser import Browser, chromium

import serde.fleet.batching.page_data
from serde.fleet.batching.html import write_html
from serde.fleet.batching.records import Outcome, Settings

FIRST, SECOND = "1\N{EN DASH}100 of 5,000", "101\N{EN DASH}200 of 5,000"
SETTINGS = Settings(to="mxnet", out="s3://store/out")
HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "</style><img src=x onerror='window.hacked = 2'>",
    '"><svg onload="window.hacked = 3">',
    "<!--<script>",
    "]]>&lt;b&gt;&amp;",
    "javascript:window.hacked=4//${window.hacked=5}`",
    "evil\u202exnno.ten\u2066\u200f",
    "line\u2028break\u2029\x00\x1b[31m\x7f",
    "\udcff\ud800 not in any encoding",
)


class Tags(HTMLParser):
    """The elements of a page, their attributes and what stands in scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, list[str]] = {}
        self.shown: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.contents.setdefault(self._inside, []).append(data)
        else:
            self.shown.append(data)

    @property
    def data(self) -> dict[str, list]:
        """What the script reads."""
        return json.loads(self.contents["script"][0])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return list(many_outcomes(tmp_path_factory.mktemp("many"), 5000))


def page_of(outcomes: list[Outcome], path: Path) -> str:
    write_html(path, outcomes, settings=SETTINGS)
    return path.read_text(encoding="utf-8")


def hostile(folder: Path) -> list[Outcome]:
    """Outcomes in which each text that a file brings would like to be more than text."""
    found = []
    gate = real_outcomes(folder)["gate"]
    for place, text in enumerate(HOSTILE):
        report = {
            **gate.report,
            "title": text,
            "issues": [{"op": text, "node": text, "reason": text, "hint": text}],
            "notes": [text],
            "verdicts": [{**VERDICT, "output": text, "remark": text}],
            "engines": (text, text),
            "accuracy": [{"output": text, "passed": False, "before": NEAR, "after": NEAR}],
        }
        outcome = replace(gate, name=f"{place}{text}", sources=(text,), target=text, error=text)
        found.append(replace(outcome, worker=text, report=report))
    return found


VERDICT = {
    **{"informative": True, "passed": False, "max_abs": float("nan"), "max_rel": float("inf")},
    **{"cosine": 0.5, "shapes": ((1,), (1,)), "dtypes": ("float32", "float32")},
}
NEAR = {"cosine": 0.9, "worst_cosine": 0.8, "snr": float("inf"), "error": 0.1, "agreement": None}


@pytest.mark.wide
def test_nothing_is_fetched(many: list[Outcome], tmp_path: Path) -> None:
    page = Tags(page_of(many, tmp_path / "page.html"))
    fetching = {"src", "href", "action", "data", "srcset", "poster", "background", "formaction"}
    for _, attributes in page.tags:
        for name in fetching & set(attributes):
            assert attributes[name] == "data:,"
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert "@import" not in page.contents["style"][0]
    assert "url(" not in page.contents["style"][0]


def test_a_policy_forbids_all_but_its_own_script(many: list[Outcome], tmp_path: Path) -> None:
    page = Tags(page_of(many, tmp_path / "page.html"))
    (policy,) = (a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; ")
    for kind, content in (
        ("style", page.contents["style"][0]),
        ("script", page.contents["script"][1]),
    ):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_figures_are_those_of_the_outcomes(tmp_path: Path) -> None:
    found = real_outcomes(tmp_path)
    for kind, fields in (("small", {"passed": True}), ("deep", {"informative": False})):
        report = {**found[kind].report, "verdicts": [{**VERDICT, "output": "y", **fields}]}
        found[kind] = replace(found[kind], report=report)
    outcomes = [*found.values()]
    page = Tags(page_of(outcomes, tmp_path / "page.html"))
    text = " ".join(" ".join(page.shown).split())
    assert "serde batch: 9 models to mxnet" in text
    assert "models 9" in text
    assert "done 3 " in text
    assert "failed 6" in text
    assert "5 models are refused for 4 operators" in text
    # Gate stops gate, both and warp; RoiPool pool, both and warp; Warp warp and sort.
    lines = re.findall(r"(acme\.\w+) onnx -> relay (\d+) (\d+) (\d+)", text)
    rows = {line[0]: line for line in reversed(lines)}
    assert rows["acme.Gate"][1:] == ("3", "1", "3")
    assert rows["acme.RoiPool"][1:] == ("3", "1", "4")
    assert rows["acme.Warp"][1:] == ("2", "0", "2")
    assert rows["acme.BitonicSort"][1:] == ("1", "0", "1")
    assert "Outputs of source and target: 1 agrees, 0 differs, 1 says nothing." in text
    assert len(page.data["rows"]) == 9


@pytest.mark.wide
def test_the_same_outcomes_give_the_same_page(many: list[Outcome], tmp_path: Path) -> None:
    assert page_of(many, tmp_path / "a.html") == page_of(many, tmp_path / "b.html")


def test_no_outcome_is_a_page_too(tmp_path: Path) -> None:
    assert Tags(page_of([], tmp_path / "page.html")).data["rows"] == []


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    names = hostile(tmp_path)
    text = page_of(names, tmp_path / "page.html")
    calm = page_of([replace(o, name="n", error="e") for o in names[:1]], tmp_path / "calm.html")
    page = Tags(text)
    assert {tag for tag, _ in page.tags} - {tag for tag, _ in Tags(calm).tags} <= {"br"}
    assert len(page.contents["script"]) == 2
    assert not re.search("[\u2028\u2029\u202e\u2066\u200f\x00\x1b\x7f]", text)
    names = [row[0] for row in page.data["rows"]]
    assert names[0] == f"0{HOSTILE[0]}"
    assert names[6] == r"6evil\u202exnno.ten\u2066\u200f"


def test_what_failed_comes_first_where_there_is_no_room(
    many: list[Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde.fleet.batching.page_data, "MODELS", 2000)
    text = page_of(many, tmp_path / "page.html")
    rows = Tags(text).data["rows"]
    assert len(rows) == 2000
    assert sum(row[1] != "done" for row in rows) == sum(o.status != "done" for o in many)
    assert "3,000 models are not in this table" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, many: list[Outcome], tmp_path: Path) -> Browser:
    write_html(tmp_path / "page.html", many, settings=SETTINGS)
    browser.requests()
    browser.resize(1200)
    browser.open(tmp_path / "page.html")
    return browser


def rows(page: Browser) -> list[list[str]]:
    script = """
        return [...document.querySelectorAll("#models tbody > tr:not(.details)")].map(
            (row) => [...row.cells].map((cell) => cell.textContent));
    """
    return page.run(script)


def choose(page: Browser, element: str, value: str, event: str = "input") -> float:
    """Put a value into a field; return the seconds until the table is there again."""
    script = """
        const [id, value, event] = arguments, field = document.getElementById(id);
        const start = performance.now();
        field.value = value;
        field.dispatchEvent(new Event(event));
        document.body.getBoundingClientRect();
        return (performance.now() - start) / 1000;
    """
    return page.run(script, element, value, event)


@pytest.mark.wide
def test_5000_models_are_searched_sorted_and_paged(page: Browser, many: list[Outcome]) -> None:
    assert page.faults() == []
    assert [url for url in page.requests() if not url.startswith(("file:", "data:"))] == []
    assert page.run("return document.getElementById('count').textContent") == FIRST
    assert len(rows(page)) == 100
    page.run("document.getElementById('next').click()")
    assert page.run("return document.getElementById('count').textContent") == SECOND
    choose(page, "search", "net-0123")
    assert {row[0] for row in rows(page)} == {o.name for o in many if "net-0123" in o.name}
    choose(page, "search", "")
    choose(page, "status", "crashed", "change")
    assert {row[1] for row in rows(page)} == {"crashed"}
    choose(page, "status", "", "change")
    page.run("document.querySelector('th[data-column=seconds] button').click()")
    slowest = sorted((o.seconds for o in many), reverse=True)[:100]
    shown = [float(row[3].removesuffix(" s")) for row in rows(page)]
    assert shown == pytest.approx(slowest, abs=0.006)
    page.run("document.querySelector('button[data-operator=\"acme.Warp\"]').click()")
    warps = sum(any(i["op"] == "acme.Warp" for i in o.report.get("issues", ())) for o in many)
    of = f"of {warps}"
    assert page.run("return document.getElementById('count').textContent").endswith(of)


@pytest.mark.wide
def test_a_model_opens(page: Browser) -> None:
    choose(page, "search", "net-00002.onnx")
    page.run("document.querySelector('#models tbody button').click()")
    text = page.run("return document.querySelector('#models .details').innerText")
    assert "acme.Gate" in text
    assert "operators of the domain 'acme' are not read" in text
    assert "gate_1" in text
    page.run("document.querySelector('#models tbody button').click()")
    assert page.run("return document.querySelector('#models .details')") is None


@pytest.mark.wide
def test_5000_models_stay_quick(page: Browser) -> None:
    assert choose(page, "search", "gate") < 1
    assert choose(page, "search", "net-01") < 1
    load = "return performance.getEntriesByType('navigation')[0].domComplete / 1000"
    assert page.run(load) < 5


@pytest.mark.wide
@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_sticks_out_at_any_width(page: Browser, width: int) -> None:
    page.resize(width)
    page.run("document.querySelector('#models tbody button').click()")
    assert page.run("return document.scrollingElement.scrollWidth") <= width


@pytest.mark.wide
def test_light_and_dark_and_print(page: Browser) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        shades[scheme] = page.run(
            "const style = getComputedStyle(document.body);"
            "return [style.backgroundColor, style.color].map((c) => c.match(/\\d+/g).map(Number))"
        )
    assert min(shades["light"][0]) > 240 > 100 > max(shades["light"][1])
    assert max(shades["dark"][0]) < 60 < 150 < min(shades["dark"][1])
    assert page.print().startswith(b"%PDF-")


@pytest.mark.wide
def test_hostile_names_do_nothing_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    write_html(tmp_path / "page.html", hostile(tmp_path), settings=SETTINGS)
    browser.faults()
    browser.open(tmp_path / "page.html")
    for place in range(len(HOSTILE)):
        browser.run("document.querySelectorAll('#models .link')[arguments[0]].click()", place)
    shown = browser.run("return document.querySelector('#models .details').innerText")
    assert "not good enough" in shown
    browser.run("document.querySelectorAll('button[data-operator]').forEach((b) => b.click())")
    time.sleep(0.2)
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.faults() == []
