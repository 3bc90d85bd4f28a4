"""Pages in a real browser: a trial from its plan to its public page, on a phone too."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from discreet import Trial
from discreet.service import planner
from tests.support.live import serving
from tests.support.visitors import Service, service

pytest.importorskip("tests.support.browser")
LONG = "x" * 120
"""A name that no line can be broken in."""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LOOK_NOW = "document.dispatchEvent(new Event('visibilitychange'))"
COLOURS = """() => {
  const link = document.body.appendChild(document.createElement("a"));
  link.href = "/elsewhere";
  const { color, backgroundColor } = getComputedStyle(document.body);
  return [color, backgroundColor, getComputedStyle(link).color];
}"""
"""Of a page: ink, paper, and links."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path) as made:
        yield made


@pytest.fixture
def address(place: Service) -> Iterator[str]:
    with serving(place) as found:
        yield found


def log_in(place: Service, page: Any, address: str, role: str = "manager") -> None:
    """By a login link."""
    _, token = place.home.tokens.make(f"a {role}", role, "a test")
    code = place.home.tokens.make_code(token)
    page.goto(f"{address}/login#{code}")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{address}/")
    assert code not in page.content()


def test_an_operator_plans_starts_pauses_and_publishes(
    place: Service, address: str, page: Any
) -> None:
    log_in(place, page, address)
    page.get_by_role("link", name="Plan a new trial").click()
    plan = page.locator("#plan")
    plan.get_by_text("participants on average").first.wait_for(timeout=240_000)
    before = plan.locator(".answer li").first.inner_text()
    assert plan.locator("svg").count() >= 2
    page.set_viewport_size({"width": 1200, "height": 800})
    page.get_by_label("Maximum number of participants").fill("800")
    plan.get_by_text("Power: at the target").wait_for()
    cut = "all => all.map(e => e.scrollWidth - e.clientWidth)"
    assert set(plan.locator(".scroll").evaluate_all(cut)) == {0}
    page.get_by_label("Target difference").fill("30")
    page.wait_for_function(
        "before => ![...document.querySelectorAll('.answer li')].some(e => e.innerText === before)",
        arg=before,
    )
    page.get_by_label("Name of the trial").fill("Dose <1>")
    page.get_by_label("Maximum number of participants").fill("800")
    page.get_by_role("button", name="Review").click()
    assert "Start Dose <1>?" in page.locator("h1").inner_text()
    page.get_by_role("button", name="Start the trial").click()
    assert page.locator("h1").inner_text() == "Dose <1>"
    for action, state in (("Pause", "paused"), ("Resume", "running")):
        page.get_by_role("link", name="Manage").click()
        page.get_by_role("link", name=action, exact=True).click()
        page.get_by_label("Reason").fill("Snow on the roads.")
        page.get_by_role("button", name=action).click()
        assert page.locator(".badge").first.inner_text() == state
    page.get_by_role("link", name="Manage").click()
    page.get_by_role("link", name="Publish it").click()
    page.get_by_role("button", name="Publish it").click()
    page.get_by_role("link", name="its public page").click()
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{address}/p/{quote('Dose <1>', safe='')}")
    assert "Snow on the roads." in page.locator("main").inner_text()
    assert page.get_by_role("link", name="Manage").count() == 0


def test_a_note_goes_with_what_it_is_about(
    place: Service, address: str, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "warm", lambda: None)
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: False)
    log_in(place, page, address)
    page.goto(f"{address}/new")
    page.evaluate("document.getElementById('days').open = true")
    page.locator("#arms").fill("one")
    page.get_by_label("First day of enrolment").fill("2027-03-01")
    page.locator("input[name=release][value=scheduled]").check()
    # The console would note that the form was refused, and fail the test.
    page.route("**/new", lambda route: route.fulfill(response=route.fetch(), status=200))
    page.get_by_role("button", name="Review").click()
    page.locator("#name-wrong").wait_for()
    notes = {name: page.locator(f"#{name}-wrong") for name in ("name", "arms", "release", "start")}
    fields = {name: page.locator(f"#{name}") for name in ("name", "arms", "start")}
    fields["release"] = page.locator("#field-release")
    at_top = page.locator("#some-wrong")

    def seen() -> set[str]:
        """Which notes there are, for eyes and for screen readers alike."""
        for name, note in notes.items():
            about = (fields[name].get_attribute("aria-describedby") or "").split()
            assert note.is_visible() == (f"{name}-wrong" in about)
            if name != "release":
                assert note.is_visible() == (fields[name].get_attribute("aria-invalid") == "true")
        found = {name for name, note in notes.items() if note.is_visible()}
        assert (
            at_top.is_visible() == bool(found)
            or page.locator("#max_participants-wrong").is_visible()
        )
        return found

    assert seen() == {"name", "arms", "release", "start"}
    assert page.evaluate("document.activeElement.id") == "name"
    fields["arms"].fill("one\ntwo")
    assert seen() == {"name", "release", "start"}
    fields["name"].fill(" ")
    assert "name" in seen()
    fields["name"].fill("dose")
    assert "name" not in seen()
    fields["name"].fill("")
    assert "name" in seen()
    fields["name"].fill("dose")
    page.get_by_label("Enrolment rate").fill("12")  # the day needs it
    page.locator("#accrual-read").get_by_text("Read as 12 participants a day").wait_for()
    notes["start"].wait_for(state="hidden")
    assert seen() == {"release"}
    page.get_by_label("Enrolment rate").fill("")
    notes["start"].wait_for()
    assert page.locator("#accrual-read").inner_text() == ""
    fields["start"].fill("")
    page.locator("input[name=release][value=complete]").check()
    assert seen() == set()
    assert at_top.is_visible()
    page.get_by_label("Maximum number of participants").fill("500")
    assert not at_top.is_visible()


def test_a_page_shows_what_changes_and_keeps_what_is_under_way(
    place: Service, address: str, page: Any
) -> None:
    place.trial("dose")
    log_in(place, page, address)
    page.goto(f"{address}/t/dose")
    page.locator("#verify").focus()
    made = Trial.open(place.url, "dose")
    made.manage("pause", "Snow on the roads.")
    made.close()
    page.evaluate(LOOK_NOW)
    page.locator("#news").get_by_text("Changed just now: paused").wait_for()
    assert page.locator(".badge").first.inner_text() == "paused"
    assert page.locator("#record + p ~ table").get_by_text("Snow on the roads.").count() == 1
    assert page.evaluate("document.activeElement.id") == "verify"


def test_the_head_of_a_page_follows_the_state_of_the_trial(
    place: Service, address: str, page: Any
) -> None:
    place.trial("dose")
    log_in(place, page, address)
    page.goto(f"{address}/t/dose")
    loads: list[str] = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    enrol = page.get_by_role("link", name="Enrol participants and record outcomes")
    publish = page.get_by_role("link", name="publish it")
    assert (enrol.count(), publish.count()) == (1, 0)
    page.locator("#verify").click()
    page.locator("#verified").get_by_text("The record holds").wait_for()
    page.get_by_role("link", name="Manage").focus()
    made = Trial.open(place.url, "dose")
    made.manage("stop", "No money.")
    made.close()
    page.evaluate(LOOK_NOW)
    page.locator("#news").get_by_text("Changed just now: ended without a conclusion").wait_for()
    assert (enrol.count(), publish.count()) == (0, 1)
    assert page.evaluate("document.activeElement.textContent") == "Manage"
    assert "The record holds" in page.locator("#verified").inner_text()
    assert page.locator("h1").all_inner_texts() == ["dose"]
    publish.evaluate("link => { link.dataset.same = 'yes'; }")
    page.evaluate("document.getElementById('live').dataset.mark = 'another'")
    page.evaluate("document.getElementById('news').textContent = ''")
    page.evaluate(LOOK_NOW)
    page.locator("#news").get_by_text("Changed just now").wait_for()
    assert publish.get_attribute("data-same") == "yes"  # nothing new: left alone
    assert loads == []


def test_the_chain_is_checked_in_the_browser(place: Service, address: str, page: Any) -> None:
    place.trial("dose")
    place.home.token_table.publish("dose", "a test")
    page.goto(f"{address}/p/dose")
    check = page.get_by_role("button", name="Check the record")
    check.click()
    page.locator("#verified").get_by_text("The record holds").wait_for()
    assert place.home.trial("dose").status().head in page.locator("#verified").inner_text()

    def forge(route: Any) -> None:
        text = route.fetch().text()
        route.fulfill(body=text.replace('"site": "Leeds"', '"site": "Lyon"', 1))

    page.route("**/transcript.json", forge)
    check.click()
    page.locator("#verified").get_by_text("does not hold").wait_for()


def test_pages_fit_on_a_phone(place: Service, address: str, page: Any) -> None:
    made = place.trial("dose", sites=["Leeds", LONG])
    made.manage("close-site", LONG, LONG)
    made.close()
    place.home.tokens.make(LONG, "monitor", LONG, "dose")
    place.home.token_table.publish("dose", "a test")
    log_in(place, page, address)
    page.set_viewport_size({"width": 390, "height": 800})
    for path in (
        *("/", "/tokens", "/tokens/1/revoke", "/new", "/t/dose", "/t/dose/manage"),
        *("/t/dose/manage/stop", "/t/dose/manage/open-site", "/t/dose/publish"),
        *("/t/dose/audit-trail", "/p/dose"),
    ):
        for width in (390, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{address}{path}")
            assert page.evaluate(TOO_WIDE) <= 0, (path, width)
            heads = page.locator("h1, h2, h3").evaluate_all("all => all.map(e => e.tagName[1])")
            levels = [int(level) for level in heads]
            assert levels[0] == 1
            assert levels.count(1) == 1
            steps = pairwise(levels)
            assert all(after - before <= 1 for before, after in steps), (path, levels)


def test_every_field_has_a_label(place: Service, address: str, page: Any) -> None:
    place.trial("dose")
    log_in(place, page, address)
    for path in ("/tokens", "/new", "/t/dose/manage/raise-maximum", "/t/dose/manage/drop-arm"):
        page.goto(f"{address}{path}")
        bare = page.locator("input:not([type=hidden]), select, textarea").evaluate_all(
            "all => all.filter(e => !e.labels.length).map(e => e.outerHTML)"
        )
        assert bare == [], path


@pytest.mark.parametrize("name", ["..", "a/b"])
def test_a_trial_of_any_name_is_reached_by_links(
    name: str, place: Service, address: str, page: Any
) -> None:
    """Browsers take . and .. in addresses for steps, however they are written."""
    place.trial(name)
    log_in(place, page, address)
    page.get_by_role("link", name=name, exact=True).click()
    assert page.locator("h1").inner_text() == name
    page.get_by_role("link", name="Manage").click()
    page.get_by_role("link", name="Pause", exact=True).click()
    page.get_by_label("Reason").fill("Snow.")
    page.get_by_role("button", name="Pause").click()
    assert page.locator("h1").inner_text() == name
    assert page.locator(".badge").first.inner_text() == "paused"
    page.locator("#verify").click()
    page.locator("#verified").get_by_text("The record holds").wait_for()
    with page.expect_download() as found:
        page.get_by_role("link", name="The arms").click()
    assert found.value.suggested_filename.endswith("arms.csv")


def test_the_page_of_the_api_follows_the_browser_into_the_dark(address: str, page: Any) -> None:
    """In the colours of the other pages; on paper it stays light."""
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}/login")
    dark = page.evaluate(COLOURS)
    page.goto(f"{address}/api/docs")
    assert page.evaluate(COLOURS) == dark
    for medium, scheme in (("screen", "light"), ("print", "dark")):
        page.emulate_media(color_scheme=scheme, media=medium)
        assert page.evaluate(COLOURS)[1] == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark", media="screen")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(TOO_WIDE) == 0
