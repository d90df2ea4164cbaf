"""Pages in a browser: what they draw, how they answer, and that they ask for nothing."""

import base64
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from support import view_models
from support.browser import Browser, chromium

import serde

CARDS = """
return [...drawing.boxes.values()].filter((box) => box.kind === "card")
  .map(({ id, x, y, width, height }) => ({ id, x, y, width, height }));
"""
TEXTS_OUTSIDE = """
const found = [];
for (const card of document.querySelectorAll(".card")) {
  const frame = card.querySelector(".frame").getBoundingClientRect();
  for (const text of card.querySelectorAll("text")) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
      found.push(text.textContent);
  }
}
return found;
"""
EDGES_APART = """
// Edges whose ends do not touch the border of a box, a port or the head of a container.
const ends = (item) => [item.edge.first, item.edge.last]
  .map(({ x, y }) => [x + item.left, y + item.top]);
const touches = ([x, y], box) => x >= box.x - 1 && x <= box.x + box.width + 1 &&
  [box.y, box.y + box.height, box.y + HEADER].some((border) => Math.abs(border - y) < 1.5);
const boxes = [...drawing.boxes.values()];
return drawing.items.filter((item) => item.kind === "edge")
  .filter((item) => !ends(item).every((end) => boxes.some((box) => touches(end, box)))).length;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


Opened = Callable[..., Any]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens the page of models; what it asks for and complains of is judged at the end."""
    shown = []

    def open_page(*models: Path, **options: Any) -> Any:
        page = tmp_path / "page.html"
        serde.view(*models, path=page, **options)
        browser.faults()
        browser.requests()
        browser.open(page)
        shown.append(page)
        return browser.driver

    yield open_page
    for page in shown:
        assert browser.requests() == [page.as_uri()]
        assert browser.faults() == []


def run(driver: Any, script: str) -> Any:
    return driver.execute_script(script)


def overlapping(cards: list[dict[str, float]]) -> list[tuple[float, float]]:
    """Pairs of cards that lie on each other."""
    return [
        (a["id"], b["id"])
        for place, a in enumerate(cards)
        for b in cards[place + 1 :]
        if a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    ]


def test_a_small_graph_is_drawn_whole(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 2))
    cards = run(driver, CARDS)
    assert len(cards) == 10
    assert overlapping(cards) == []
    assert run(driver, TEXTS_OUTSIDE) == []
    assert run(driver, EDGES_APART) == 0
    shown = driver.find_element("id", "nodes").get_attribute("textContent")
    assert "MatMul_0" in shown
    assert "float32 8\N{MULTIPLICATION SIGN}8" in shown


def test_repeated_layers_unfold_on_a_click(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 50, scoped=True))
    folded = driver.find_element("css selector", ".card.g-repeat")
    assert "\N{MULTIPLICATION SIGN}50" in folded.get_attribute("textContent")
    folded.find_element("css selector", ".frame").click()
    assert run(driver, "return document.querySelectorAll('.box.g-repeat').length") == 1
    inside = run(driver, CARDS)
    assert len(inside) > 50
    assert overlapping(inside) == []
    assert run(driver, EDGES_APART) == 0
    assert "boxes alike" in driver.find_element("id", "panel").text
    run(driver, "foldAll()")
    assert len(run(driver, CARDS)) < 10


def test_branches_stand_inside_their_node(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.branches(tmp_path / "net.onnx"))
    titles = [each.text for each in driver.find_elements("css selector", ".box > .title")]
    assert titles == ["If", "then", "else"]
    assert run(driver, EDGES_APART) == 0
    assert overlapping(run(driver, CARDS)) == []


def test_search_finds_unfolds_and_selects(opened: Opened, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = opened(view_models.chain(tmp_path / "net.onnx", 50, scoped=True))
    query = driver.find_element("id", "query")
    query.send_keys("layer33/rel")
    hits = driver.find_elements("css selector", "#hits [role=option]")
    assert [each.text.split() for each in hits] == [["Relu", "layer33/Relu"]]
    query.send_keys(Keys.ENTER)
    panel = driver.find_element("id", "panel").text
    assert "layer33/Relu" in panel
    assert run(driver, "return drawing.boxes.has(view.selected)") is True
    selected = driver.find_element("css selector", ".card.selected")
    stage = driver.find_element("id", "stage").rect
    assert stage["y"] <= selected.rect["y"] <= stage["y"] + stage["height"]


def test_keys_follow_edges_and_unfold(opened: Opened, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = opened(view_models.chain(tmp_path / "net.onnx", 50, scoped=True))
    run(driver, "stage.focus()")
    said = driver.find_element("id", "said")

    def press(*keys: str) -> str:
        ActionChains(driver).send_keys(*keys).perform()
        return said.get_attribute("textContent")

    assert press(Keys.HOME).startswith("input, x")
    assert "layer0" in press(Keys.ARROW_DOWN)
    run(driver, "select(shownFor(models[0].search('layer40/Relu')[0]))")
    assert press(Keys.ENTER).endswith("unfolded")
    assert press(Keys.ENTER).endswith("folded")
    press(Keys.ESCAPE)
    assert run(driver, "return view.selected") == -1
    press("/")
    assert run(driver, "return document.activeElement.id") == "query"


def test_a_click_marks_what_is_read_and_what_reads(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 2))
    run(driver, "go(models[0].search('Add_0')[0])")
    marks = run(driver, "return [...drawing.marks.values()].sort()")
    assert marks == ["after", "before", "before"]
    panel = driver.find_element("id", "panel").text
    assert "Relu_0" in panel
    assert "Tanh_0" in panel


def test_a_weight_shows_its_figures_and_histogram(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 1))
    run(driver, "go(models[0].search('MatMul_0')[0])")
    panel = driver.find_element("id", "panel")
    assert "float32 8\N{MULTIPLICATION SIGN}8" in panel.text
    assert "256 bytes" in panel.text
    assert len(panel.find_elements("css selector", ".bars rect")) > 10


def test_gaps_are_marked_and_listed(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.with_gap(tmp_path / "net.onnx"))
    assert [e.text for e in driver.find_elements("css selector", ".k-unknown .title")] == [
        "corp.Gate"
    ]
    panel = driver.find_element("id", "panel")
    assert "operators of the domain 'corp' are not read" in panel.text
    panel.find_element("css selector", ".issue .link").click()
    assert run(driver, "return models[0].name(view.selected)") == "gate_1"


def test_two_models_are_coloured_by_verdict_and_linked(opened: Opened, tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "left.onnx", 3)
    right = view_models.chain(tmp_path / "right.onnx", 3, changed=1)
    driver = opened(left, right, dims={"N": 4})
    names = [e.text for e in driver.find_elements("css selector", "#names button")]
    assert names == ["left.onnx", "right.onnx"]
    at_fault = driver.find_elements("css selector", ".card.v-fault")
    assert [e.find_element("css selector", ".text").text for e in at_fault] == ["MatMul_1"]
    run(driver, "go(models[0].search('MatMul_1')[0])")
    panel = driver.find_element("id", "panel")
    assert "at fault" in panel.text
    assert "8 elements differ" in panel.text
    panel.find_element("xpath", "//tr[th[contains(., 'in right.onnx')]]//button").click()
    assert run(driver, "return [view.number, models[1].name(view.selected)]") == [1, "MatMul_1"]


def test_a_switch_shows_the_operators_of_relay(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.passing(tmp_path / "net.onnx"))
    panel = driver.find_element("id", "panel")
    titles = "return [...document.querySelectorAll('.card .title')].map((e) => e.textContent)"
    assert {"Conv", "Identity", "Dropout"} < set(run(driver, titles))
    run(driver, "go(models[0].search('conv')[0])")
    assert "The convolution operator consumes an input tensor" in panel.text
    assert "nn.bias_add" in panel.text
    driver.find_element("id", "relay").click()
    assert {"nn.conv2d", "nn.bias_add", "add"} < set(run(driver, titles))
    assert "Conv" not in run(driver, titles)
    assert run(driver, "return models[0].name(view.selected)") == "conv"
    driver.find_element("id", "relay").click()
    assert "Conv" in run(driver, titles)
    assert run(driver, EDGES_APART) == 0


def test_there_is_no_switch_where_the_file_is_relay(opened: Opened, tmp_path: Path) -> None:
    serde.convert(view_models.chain(tmp_path / "net.onnx", 1), tmp_path / "net.relay")
    driver = opened(tmp_path / "net.relay")
    assert not driver.find_element("id", "relay").is_displayed()


def test_the_drawing_is_saved_whole_as_svg_and_png(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 6))
    run(driver, "drawing.move(0, -1e6); drawing.draw()")
    tree = ET.fromstring(run(driver, "return new Picture(drawing).svg()"))
    texts = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"Tanh_{i}" for i in range(6)} < set(texts)
    attributes = {value for each in tree.iter() for value in each.attrib.values()}
    assert not [value for value in attributes if "var(" in value or "url(" in value]
    size = int(tree.attrib["width"]), int(tree.attrib["height"])
    url = run(driver, "return new Picture(drawing).canvas().toDataURL()")
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape[:2] == (2 * size[1], 2 * size[0])
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10
    assert pixels[0, 0].tolist() == [0xF6, 0xF7, 0xF9]  # the page's ground


def test_colours_of_the_legend_differ(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 1))
    found = run(
        driver,
        "const tones = [...document.styleSheets[0].cssRules].map((e) => e.selectorText ?? '')"
        ".filter((e) => e.startsWith('.c-')).map((e) => e.split(',')[0].slice(1));"
        "const dot = document.body.appendChild(make('span'));"
        "return tones.map((name) => { dot.className = name;"
        "return [name, solid(getComputedStyle(dot).getPropertyValue('--tone'))]; })",
    )
    assert len(found) > 12
    colours = {name: np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for name, c in found}
    apart = {(a, b): np.abs(colours[a] - colours[b]).sum() for a in colours for b in colours}
    assert {pair for pair, distance in apart.items() if distance < 60} == {(a, a) for a in colours}


def test_rows_of_the_comparison_lead_to_nodes(opened: Opened, tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "left.onnx", 3)
    right = view_models.chain(tmp_path / "right.onnx", 3, changed=1)
    driver = opened(left, right, dims={"N": 4})
    for text, name in [("m1", "MatMul_1"), ("w1", "MatMul_1")]:
        run(driver, "select(-1)")
        row = f"//table[@class='wide']//td[1]/button[.='{text}']"
        driver.find_element("xpath", row).click()
        assert run(driver, "return models[0].name(view.selected)") == name


def test_on_a_phone_the_details_start_closed(
    opened: Opened, browser: Browser, tmp_path: Path
) -> None:
    browser.resize(390, 844)
    try:
        driver = opened(view_models.chain(tmp_path / "net.onnx", 2))
        panel = driver.find_element("id", "panel")
        assert not panel.is_displayed()
        assert driver.find_element("id", "stage").rect["height"] > 600
        driver.find_element("id", "aside").click()
        assert panel.is_displayed()
        assert run(driver, "return document.documentElement.scrollWidth") <= 390
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_names_stay_text(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.hostile(tmp_path / "net.onnx"))
    assert run(driver, "return window.broken") is None
    assert len(run(driver, CARDS)) == 8
    assert run(driver, TEXTS_OUTSIDE) == []
    run(driver, "select(models[0].search('</script>')[0])")
    assert "</script><script>" in driver.find_element("id", "panel").text
    assert run(driver, "return document.images.length") == 0


def test_the_policy_lets_no_request_through(
    opened: Opened, browser: Browser, tmp_path: Path
) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 1))
    driver.set_script_timeout(10)
    outcome = driver.execute_async_script(
        "const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'), "
        "(error) => done(String(error)));"
    )
    assert "Failed to fetch" in outcome
    refusals = browser.faults()
    assert all("Content Security Policy" in each for each in refusals)
    assert refusals != []


@pytest.mark.parametrize("size", [(420, 800), (1000, 700)])
def test_a_narrow_window_shows_graph_and_details(
    opened: Opened, tmp_path: Path, size: tuple[int, int]
) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 2))
    before = driver.get_window_size()
    driver.set_window_size(*size)
    try:
        stage, panel = (driver.find_element("id", each).rect for each in ("stage", "panel"))
        assert min(stage["width"], stage["height"], panel["width"], panel["height"]) > 150
        wide = run(driver, "return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0
    finally:
        driver.set_window_size(before["width"], before["height"])


def test_light_and_dark(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 1))
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = run(driver, colour)
    driver.find_element("id", "theme").click()
    assert run(driver, colour) != before


@pytest.mark.slow
def test_twenty_thousand_nodes_open_and_answer(opened: Opened, tmp_path: Path) -> None:
    driver = opened(view_models.chain(tmp_path / "net.onnx", 5_000))
    assert run(driver, "return models[0].count") == 20_002
    assert int(run(driver, "return document.documentElement.dataset.ready")) < 8_000
    assert run(driver, "return document.querySelectorAll('#scene *').length") < 5_000
    timed = "const t = performance.now(); {}; return performance.now() - t"
    assert run(driver, timed.format("models[0].search('tanh_4999')")) < 2_000
    assert run(driver, timed.format("go(models[0].search('tanh_4999')[0])")) < 4_000
    assert run(driver, timed.format("unfoldLevel()")) < 8_000
    assert overlapping(run(driver, CARDS)) == []
