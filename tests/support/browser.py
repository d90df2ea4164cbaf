"""A headless Chromium that opens pages, and what is asked of one."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def is_there() -> bool:
    """Whether Chromium and what drives it are installed."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return False
    return bool(_chromium() and shutil.which("chromedriver"))


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser(folder: Path, width: int = 1400, height: int = 900) -> Iterator[Any]:
    """Yield a browser with a profile of its own in `folder`, and end it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _chromium()
    for flag in (*FLAGS, f"--user-data-dir={folder}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: Any, path: Path) -> None:
    """Open a page and forget what was logged before."""
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(path.as_uri())


def requests(driver: Any) -> list[str]:
    """Addresses that were asked for since :func:`show`."""
    messages = [json.loads(each["message"])["message"] for each in driver.get_log("performance")]
    return [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    ]


def complaints(driver: Any) -> list[str]:
    """What the page wrote to the console since :func:`show`."""
    return [each["message"] for each in driver.get_log("browser")]
