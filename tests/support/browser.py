"""A page in Chromium without a window: what it shows, what it asks of a network."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--window-size=1400,900"),
)


class Browser:
    """Chromium with a page.

    Attributes:
        driver: What Selenium drives it by.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path) -> None:
        """Open a file."""
        self.driver.get(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int = 900) -> None:
        """Show the page as on a screen of so many points."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Show the page as to somebody who prefers ``light`` or ``dark``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def print(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])

    def faults(self) -> list[str]:
        """Return what the console says of errors and refused scripts since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last time."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; a test is skipped where it is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver")
    binary, service = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or service is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
