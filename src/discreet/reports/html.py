"""A browser of the Chromium family, if one is installed: it prints pages to PDF and
takes pictures of them.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.files import write

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
"""Where browsers are that no path leads to."""
MISSING = (
    "a PDF is printed by a browser, and none was found: install Chromium, Chrome or Edge (on "
    "Debian and Ubuntu: apt install chromium), or open the HTML page in any browser and print it"
)
QUIET = (
    *("--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-extensions", "--disable-sync", "--disable-component-update"),
    "--disable-background-networking",
)
PATIENCE = 120
"""Seconds for a browser to start, load a page and draw it."""
SHEET = "<style>@page{size:A4}</style></head>"


def find_browser() -> str | None:
    """The program, if there is one."""
    there = (place for place in PLACES if os.access(place, os.X_OK))
    return next(filter(None, map(shutil.which, NAMES)), None) or next(there, None)


def require_browser() -> str:
    """The program; refuses before any work is done if there is none."""
    found = find_browser()
    if found is None:
        raise DiscreetError(MISSING)
    return found


def run_browser(program: str, wanted: Sequence[str], result: Path) -> None:
    """Start it with a profile of its own, and end it when the result is there."""
    boxed = not hasattr(os, "geteuid") or os.geteuid() != 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        own = [f"--user-data-dir={profile}", *(() if boxed else ("--no-sandbox",))]
        try:
            done = subprocess.run(
                [program, *QUIET, *own, *wanted], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DiscreetError(f"the browser {program} cannot be used: {error}") from None
    if done.returncode or not result.is_file():
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
        raise DiscreetError(f"the browser {program} made no file; what it says: {said[0][:300]}")


def take_picture(address: str, file: Path, size: str) -> None:
    """A picture of a page, as PNG; `size` is that of the window."""
    program = require_browser()
    wanted = [f"--window-size={size}", "--virtual-time-budget=5000", f"--screenshot={file}"]
    run_browser(program, [*wanted, address], file)


def write_pdf(path: str | Path, page: str) -> None:
    """Write a page of ours as a PDF on A4. The browser reads a copy that only its user
    can read, and asks the network for nothing.
    """
    program = require_browser()
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page.replace("</head>", SHEET, 1), "utf-8")
        wanted = ["--no-pdf-header-footer", f"--print-to-pdf={printed}", source.as_uri()]
        run_browser(program, ["--host-resolver-rules=MAP * ~NOTFOUND", *wanted], printed)
        write(path, printed.read_bytes())
