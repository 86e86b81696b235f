"""A real Chromium for the tests of pages: what it drew, said and asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import TracebackType

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Chromium: apt-get install chromium chromium-driver"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-default-apps",
    "--disable-extensions",
    "--hide-scrollbars",
    "--mute-audio",
)


class Browser:
    """Chromium with an empty profile, driven through the DevTools protocol."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.quit()

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open the page at a window size and colour scheme, and wait until every chart has been drawn."""
        from selenium.webdriver.support.ui import WebDriverWait

        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.resolve().as_uri())
        WebDriverWait(self.driver, 60).until(
            lambda d: d.execute_script("return document.documentElement.dataset.drawn")
        )

    def command(self, name: str, **values: object) -> dict[str, object]:
        """Send one DevTools command."""
        result: dict[str, object] = self.driver.execute_cdp_cmd(name, values)
        return result

    def ask(self, script: str) -> object:
        """The value of a JavaScript expression in the page."""
        return self.driver.execute_script(f"return {script}")

    def complaints(self) -> list[str]:
        """Warnings and errors on the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """What the page asked for since it was opened: not itself, inline data, or the browser's own start page."""
        sent = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                sent.append(message["params"]["request"]["url"])
        return [
            url
            for url in sent
            if not url.startswith(("data:", "blob:", "chrome:", "chrome-untrusted:")) and url != self.driver.current_url
        ]

    def photograph(self, path: Path) -> None:
        """A PNG of the whole page."""
        import base64

        box = self.command("Page.getLayoutMetrics")["cssContentSize"]
        assert isinstance(box, dict)
        clip = {"x": 0, "y": 0, "width": box["width"], "height": box["height"], "scale": 1}
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(str(shot["data"])))
