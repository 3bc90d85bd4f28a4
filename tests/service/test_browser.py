"""The browser of the tests: what goes wrong in a page unseen fails a test."""

import asyncio
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Started

HANDED_IN = """() => {
  const script = document.createElement("script");
  script.textContent = "document.title = 'changed'";
  document.head.append(script);
}"""
FROM_ELSEWHERE = """() => {
  const script = document.createElement("script");
  script.src = "https://127.0.0.1:1/there.js";
  document.head.append(script);
}"""
UNSEEN = "() => { setTimeout(() => { throw new Error('unseen'); }); }"


@pytest.mark.parametrize(
    "code", [HANDED_IN, FROM_ELSEWHERE, UNSEEN], ids=["handed in", "from elsewhere", "unseen"]
)
def test_what_goes_wrong_in_a_page_is_seen(browser: Started, scripts: str, code: str) -> None:
    words = "unseen" if code == UNSEEN else "Content Security Policy"
    with pytest.raises(AssertionError, match=words):
        go_wrong(browser, scripts, code, "pageerror" if code == UNSEEN else "console")


def go_wrong(browser: Started, scripts: str, code: str, event: Any) -> None:
    """Run this in a page until the browser has told that something went wrong."""
    with browser.page() as page:
        page.goto(scripts)
        with page.expect_event(event):
            page.evaluate(code)


def title(browser: Started, scripts: str) -> str:
    """The title of a page."""
    with browser.page() as page:
        page.goto(scripts)
        return page.title()


def test_other_tests_can_run_loops_of_their_own(browser: Started, scripts: str) -> None:
    assert title(browser, scripts) == "empty"
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"
    assert title(browser, scripts) == "empty"


def test_a_missing_browser_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert browsers.missing() == "no chromium is installed"
