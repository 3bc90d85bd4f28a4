"""The site and the participant's page in a real browser: through a bad connection, by
double clicks, at two sites at once, on a phone; and what leaves a participant's device.
"""

import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scipy.stats import binom

from discreet import Trial, bet_se, ctb_tt, gauss_tt
from discreet.audits.privacy import bound_epsilon
from discreet.service.auth import Principal
from discreet.service.state import AppState, invite, link_path, script_for
from discreet.strategies.strategy import Strategy
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, SITE
from tests.support.browser import Started, call
from tests.support.served import behind

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

DESK = "/t/dose/site"
STAFF = Principal(Token(1, "op", MANAGER, None, None, None, 0.0, "test", None, None, None))
ENROL = "Enrol the next participant"
TOO_LOW = """() => [...document.querySelectorAll("a, button, input, select, summary")]
  .map((one) => (one.matches("[type=radio], [type=checkbox]") ? one.closest("label") : one))
  .filter((one) => one.checkVisibility() && !one.matches(".skip"))
  .filter((one) => one.getBoundingClientRect().height < 44)
  .map((one) => one.outerHTML)"""
"""What is too low for a finger."""
EXTENT = """(one) => {
  const { left, right, top, height } = one.getBoundingClientRect();
  return [left, right, top, height];
}"""
UNFOLD = "document.querySelectorAll('details').forEach((one) => (one.open = true))"


@pytest.fixture
def home(tmp_path: Path) -> AppState:
    return AppState(f"sqlite:///{tmp_path}/service.db")


@pytest.fixture
def base(home: AppState) -> Iterator[str]:
    with behind(home) as address:
        yield address


@contextmanager
def another(browser: Started) -> Iterator["Page"]:
    """A page on whose console the browser may complain of lost connections."""
    with browser.at_work():
        context = browser.context()
        try:
            yield context.new_page()
        finally:
            context.close()


def start(home: AppState, **settings: Any) -> Trial:
    usual: dict[str, Any] = {"strategy": bet_se(0.05, 1.0), "max_participants": 500}
    return Trial.create(home.url, "dose", ["5 mg", "10 mg"], **usual | settings)


def log_in(home: AppState, base: str, page: "Page", site: str | None = None) -> None:
    """Without the page for that, which has tests of its own."""
    role = MANAGER if site is None else SITE
    secret = home.tokens.make(f"{site} site", role, "test", site and "dose", site)[0]
    page.request.post(f"{base}/login", form={"secret": secret, "to": "/"}, max_redirects=0)
    page.goto(base + DESK)


def shown(page: "Page") -> tuple[str, str]:
    """The arm and the id on a participant's page."""
    page.wait_for_selector(".assignment")
    return page.inner_text(".card .arm"), page.locator(".assignment .whole").text_content() or ""


def said(page: "Page", words: str) -> None:
    page.get_by_text(words).first.wait_for()


ENTERED = """[...document.querySelectorAll("[name=outcome]")]
  .map((one) => (one.type === "radio" ? one.checked : one.value))"""


# --- the site -------------------------------------------------------------------------


def test_enrol_and_tell(home: AppState, base: str, page: "Page") -> None:
    trial = start(home, question="Is the pain gone?", returning="refuse")
    log_in(home, base, page)
    page.get_by_label("Identifier").fill("Ada")
    page.get_by_role("button", name=ENROL).dblclick()
    arm, id = shown(page)
    assert arm in trial.protocol.arms
    assert trial.status().participants == 1
    assert page.url == f"{base}{DESK}/1?said=enrolled"
    assert page.evaluate("document.activeElement.textContent") == "Participant 1: enrolled."
    assert trial.as_user("a test").find_assignment(1).id == id
    page.get_by_role("group", name="Is the pain gone?").first.get_by_label("Yes").check()
    page.get_by_role("button", name="Save the outcome").click()
    said(page, "Participant 1: the entry was saved.")
    assert page.url == f"{base}{DESK}?said=taken&participant=1"
    assert trial.status().pending == 0
    page.reload()
    assert page.evaluate("JSON.stringify(sessionStorage)") == "{}"


@pytest.mark.parametrize("numbers", [False, True])
def test_an_entered_outcome_is_not_restored(
    home: AppState, base: str, page: "Page", numbers: bool
) -> None:
    """Whoever goes back in the browser does not see what somebody entered."""
    settings: dict[str, Any] = {"range": (0.0, 10.0)} if numbers else {}
    kind: dict[str, Any] = {"outcomes": "numbers"} if numbers else {}
    start(home, strategy=bet_se(0.05, 1.0, **kind), question="Is the pain gone?", **settings)
    log_in(home, base, page)
    page.get_by_role("button", name=ENROL).click()
    shown(page)
    for saves in (False, True):
        if numbers:
            page.locator("#tell-outcome").fill("7.25")
        else:
            page.get_by_role("group", name="Is the pain gone?").first.get_by_label("Yes").check()
        if saves:
            page.get_by_role("button", name="Save the outcome").click()
            said(page, "Participant 1: the entry was saved.")
        else:
            page.goto(base + DESK)
        page.go_back()
        shown(page)
        assert not any(page.evaluate(ENTERED))


def test_the_desk_works_by_keyboard(home: AppState, base: str, page: "Page") -> None:
    trial = start(home)
    log_in(home, base, page, "Leeds")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == ENROL:
            break
    page.keyboard.press("Enter")
    shown(page)
    assert trial.status().participants == 1


@pytest.mark.parametrize("named", [False, True])
def test_an_answer_that_is_lost_enrols_once(
    home: AppState, base: str, browser: Started, named: bool
) -> None:
    """The service has done it, and the answer never arrives: twice."""
    trial = start(home, returning="refuse" if named else "anonymous")
    with another(browser) as page:
        log_in(home, base, page)
        lost: list[int] = []

        def lose(route: "Route") -> None:
            if len(lost) < 2:
                lost.append(route.fetch(max_redirects=0).status)
                route.abort()
            else:
                route.continue_()

        page.route("**/site/enrol", lose)
        if named:
            page.get_by_label("Identifier").fill("Ada")
        page.get_by_role("button", name=ENROL).click()
        said(page, "No connection: trying again.")
        shown(page)
        assert lost == [303, 303]
        assert trial.status().participants == 1


@pytest.mark.parametrize("before", [False, True], ids=["first", "after a lost answer"])
def test_a_login_that_has_ended_leads_to_another_one(
    home: AppState, base: str, browser: Started, before: bool
) -> None:
    """Of what was done before, and whose answer was lost, it does not say that it was
    not done.
    """
    trial = start(home)
    with another(browser) as page:
        log_in(home, base, page)

        lost: list[int] = []

        def lose(route: "Route") -> None:
            if lost:
                route.continue_()
                return
            lost.append(route.fetch(max_redirects=0).status)
            home.tokens.revoke(1, "test")
            route.abort()

        if before:
            page.route("**/site/enrol", lose)
        else:
            home.tokens.revoke(1, "test")
        page.get_by_role("button", name=ENROL).click()
        said(page, "it is not known whether" if before else "and nobody was enrolled: log in")
        assert trial.status().participants == before
        page.locator(".sending").get_by_role("link", name="Log in").click()
        page.get_by_label("Your token").wait_for()
        assert page.url == f"{base}/login?to=%2Ft%2Fdose%2Fsite"


def test_nobody_is_enrolled_while_there_is_no_connection(
    home: AppState, base: str, browser: Started
) -> None:
    trial = start(home)
    with another(browser) as page:
        log_in(home, base, page)
        page.context.set_offline(True)
        page.get_by_role("button", name=ENROL).click()
        said(page, "No connection: trying again.")
        for _ in range(3):
            page.get_by_role("button", name=ENROL).click()
        assert trial.status().participants == 0
        page.context.set_offline(False)
        shown(page)
        assert trial.status().participants == 1


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_after_a_reload_the_same_press_is_shown(
    home: AppState, base: str, browser: Started, arrives: bool, named: bool
) -> None:
    trial = start(home, returning="refuse" if named else "anonymous")
    with another(browser) as page:
        log_in(home, base, page)

        def lose(route: "Route") -> None:
            if arrives:
                route.fetch(max_redirects=0)
            route.abort()

        page.route("**/site/enrol", lose)
        if named:
            page.get_by_label("Identifier").fill("Ada Lovelace")
        page.get_by_role("button", name=ENROL).click()
        said(page, "No connection")
        stored = json.loads(page.evaluate("JSON.stringify(sessionStorage)"))
        assert [set(json.loads(one)) for one in stored.values()] == [{"path", "once"}]
        assert "Lovelace" not in json.dumps(stored)
        page.unroute("**/site/enrol")
        page.reload()
        if named and not arrives:
            said(page, "Your last click did not arrive")
            assert trial.status().participants == 0
            page.get_by_label("Identifier").fill("Ada Lovelace")
            page.get_by_role("button", name=ENROL).click()
        assert shown(page)[1] == trial.as_user("a test").find_assignment(1).id
        assert trial.status().participants == 1
        page.wait_for_function("sessionStorage.length === 0")


def test_what_is_under_way_for_one_person_is_not_sent_for_another(
    home: AppState, base: str, browser: Started
) -> None:
    trial = start(home)
    trial.ask(2)
    with another(browser) as page:
        log_in(home, base, page)
        page.goto(f"{base}{DESK}/1")
        page.route("**/site/tell", lambda route: (route.fetch(max_redirects=0), route.abort()))
        page.locator("input[name=outcome]").first.check()
        page.get_by_role("button", name="Save the outcome").click()
        said(page, "No connection")
        page.unroute("**/site/tell")
        page.goto(f"{base}{DESK}/2")
        page.locator("input[name=outcome]").first.check()
        page.get_by_role("button", name="Save the outcome").click()
        said(page, "Participant 2: the entry was saved.")
        assert trial.status().pending == 0
        page.goto(f"{base}{DESK}/1")
        said(page, "The outcome of participant 1 is already saved")
        assert page.get_by_role("button", name="Save the outcome").count() == 0


def test_two_sites_at_once(home: AppState, base: str, browser: Started) -> None:
    trial = start(home, sites=["Leeds", "Lyon"])
    with another(browser) as one, another(browser) as two:
        for page, site in ((one, "Leeds"), (two, "Lyon")):
            log_in(home, base, page, site)
        for _ in range(3):
            for page in (one, two):
                page.goto(base + DESK)
                page.evaluate("document.querySelector('.enrol').requestSubmit()")
            for page in (one, two):
                shown(page)
        ids = {one: shown(one)[1], two: shown(two)[1]}
        assert [site.participants for site in trial.status().sites] == [3, 3]
        two.goto(f"{base}{DESK}/{ids[one].partition('-')[0]}")
        assert "nobody here has this number" in two.inner_text("main").lower()
        assert ids[one] not in two.content()


def test_a_number_is_checked_in_words_before_it_is_sent(
    home: AppState, base: str, browser: Started
) -> None:
    numbers = bet_se(0.05, 1.0, outcomes="numbers")
    trial = start(home, strategy=numbers, range=(0, 100))
    with another(browser) as page:
        log_in(home, base, page)
        page.get_by_role("button", name=ENROL).click()
        shown(page)
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url))
        field = page.locator("#tell-outcome")
        for typed, words in (("1,5", "Type a number in digits"), ("150", "between 0 and 100")):
            field.fill(typed)
            page.get_by_role("button", name="Save the outcome").click()
            said(page, words)
            assert field.evaluate("one => one === document.activeElement")
        assert sent == []
        field.fill("62.5")
        page.get_by_role("button", name="Save the outcome").click()
        said(page, "Participant 1: the entry was saved.")
        assert trial.status().pending == 0


def test_what_was_typed_stays_when_it_is_refused(
    home: AppState, base: str, browser: Started
) -> None:
    trial = start(home, returning="refuse")
    trial.ask(participant="Ada")
    with another(browser) as page:
        log_in(home, base, page)
        page.get_by_label("Identifier").fill("Ada")
        page.get_by_role("button", name=ENROL).click()
        said(page, "This participant took part before")
        assert page.get_by_label("Identifier").input_value() == "Ada"
        page.get_by_label("Identifier").fill("Grace")
        page.get_by_role("button", name=ENROL).click()
        assert shown(page)[1].startswith("2-")


def test_nothing_is_wider_than_a_phone(home: AppState, base: str, browser: Started) -> None:
    long = "a very long name of an arm that " + "goes" * 12
    trial = Trial.create(
        home.url, "dose", [long, "b"], bet_se(0.05, 1.0), max_participants=100, deadline=1e6
    )
    trial.ask(12)
    with another(browser) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        log_in(home, base, page)
        for path in (DESK, f"{DESK}/1"):
            page.goto(base + path)
            page.evaluate(UNFOLD)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.parametrize("strategy", [bet_se(0.05, 1.0), ctb_tt(1.0, 0.1)], ids=["told", "local"])
def test_whatever_a_desk_has_can_be_touched(
    home: AppState, base: str, browser: Started, strategy: Strategy
) -> None:
    """Also where names are long, and the numbers of participants too."""
    site = "a hospital with a long name, and with wards that have one too"
    trial = Trial.create(home.url, "dose", ["a", "b"], strategy, 5000, sites=[site, "Lyon"])
    trial.ask(3, site=site)
    with another(browser) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        log_in(home, base, page, site)
        for path in (DESK, f"{DESK}/1"):
            page.goto(base + path)
            page.evaluate(UNFOLD)
            assert page.evaluate(TOO_LOW) == [], path
            assert page.get_by_role("button", name="Log out").evaluate(EXTENT)[3] < 60
        page.goto(base + DESK)
        row = page.locator(".waited tbody tr").first
        row.locator("th").evaluate("one => one.textContent = '123456'")
        number, id, button = (
            row.locator(part).evaluate(EXTENT) for part in ("th", "td >> nth=0", "a")
        )
        assert number[1] <= id[0]
        assert id[1] <= button[0]
        assert row.locator("th").evaluate("one => one.scrollWidth - one.clientWidth") <= 0


# --- the participant ------------------------------------------------------------------


def invited(home: AppState, base: str, trial: Trial) -> str:
    """A link for the next participant."""
    id = trial.ask().assignments[0].id
    return base + link_path(invite(home, STAFF, "dose", id, 1.0)[0])


def local(home: AppState, strategy: Strategy, **settings: Any) -> Trial:
    return start(home, strategy=strategy, script=script_for(strategy), **settings)


def answers(trial: Trial) -> list[list[int]]:
    events = trial.transcript()["events"]
    return [one for event in events if event["kind"] == "answered" for one in event["answers"]]


def test_a_participant_answers(home: AppState, base: str, page: "Page") -> None:
    trial = local(home, ctb_tt(1.0, 0.1), question="Did you smoke?")
    page.goto(invited(home, base, trial))
    said(page, "Whatever your true answer is, it is sent as it is with a chance of 73.1 %")
    assert page.url == f"{base}/a"
    page.get_by_role("button", name="Randomise my answer").click()
    said(page, "Choose yes or no first.")
    page.get_by_role("group", name="Did you smoke?").get_by_label("Yes").check()
    page.get_by_role("button", name="Randomise my answer").click()
    word = page.inner_text("#word")
    assert re.fullmatch(r"rr/1\.0/[01]", word)
    assert page.evaluate("document.activeElement.id") == "leaves"
    assert answers(trial) == []
    page.get_by_role("button", name="Send it").click()
    said(page, "Thank you: your answer was taken")
    assert answers(trial) == [[1, int(word[-1])]]
    last = trial.transcript()["events"][-1]
    assert page.inner_text("#receipt-event") == f"event {last['seq']}, {last['hash']}"
    assert page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_another_person_s_link_in_the_same_tab_is_theirs(
    home: AppState, base: str, page: "Page"
) -> None:
    """A tablet that is handed on, before the first one has answered and after it."""
    trial = local(home, ctb_tt(1.0, 0.1))
    links = [invited(home, base, trial) for _ in range(3)]
    page.goto(links[0])
    said(page, "You are participant 1")
    for number, link in enumerate(links[1:], 2):
        page.goto(link)
        said(page, f"You are participant {number}")
        assert page.url == f"{base}/a", "the secret is not left in the address"
        page.get_by_label("Yes").first.check()
        page.get_by_role("button", name="Randomise my answer").click()
        page.get_by_role("button", name="Send it").click()
        said(page, "Thank you: your answer was taken")
        assert page.inner_text("#receipt-participant") == str(number)
    assert len(trial.open_assignments()) == 1


def test_a_link_logs_in_where_the_login_is_shown(home: AppState, base: str, page: "Page") -> None:
    start(home)
    code = home.tokens.make_code(home.tokens.make("ward", "manager", "a test")[1])
    page.goto(f"{base}/login?to=%2Ft%2Fdose")
    page.get_by_role("button", name="Log in").wait_for()
    page.goto(f"{base}/login?to=%2Ft%2Fdose#{code}")
    page.get_by_text("You have opened a login link").wait_for()
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{base}/t/dose")


def test_the_raw_outcome_stays_on_the_device(
    home: AppState, base: str, page: "Page", caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A planted outcome is looked for in all that leaves the page, is stored, logged or
    kept, while a participant looks at everything, makes a mistake, starts over and answers.
    """
    caplog.set_level(logging.DEBUG)
    planted = "7.2512345"
    trial = local(home, bet_se(0.1, 2.0, trust="local", outcomes="numbers"), range=(0, 10))
    sent: list[str] = []
    page.on(
        "request",
        lambda one: sent.append(f"{one.url} {one.post_data} {json.dumps(one.headers)}"),
    )
    page.goto(invited(home, base, trial))
    page.locator("#trying summary").click()
    page.get_by_role("button", name="Try it a thousand times").click()
    page.locator("#tried table").wait_for()
    for _ in range(2):
        page.locator("#figure").fill(planted)
        page.get_by_role("button", name="Randomise my answer").click()
        if _ == 0:
            page.get_by_role("button", name="start over").click()
            assert page.locator("#figure").input_value() == ""
    word = page.inner_text("#word")
    page.get_by_role("button", name="Send it").click()
    said(page, "Thank you: your answer was taken")
    stored = page.evaluate("JSON.stringify([sessionStorage, localStorage, document.cookie])")
    kept = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    everything = [*sent, stored, page.content(), caplog.text, kept.decode("latin-1")]
    assert not any(planted in one or "7.25" in one for one in everything)
    bodies = [one for one in sent if "/a/answer" in one]
    assert len(bodies) == 1
    assert json.dumps({"response": word}, separators=(",", ":")) in bodies[0]
    assert sum("Bearer discreet_" in one for one in sent) == 2
    assert not any("discreet_" in one.split()[0] for one in sent), "no address has the secret"


def test_an_answer_whose_receipt_is_lost_is_taken_once(
    home: AppState, base: str, browser: Started
) -> None:
    """After a reload the same word is sent again: a second randomisation would spend ε
    twice.
    """
    trial = local(home, ctb_tt(0.1, 0.1))
    with another(browser) as page:
        page.goto(invited(home, base, trial))
        bodies: list[str | None] = []

        def lose(route: "Route") -> None:
            bodies.append(route.request.post_data)
            if len(bodies) < 3:
                route.fetch()
                route.abort()
            else:
                route.continue_()

        page.route("**/a/answer", lose)
        page.locator("input[name=truth]").first.check()
        page.get_by_role("button", name="Randomise my answer").click()
        page.get_by_role("button", name="Send it").click()
        said(page, "No connection: trying again.")
        page.reload()
        said(page, "Thank you: your answer was taken")
        assert len(bodies) >= 3
        assert len(set(bodies)) == 1
        assert len(answers(trial)) == 1


def test_an_own_coin(home: AppState, base: str, page: "Page") -> None:
    """Only the randomised bit is typed, and it is sent as it is typed."""
    trial = local(home, ctb_tt(1.0, 0.1))
    for number, (typed, bit) in enumerate((("Yes", 1), ("No", 0)), start=1):
        page.goto("about:blank")
        page.goto(invited(home, base, trial))
        page.locator("#coins summary").click()
        page.locator("#coined").get_by_label(typed).check()
        page.get_by_role("button", name="Show what will leave").click()
        assert page.inner_text("#word") == f"rr/1.0/{bit}"
        page.get_by_role("button", name="Send it").click()
        said(page, "Thank you: your answer was taken")
        assert answers(trial)[-1] == [number, bit]


def test_the_recipe_for_coins_is_exact(base: str, page: "Page") -> None:
    """Whoever follows it takes the opposite with the chance of the script, and with at
    least that, to 2^-39: D of the 2^40 - 1 rows that differ from the printed one are
    below it.
    """
    page.goto(f"{base}/a")
    for epsilon in (1e-6, 0.1, math.log(3), 1.0, 5.0, 20.0, 60.0):
        row = call(page, "static/participant.js", "recipe", epsilon).replace(" ", "")
        assert len(row) == 40
        below = int(row.replace("H", "0").replace("T", "1"), 2)
        chance, wanted = below / (2**40 - 1), 1 / (1 + math.exp(epsilon))
        assert wanted <= chance <= wanted + 2**-39


def test_coins_say_yes_where_less_is_better(base: str, page: "Page") -> None:
    page.goto(f"{base}/a")
    for direction, yes in (("max", 1), ("min", 0)):
        about = {"epsilon": 1.0, "low": 0, "high": 1, "direction": direction}
        found = [
            call(page, "static/participant.js", "coined", one, about)["value"] for one in (1, 0)
        ]
        assert found == [yes, 1 - yes]


def test_a_changed_script_is_refused_by_the_browser(
    home: AppState, base: str, browser: Started
) -> None:
    trial = local(home, ctb_tt(1.0, 0.1))
    with another(browser) as page:
        sent: list[str] = []
        page.on("request", lambda one: sent.append(one.url))

        def change(route: "Route") -> None:
            found = route.fetch()
            route.fulfill(response=found, body=found.text() + "\n// changed")

        page.route("**/static/respond.js", change)
        page.goto(invited(home, base, trial))
        page.wait_for_load_state("networkidle")
        said(page, "has refused it")
        assert page.locator("#asking").is_hidden()
        assert not any("/a/" in one for one in sent)


def test_a_page_whose_script_the_protocol_does_not_name_asks_nothing(
    home: AppState, base: str, page: "Page"
) -> None:
    """Even if the service says that another script is named."""

    def change(route: "Route") -> None:
        found = route.fetch()
        route.fulfill(response=found, json=found.json() | {"script": "0" * 64})

    page.route("**/a/question", change)
    page.goto(invited(home, base, local(home, ctb_tt(1.0, 0.1))))
    said(page, "is not the one that the trial's protocol names")
    assert page.locator("#asking").is_hidden()


def test_gaussian_answers_and_links_that_are_over(home: AppState, base: str, page: "Page") -> None:
    trial = local(home, gauss_tt(1.0, 1e-5, 0.1), range=(0, 10))
    link = invited(home, base, trial)
    page.goto(link)
    said(page, "A random number is added to your number")
    assert page.locator("#coins").is_hidden()
    page.locator("#trying summary").click()
    page.get_by_role("button", name="Try it a thousand times").click()
    assert page.locator("#tried tbody tr").count() == 3
    page.locator("#figure").fill("4")
    page.get_by_role("button", name="Randomise my answer").click()
    page.get_by_role("button", name="Send it").click()
    said(page, "Thank you: your answer was taken")
    page.goto("about:blank")
    page.goto(link)
    said(page, "An answer was already taken")
    later = invited(home, base, trial)
    trial.manage("stop", "no money")
    page.goto("about:blank")
    page.goto(later)
    said(page, "This trial needs no more answers.")
    page.goto("about:blank")
    page.goto(f"{base}/a")
    said(page, "Open the link that you were given")


def test_the_odds_of_what_the_server_received(home: AppState, base: str, page: "Page") -> None:
    """1500 participants who would say yes and 1500 who would say no, by the page's own script
    and the system's randomness. Each count lies in its exact bounds but once in 10^6,
    and no event shows a larger ε than the promised one but once in 10^6.
    """
    participants, epsilon, level = 3000, 0.5, 1e-6
    trial = local(home, ctb_tt(epsilon, 1e-12), max_participants=participants)
    ids = [one.id for one in trial.ask(participants).assignments]
    secret = home.tokens.make("op", MANAGER, "test")[0]
    page.goto(f"{base}/a")
    code = """async ([ids, epsilon, secret]) => {
      const { respond, wordOf } = await import("/static/respond.js");
      const answers = Object.fromEntries(
        ids.map((id, place) => [id, wordOf(respond(place % 4 < 2 ? 1 : 0, { epsilon }))]),
      );
      const sent = await fetch("/api/v1/trials/dose/answer", {
        method: "POST",
        headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
        body: JSON.stringify({ answers }),
      });
      return sent.status;
    }"""
    assert page.evaluate(code, [ids, epsilon, secret]) == 200
    received = {number: bit for number, bit in answers(trial)}
    assert len(received) == participants
    yes = sum(bit for number, bit in received.items() if (number - 1) % 4 < 2)
    no = sum(received.values()) - yes
    half, truth = participants // 2, 1 / (1 + math.exp(-epsilon))
    for hits, chance in ((yes, truth), (no, 1 - truth)):
        low, high = binom.ppf(level / 2, half, chance), binom.isf(level / 2, half, chance)
        assert low <= hits <= high
    for hits, other in ((yes, no), (half - no, half - yes)):
        assert bound_epsilon(hits, other, half, level / 2) <= epsilon


def test_a_participant_s_page_fits_a_phone(home: AppState, base: str, browser: Started) -> None:
    trial = local(home, ctb_tt(1.0, 0.1), question="Did you " + "really " * 30 + "smoke?")
    with another(browser) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto(invited(home, base, trial))
        page.locator("#asking").wait_for()
        page.evaluate(UNFOLD)
        page.get_by_role("button", name="Try it a thousand times").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.locator("input[name=truth]").first.check()
        page.get_by_role("button", name="Randomise my answer").click()
        page.get_by_role("button", name="Send it").click()
        said(page, "Thank you: your answer was taken")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
