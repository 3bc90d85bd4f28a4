"""Who sees which page, what its forms refuse, and that names are text on all."""

import csv
import html
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from discreet import Trial, bet_se
from discreet.errors import StoreError
from discreet.reports.trial import draw_trial
from discreet.service import planner
from discreet.service.pages import trial
from discreet.service.pages.base import LOGIN_COOKIE
from discreet.service.pages.manage import AuditTrailRow, grouped
from discreet.service.pages.trial_form import read_form
from discreet.service.state import script_hash
from discreet.trials.record import AuditEntry
from tests.support.visitors import Service, Visit, service

MANAGER, OTHER, MONITOR, SITE, ANYONE = "manager", "other", "monitor", "site", "anyone"
READERS, RECORD = {MANAGER, MONITOR, SITE}, {MANAGER, MONITOR}
PAGES: dict[str, set[str]] = {
    "/": {MANAGER, OTHER, MONITOR, SITE},
    "/t/dose": READERS,
    "/t/dose/head": READERS,
    "/t/dose/means.svg": READERS,
    "/t/dose/evidence.svg": READERS,
    "/t/dose/participants.svg": RECORD,
    "/t/dose/transcript.json": RECORD,
    "/t/dose/report.html": RECORD,
    "/t/dose/arms.csv": RECORD,
    "/t/dose/manage": {MANAGER},
    "/t/dose/manage/stop": {MANAGER},
    "/t/dose/publish": {MANAGER},
    "/t/dose/audit-trail": {MANAGER},
    "/t/dose/codes": {MANAGER},
    "/tokens": {MANAGER, OTHER},
    "/tokens/1/revoke": {MANAGER},
    "/new": {MANAGER},
}
"""Who may see which page; the other manager is that of another trial."""
FORMS: dict[str, dict[str, str]] = {
    "/t/dose/manage/pause": {"reason": "why", "seen": "0", "once": "a"},
    "/t/dose/publish": {"published": "yes"},
    "/t/dose/codes": {},
    "/tokens": {"name": "x", "role": "monitor", "trial": "dose"},
    "/tokens/1/revoke": {},
    "/new": {"do": "review"},
    "/new/plan": {},
}
NASTY = (
    "</title><script>alert(1)</script>",
    "'; DROP TABLE trials; --",
    '=HYPERLINK("http://x.example","y")',
    'a" onmouseover="alert(2)',
    "{{ 'zq' * 9 }}",
    "a/b?c#d%2Fe",
)
"""Names that are script, SQL, formulas, templates, addresses."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(planner, "warm", lambda: None)
    with service(tmp_path) as made:
        yield made


@pytest.fixture
def running(place: Service) -> Service:
    """With one trial, and another one."""
    place.trial("dose")
    place.trial("second")
    return place


def visits(place: Service) -> dict[str, Visit]:
    """A browser for everybody."""
    return {
        MANAGER: place.visit("manager"),
        OTHER: place.visit("manager", "second"),
        MONITOR: place.visit("monitor", "dose"),
        SITE: place.visit("site", "dose", "Leeds"),
        ANYONE: place.visit(),
    }


# --- who sees what --------------------------------------------------------------------


def test_every_page_is_for_those_who_may_see_it(running: Service) -> None:
    for who, visit in visits(running).items():
        for path, allowed in PAGES.items():
            answer = visit.get(path)
            if who in allowed:
                expected = 200
            elif who == OTHER and path == "/tokens/1/revoke":
                expected = 404
            else:
                expected = 303 if who == ANYONE else 403
            assert answer.status_code == expected, (who, path, answer.text[:300])
            if expected == 303:
                assert answer.headers["location"] == f"/login?to={quote(path, safe='')}"


def test_every_form_is_for_those_who_may_send_it(running: Service) -> None:
    everybody = visits(running)
    for path, form in FORMS.items():
        for who in (OTHER, MONITOR, SITE, ANYONE):
            if (who, path) == (OTHER, "/tokens"):
                expected = 422  # it may make tokens, for its own trial
            elif (who, path) == (OTHER, "/tokens/1/revoke"):
                expected = 404
            else:
                expected = 403
            answer = everybody[who].send(path, **form)
            assert answer.status_code == expected, (who, path, answer.text[:300])
    opened = Trial.open(running.url, "dose")
    assert not opened.status().paused
    assert not running.home.published("dose")
    opened.close()


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_key_or_from_elsewhere_is_refused(running: Service, path: str) -> None:
    visit = running.visit("manager")
    form, elsewhere = FORMS[path], {"Origin": "https://elsewhere.example"}
    for answer in (
        visit.post(path, form),
        visit.post(path, {**form, "key": "0" * 64}),
        visit.post(path, {**form, "key": visit.key}, **elsewhere),
    ):
        assert answer.status_code == 422
        assert "reload it" in answer.text
    assert visit.get("/").status_code == 200  # nobody was revoked
    assert not running.home.published("dose")


def test_a_trial_that_is_not_published_is_not_there(running: Service) -> None:
    anyone = running.visit()
    for path in ("", "/head", "/means.svg", "/transcript.json", "/report.html", "/arms.csv"):
        hidden, none = (anyone.get(f"/p/{name}{path}") for name in ("dose", "no-such"))
        assert hidden.status_code == none.status_code == 404
        assert hidden.text.replace("dose", "no-such") == none.text
    running.home.token_table.publish("dose", "a test")
    for path in ("", "/head", "/means.svg", "/transcript.json", "/report.html", "/arms.csv"):
        assert anyone.get(f"/p/dose{path}").status_code == 200
    assert anyone.get("/t/dose").headers["location"] == "/p/dose"
    assert anyone.get("/p/second").status_code == 404
    assert "Manage" not in anyone.get("/p/dose").text
    assert "http://testserver/p/dose</a>" in running.visit("manager").get("/t/dose").text
    lost = anyone.get("/p/", Accept="text/html")
    assert (lost.status_code, "There is no page at this address" in lost.text) == (404, True)
    assert anyone.get("/p/").headers["content-type"] == "application/problem+json"


def test_a_blinded_site_sees_no_arm_before_the_end(place: Service) -> None:
    place.trial("blind", blinding="codes")
    site, monitor = place.visit("site", "blind", "Leeds"), place.visit("monitor", "blind")
    shown = site.get("/t/blind").text
    assert "blinded" in shown
    assert not any(f">{arm}" in shown for arm in ("usual", "new", "third"))
    assert "usual" in monitor.get("/t/blind").text
    for picture in ("means", "evidence", "participants"):
        assert site.get(f"/t/blind/{picture}.svg").status_code == 403
    manager = place.visit("manager")
    assert "list of codes" in manager.get("/t/blind/manage").text
    made = Trial.open(place.url, "blind")
    codes = made.list_codes()
    page = manager.send("/t/blind/codes").text
    listed = re.findall(r"<code>(\w+)</code>.*?<td[^>]*>(\w+)</td>", page)
    assert listed == list(reversed(codes.items())) != []
    code, arm = listed[-1]
    page = manager.send("/t/blind/codes", code=code.lower()).text
    assert re.findall(r"<code>(\w+)</code>.*?<td[^>]*>(\w+)</td>", page) == [(code, arm)]
    assert "There is no such code" in manager.send("/t/blind/codes", code="nobody").text
    assert "codes" in manager.get("/t/blind/audit-trail").text
    made.manage("stop", "enough")
    made.close()
    assert "usual" in site.get("/t/blind").text
    assert site.get("/t/blind/means.svg").status_code == 200


# --- what forms do --------------------------------------------------------------------


def test_an_operator_acts_once_with_a_reason_and_what_was_seen(running: Service) -> None:
    visit = running.visit("manager")
    page = "/t/dose/manage/pause"
    form = visit.hidden(page)
    assert visit.send(page, **form).status_code == 422
    for _ in range(2):
        answer = visit.send(page, **form, reason="snow")
        assert answer.headers["location"] == "/t/dose"
    shown = visit.get("/t/dose").text
    assert "paused" in shown
    assert shown.count("snow") == 2  # among what managers did, and in the record
    late = visit.send("/t/dose/manage/resume", seen="0", once="b", reason="thaw")
    assert late.status_code == 422
    assert 'role="alert"' in late.text
    assert ">thaw</textarea>" in late.text
    fresh = visit.hidden("/t/dose/manage/resume")
    assert visit.send("/t/dose/manage/resume", **fresh, reason="thaw").status_code == 303


def test_every_action_has_a_page_that_says_what_it_means(running: Service) -> None:
    visit = running.visit("manager")
    offered = visit.get("/t/dose/manage").text
    for action in ("pause", "stop", "raise-maximum", "close-site", "drop-arm", "add-arm"):
        assert f'href="/t/dose/manage/{action}"' in offered
        shown = visit.get(f"/t/dose/manage/{action}").text
        assert "Effect on the guarantee" in shown
        for_good = action in ("stop", "drop-arm", "add-arm")
        assert ("cannot be undone" in shown) == for_good
    shown = visit.get("/t/dose/manage/lower-maximum").text
    assert "cannot be undone" not in shown
    assert "You can raise the maximum again, unless the trial has ended" in shown
    listed = offered.partition('href="/t/dose/manage/lower-maximum"')[2].partition("</li>")[0]
    assert listed
    assert "cannot be undone" not in listed
    about = {"raise-maximum": "950", "close-site": "Lyon", "drop-arm": "third", "add-arm": "fourth"}
    for action, thing in about.items():
        page = f"/t/dose/manage/{action}"
        answer = visit.send(page, **visit.hidden(page), reason="because", about=thing)
        assert answer.status_code == 303, answer.text
    assert visit.send("/t/dose/manage/lower-maximum", seen="4", reason="a", about="x").text.count(
        "whole number"
    )
    assert visit.get("/t/dose/manage/format").status_code == 404
    status = running.home.trial("dose").status()
    assert [act.action for act in status.actions] == [*about]


def test_a_token_is_shown_once_and_ends(running: Service) -> None:
    visit = running.visit("manager")
    made = visit.send("/tokens", name="Ada", role="site", trial="dose", site="Leeds", days="3")
    assert made.headers["cache-control"] == "no-store"
    secret = made.text.partition('id="token" readonly value="')[2].partition('"')[0]
    found = running.home.tokens.find_token(secret)
    assert found is not None
    assert (found.role, found.trial, found.site) == ("site", "dose", "Leeds")
    assert f"#{secret}" not in made.text, "a link carries a one-time code, never the token"
    assert re.search("/login[?]to=%2Ft%2Fdose%2Fsite#discreet_code_", made.text)
    assert secret not in visit.get("/tokens").text
    assert visit.send(f"/tokens/{found.number}/revoke").status_code == 303
    assert running.home.tokens.find_token(secret) is None
    assert "revoked" in visit.get("/tokens").text


def test_a_token_expires_unless_somebody_wants_it_otherwise(running: Service) -> None:
    visit = running.visit("manager")
    offered = 'id="days" name="days" inputmode="decimal" value="90"'
    assert offered in visit.get("/tokens").text
    assert offered in visit.get("/tokens?role=site&trial=dose&site=Leeds").text
    wrong = visit.send("/tokens", name="x", role="site", trial="dose", days="")
    assert 'id="days" name="days" inputmode="decimal" value=""' in wrong.text
    for days in ("0", "99999999"):
        wrong = visit.send("/tokens", name="x", role="monitor", days=days)
        assert "at most 3660; leave it out for a token that does not expire." in wrong.text
    made = visit.send("/tokens", name="for ever", role="monitor", days="")
    assert offered in made.text
    assert [
        one.expires for one in running.home.token_table.list_all() if one.name == "for ever"
    ] == [None]


def rows_of(text: str) -> list[list[str]]:
    """The cells of the rows of a table, as text."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")]
    return [[re.sub("<[^>]+>", "", cell) for cell in row] for row in cells if row]


def test_calls_that_are_alike_share_a_row_of_the_audit_trail(running: Service) -> None:
    trial, nurse = running.home.trial("dose"), running.visit("site", "dose", "Leeds")
    for _ in range(600):
        trial.open_assignments("Leeds")
    for _ in range(3):
        trial.ask(2, site="Leeds")
    trial.ask(1, site="Lyon")
    nurse.get("/t/dose/site")
    shown = running.visit("manager").get("/t/dose/audit-trail").text
    rows = rows_of(shown)
    assert [row[2:5] for row in rows[:5]] == [
        ["Leeds", "open", "10"],
        ["Lyon", "ask", "1"],
        ["Leeds", "ask, 3 times", "6"],
        ["Leeds", "open, 600 times", "4"],
        ["Leeds", "token create 1", "0"],
    ]
    assert rows[0][1] == "a site"
    assert len(trial.audit_trail()) > 600


def test_a_row_of_the_journal_says_from_when_to_when() -> None:
    def entry(at: float, participants: int, call: str = "open", user: str = "Ada") -> AuditEntry:
        return AuditEntry(0, at, user, "Leeds", call, participants)

    noon = 1_800_000_000.0
    newest_first = [entry(noon, 3), entry(noon - 60, 7), entry(noon - 86_400, 5)]
    days = "2027-01-14 08:00 to 2027-01-15 08:00 UTC"
    assert grouped([*newest_first, entry(noon - 86_401, 5, user="Bob")], 9) == [
        AuditTrailRow(days, "Ada", "Leeds", "open, 3 times", "3 to 7"),
        AuditTrailRow("2027-01-14 07:59 UTC", "Bob", "Leeds", "open", "5"),
    ]
    assert grouped(newest_first[:2], 9)[0].at == "2027-01-15 07:59 to 08:00 UTC"
    tells = [entry(noon + 5, 2, "tell"), entry(noon, 1, "tell")]
    assert grouped(tells, 9) == [
        AuditTrailRow("2027-01-15 08:00 UTC", "Ada", "Leeds", "tell, 2 times", "3")
    ]
    assert len(grouped([*newest_first, *tells], 1)) == 1
    assert grouped([], 9) == []


def test_the_next_step_is_said(place: Service) -> None:
    visit = place.visit("manager")
    visit.send("/new", do="create", **GOOD)
    first = visit.get("/t/made%20here").text
    way = "/tokens?role=site&amp;trial=made%20here&amp;site=Lyon#make"
    assert way in first
    form = visit.get(html.unescape(way).partition("#")[0]).text
    assert '<option value="made here" selected>' in form
    assert 'id="site" name="site" maxlength="200" value="Lyon"' in form
    assert 'id="name" name="name" required maxlength="200" autocomplete="off" value="Lyon"' in form
    assert "on this machine only" not in first
    assert "on this machine only" in visit.get("/t/made%20here", Host="127.0.0.1:8642").text
    absent = visit.send("/tokens", name="x", role="site", trial="made here", site="Lion")
    assert absent.status_code == 422
    assert "no site &#39;Lion&#39;; its sites: Leeds, Lyon" in absent.text
    place.home.tokens.make("a nurse", "site", "a test", "made here", "Lyon")
    after = visit.get("/t/made%20here").text
    assert "A token for Lyon" not in after
    assert f'<a href="{way}">for Lyon</a>' in after
    assert "next step" not in place.visit("monitor").get("/t/made%20here").text
    trial = place.home.trial("made here")
    trial.ask(1, site="Lyon")
    place.home.changed("made here")
    assert "next step" not in visit.get("/t/made%20here").text
    trial.manage("stop", "no money")
    place.home.changed("made here")
    ended = visit.get("/t/made%20here").text
    assert "/t/made%20here/publish" in ended
    assert "A manager ended the trial without a conclusion, after 1 participant." in ended
    assert "The end is inconclusive.</td>" in ended
    assert '<td data-label="Now">ended</td>' in ended
    place.home.token_table.publish("made here", "a test")
    assert "publish it" not in visit.get("/t/made%20here").text


@pytest.mark.parametrize(
    "form",
    [
        {"role": "monitor"},
        {"name": "x", "role": "site", "trial": "dose"},
        {"name": "x", "role": "site", "site": "Leeds"},
        {"name": "x", "role": "monitor", "trial": "no-such"},
        {"name": "x", "role": "monitor", "days": "soon"},
        {"name": "x", "role": "monitor", "days": "-1"},
        {"name": "x", "role": "participant"},
    ],
    ids=", ".join,
)
def test_a_token_that_makes_no_sense_is_refused_in_words(
    running: Service, form: dict[str, str]
) -> None:
    visit = running.visit("manager")
    before = len(running.home.token_table.list_all())
    answer = visit.send("/tokens", **form)
    assert answer.status_code in (404, 422)
    assert 'role="alert"' in answer.text
    assert len(running.home.token_table.list_all()) == before


GOOD = {
    "name": "made here",
    "arms": "one\ntwo",
    "max_participants": "500",
    "difference": "20",
    "sites": "Leeds\nLyon",
}


def test_a_trial_is_looked_at_and_started(place: Service) -> None:
    visit = place.visit("manager")
    assert "no trial here yet" in visit.get("/").text
    review = visit.send("/new", do="review", **GOOD)
    assert review.status_code == 200
    assert "Start made here?" in review.text
    assert not place.home.store.list_names()
    answer = visit.send("/new", do="create", **GOOD)
    assert answer.headers["location"] == "/t/made%20here"
    made = place.home.trial("made here").protocol
    assert made.arms == ("one", "two")
    assert made.sites == ("Leeds", "Lyon")
    assert (made.strategy.epsilon, made.strategy.delta, made.strategy.target_difference) == (
        1,
        0.05,
        0.2,
    )
    again = visit.send("/new", do="create", **{**GOOD, "max_participants": "600"})
    assert again.status_code == 422
    assert "other settings" in again.text


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "give the trial a name"),
        ("name", "-x", "does not begin with -"),
        ("arms", "one", "at least two arms"),
        ("arms", "one\none", "the same name"),
        ("max_participants", "many", "whole number"),
        ("max_participants", "", "a whole number"),
        ("epsilon", "0", "0.001 to 100"),
        ("epsilon", "nan", "0.001 to 100"),
        ("delta", "60", "below 50"),
        ("difference", "100", "smaller than 100"),
        ("difference", "-3", "above 0"),
        ("base", "101", "from 0 to 100"),
        ("enrolment", "continuous", "needs a deadline"),
        ("release", "scheduled", "needs a deadline"),
        ("outcomes", "colours", "choose one of these"),
        ("sites", "Leeds\nLeeds", "different names"),
        ("deadline", "soon", "number of days"),
        ("accrual", "40/year", "10/week or 40/month"),
        ("start", "soon", "a day, such as 2027-03-01"),
        ("question", "x" * 501, "one line"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(
    place: Service, field: str, value: str, words: str
) -> None:
    visit = place.visit("manager")
    for do in ("review", "create"):
        answer = visit.send("/new", do=do, **{**GOOD, field: value})
        assert answer.status_code == 422
        beside = answer.text.partition(f'id="{field}-wrong"')[2].partition("</p>")[0]
        assert words.lower() in html.unescape(beside).lower()
    assert not place.home.store.list_names()


def test_people_may_come_by_the_month() -> None:
    assert read_form({"accrual": "7/week"})["accrual"] == 1.0
    assert 1.3 < read_form({"accrual": "40/month"})["accrual"] < 1.33


def test_numbers_are_in_their_own_units(place: Service) -> None:
    visit = place.visit("manager")
    units = {"outcomes": "numbers", "low": "-5", "high": "15", "difference": "4"}
    more = {"direction": "min", "deadline": "2", "release": "scheduled", "enrolment": "continuous"}
    form = {**GOOD, **units, **more, "blinding": "codes", "returning": "same-arm"}
    assert visit.send("/new", do="create", **form).status_code == 303
    made = place.home.trial("made here").protocol
    assert (made.low, made.high, made.direction) == (-5, 15, "min")
    assert made.strategy.outcomes == "numbers"
    assert made.strategy.target_difference == pytest.approx(0.2)
    assert (made.deadline, made.release, made.enrolment) == (172_800, "scheduled", "continuous")
    assert (made.blinding, made.returning) == ("codes", "same-arm")


@pytest.mark.parametrize(("trust", "script"), [("local", script_hash()), ("global", None)])
def test_what_an_outcome_answers_is_asked_for_and_shown(
    place: Service, trust: str, script: str | None
) -> None:
    visit = place.visit("manager")
    asked = {**GOOD, "question": " Did you sleep \n well? ", "trust": trust}
    assert "Did you sleep well?" in visit.send("/new", do="review", **asked).text
    assert visit.send("/new", do="create", **asked).status_code == 303
    made = place.home.trial("made here").protocol
    assert (made.question, made.script) == ("Did you sleep well?", script)
    assert "<q>Did you sleep well?</q>" in visit.get("/t/made%20here").text


def test_a_trial_without_a_question_is_written_down_as_before(place: Service) -> None:
    visit = place.visit("manager")
    assert visit.send("/new", do="create", **GOOD).status_code == 303
    made = place.home.trial("made here")
    assert made.protocol.question == ""
    assert "Each outcome answers" not in visit.get("/t/made%20here").text


def test_blinded_sites_and_the_public_see_what_an_outcome_answers(place: Service) -> None:
    asked = "Was the pain <gone> after two hours?"
    place.trial("blind", blinding="codes", question=asked)
    place.trial("open", question=asked)
    place.home.token_table.publish("open", "a test")
    shown = "<q>Was the pain &lt;gone&gt; after two hours?</q>"
    assert shown in place.visit("site", "blind", "Leeds").get("/t/blind").text
    assert shown in place.visit().get("/p/open").text


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost", "[::1]:8642", "trial.example.org"])
def test_who_publishes_on_this_machine_alone_is_told_so(place: Service, host: str) -> None:
    words, alone = "by which others cannot reach it", host != "trial.example.org"
    place.trial("dose")
    place.trial("blind", blinding="codes")
    visit = place.visit("manager")
    asked = visit.get("/t/dose/publish", Host=host).text
    assert (words in asked) == alone
    assert (f"as {host.partition(':')[0]}, by" in asked) == (alone and "::" not in host)
    assert words not in visit.get("/t/blind/publish", Host=host).text, "it cannot be published"
    assert words not in visit.get("/t/dose", Host=host).text
    place.home.token_table.publish("dose", "a test")
    assert (words in visit.get("/t/dose", Host=host).text) == alone
    assert words not in visit.get("/t/dose/publish", Host=host).text, "it is withdrawn there"
    assert words not in visit.get("/p/dose", Host=host).text


def test_a_browser_whose_login_has_expired_sees_public_pages(place: Service) -> None:
    place.trial("open")
    place.home.token_table.publish("open", "a test")
    visit = place.visit()
    visit.client.cookies.set(LOGIN_COOKIE, "a login of yesterday")
    assert visit.get("/p/open").status_code == 200
    assert visit.get("/p/open/transcript.json").status_code == 200
    assert visit.get("/t/open").headers["location"] == "/p/open"


# --- the plan -------------------------------------------------------------------------


def test_a_plan_answers_in_words_and_pictures(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: True)
    visit = place.visit("manager")
    form = {**GOOD, "difference": "60", "name": "", "max_participants": ""}
    shown = visit.send("/new/plan", **form)
    assert shown.status_code == 200
    assert "participants on average" in shown.text
    assert "participants leaves a margin" in shown.text
    assert re.search(r'data-use="\d+" hidden>Use \d+ as the maximum<', shown.text)
    half = visit.send("/new/plan", **form, accrual="40/month", delay="soon").text
    assert "<li>Days until an outcome is known: this must be a number of days" in half
    assert half.partition("<p hidden")[0].endswith(shown.text.partition("<p hidden")[0])
    review = visit.send("/new", do="review", **{**GOOD, "difference": "60"}).text
    assert "60 percentage points. The trial is designed for it, with the strategy bet-se." in review
    assert "participants on average" in review
    assert shown.text.count("<svg") == 2
    assert "style=" not in shown.text
    made: list[str] = []
    monkeypatch.setattr(planner, "plan", lambda *_, **__: made.append(""))
    assert visit.send("/new/plan", **form).text == shown.text
    assert not made
    plain = visit.send("/new", do="plan", **form).text  # without script
    assert "participants on average" in plain
    assert 'value="60"' in plain
    assert 'id="name-wrong"' not in plain


def test_a_plan_knows_the_arms_the_day_and_the_power(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: True)
    visit = place.visit("manager")
    form = {**GOOD, "difference": "60", "max_participants": "40"}
    shown = visit.send("/new/plan", **form).text
    assert "Success rates: one 80 %, two 20 %." in shown
    assert "In these simulations one is best, only because it is the first in the list" in shown
    power = (
        r"Power: at the target difference, (\d+)% of such trials identify the best arm within 40 "
    )
    right = re.search(power, shown)
    answered = re.search(r"simulated trials\), and (\d+)% come to any conclusion\.", shown)
    assert right is not None
    assert answered is not None
    assert 0 < int(right[1]) <= int(answered[1]) < 100
    assert "how likely an answer is" in shown
    early = visit.send("/new/plan", **{**form, "start": "2027-03-01"}).text
    assert "First day of enrolment: to say when the trial ends, give the enrolment rate" in early
    assert "participants on average" in early
    days = {**form, "accrual": "40/month", "delay": "7"}
    assert "it is expected to end on" not in visit.send("/new/plan", **days).text
    made: list[str] = []
    monkeypatch.setattr(planner, "plan", lambda *_, **__: made.append(""))
    dated = visit.send("/new/plan", **{**days, "start": "2027-03-01", "arms": "old\nyoung"}).text
    assert "Success rates: old 80 %, young 20 %." in dated
    band = r"\d+ \w+ 2027 \(eight of ten such trials: \d+ \w+ 2027 … \d+ \w+ 2027\)"
    assert re.search(rf"if it begins on 1 Mar 2027, it is expected to end on {band}", dated)
    assert not made


def test_a_plan_of_numbers_is_in_their_units(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: True)
    visit = place.visit("manager")
    form = {**GOOD, "outcomes": "numbers", "low": "-10", "high": "10", "difference": "12"}
    form |= {"max_participants": "40"}
    shown = visit.send("/new/plan", **form).text
    assert (
        "Mean outcomes: one 6, two -6, where outcomes lie between -10 and 10 and more is" in shown
    )
    for words in ("Success rates", "success rates", "gap 0.6"):
        assert words not in shown
    assert "between the best arm and the next, in the units of the outcomes;" in shown
    heads = re.findall(r"<th[^>]*>([\d.]+)</th>", shown)
    assert heads == ["3", "6", "9", "12"], "true differences, in the table of power"
    made: list[str] = []
    monkeypatch.setattr(planner, "plan", lambda *_, **__: made.append(""))
    other = {**form, "low": "0", "high": "100", "difference": "60", "direction": "min"}
    shown = visit.send("/new/plan", **other).text
    assert "Mean outcomes: one 20, two 80, where outcomes lie between 0 and 100 and less" in shown
    assert not made, "the same share of another range needs no other simulations"


def test_a_plan_says_what_success_is_where_no_is_better(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: True)
    form = {**GOOD, "difference": "60", "max_participants": "40", "direction": "min"}
    shown = place.visit("manager").send("/new/plan", **form).text
    assert "Success rates (a success is the answer no): one 80 %, two 20 %." in shown


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("12", "12 participants a day, which is about 365 a month"),
        ("1", "1 participant a day, which is about 30.4 a month"),
        ("1,5/day", "1.5 participants a day, which is about 45.7 a month"),
        ("10 / week", "10 participants a week, which is about 1.43 a day"),
        ("2000/month", "2,000 participants a month, which is about 65.7 a day"),
    ],
)
def test_it_is_said_how_the_pace_was_read(place: Service, typed: str, words: str) -> None:
    visit = place.visit("manager")
    answer = visit.send("/new/plan", **{**GOOD, "accrual": typed, "arms": "one", "name": ""}).text
    assert f'data-wrong="name arms" data-read="Read as {words}."' in answer
    again = visit.send("/new", do="back", **{**GOOD, "accrual": typed}).text
    assert f'<p class="hint read" id="accrual-read" role="status">Read as {words}.</p>' in again
    for unread in ("", "soon"):
        assert 'data-read=""' in visit.send("/new/plan", **{**GOOD, "accrual": unread}).text


def test_the_last_look_says_when_the_trial_is_planned(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = place.visit("manager")
    form = {**GOOD, "difference": "60", "accrual": "40/month", "delay": "7"}
    dated = {**form, "start": "2027-03-01"}
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: False)
    assert (
        "Planned to begin on 1 Mar 2027. Only the plan"
        in visit.send("/new", do="review", **dated).text
    )
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: True)
    assert "Planned to" not in visit.send("/new", do="review", **form).text
    ends = {}
    for enrolment in ("waiting", "continuous"):
        said = {**dated, "deadline": "14", "enrolment": enrolment}
        plan, review = visit.send("/new/plan", **said), visit.send("/new", do="review", **said)
        way = plan.text.partition(f"With {enrolment} enrolment")[2]
        band = re.search(r"eight of ten such trials: ([^)]*) … ([^)]*)\)", way)
        assert band is not None
        ends[enrolment] = f"between {band[1]} and {band[2]}"
        assert (
            f"Planned to begin on 1 Mar 2027, planned to end {ends[enrolment]}: eight of ten "
            "simulated trials did, with 40 participants a month, which is about 1.31 a day. Only "
            "the plan uses this: it is not stored"
        ) in review.text
    assert len(set(ends.values())) == 2
    assert visit.send("/new", do="create", **dated).status_code == 303
    assert "2027" not in place.home.trial("made here").protocol.text


def test_a_plan_that_cannot_be_made_yet_is_said(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "ready", lambda _seconds, _days: False)
    visit = place.visit("manager")
    assert "data-again" in visit.send("/new/plan", **GOOD).text
    wrong = visit.send("/new/plan", **{**GOOD, "epsilon": "x", "arms": ""}).text
    assert "0.001 to 100" in wrong
    assert "at least two arms" in wrong


# --- what pages show ------------------------------------------------------------------


class Active(HTMLParser):
    """Finds what a page does by itself: scripts in it, and what events start."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "script" and not str(known.get("src")).startswith("/static/"):
            self.found.append(tag)
        self.found += [name for name in known if name.startswith("on")]
        links = [str(known[name]) for name in ("href", "src", "action") if name in known]
        self.found += [link for link in links if not link.startswith(("/", "#"))]


def active(text: str) -> list[str]:
    """All of that, and links to elsewhere."""
    parser = Active()
    parser.feed(text)
    return parser.found


@pytest.mark.parametrize("name", NASTY)
def test_names_are_text_on_every_page(place: Service, name: str) -> None:
    made = Trial.create(
        place.url,
        name,
        [name, "b", "c"],
        bet_se(0.1, 1.0, target_difference=0.5),
        900,
        sites=[name],
    )
    made.tell_many({one.id: 1.0 for one in made.ask(30, site=name).assignments})
    made.manage("close-site", name, name)
    made.close()
    place.home.token_table.publish(name, "a test")
    place.home.tokens.make(name, "monitor", name, name)
    visit = place.visit("manager")
    at = f"/t/{quote(name, safe='')}"
    paths = ["", "/manage", "/manage/stop", "/manage/drop-arm", "/publish", "/audit-trail"]
    public = f"/p/{quote(name, safe='')}"
    for path in ["/", "/tokens", *(at + path for path in paths), public, f"{public}/report.html"]:
        answer = visit.get(path)
        assert answer.status_code == 200, path
        assert active(answer.text) == []
        assert "zq" * 9 not in answer.text
        assert name in html.unescape(answer.text)
    table = visit.get(f"{at}/arms.csv")
    rows = list(csv.reader(io.StringIO(table.text)))
    assert rows[0][0] == "arm"
    assert rows[1][0].endswith(name)
    assert not rows[1][0].startswith(("=", "+", "-", "@"))
    names = table.headers["content-disposition"].partition("filename=")[2].strip('"')
    assert set(names) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", " =1", "＠x"])
def test_no_cell_is_a_formula(place: Service, name: str) -> None:
    Trial.create(place.url, "dose", [name, "b"], bet_se(0.1, 1.0), 90).close()
    rows = list(csv.reader(io.StringIO(place.visit("manager").get("/t/dose/arms.csv").text)))
    assert [row[0] for row in rows] == ["arm", f"'{name}", "b"]


def test_no_page_has_an_outcome_a_style_a_script_of_its_own_or_an_address_of_others(
    place: Service,
) -> None:
    planted = (731_317_731.25, 731_317_731.5)
    strategy = bet_se(0.1, 1.0, target_difference=0.5, outcomes="numbers")
    made = Trial.create(place.url, "dose", ["a", "b", "c"], strategy, 90, range=(0, 1e9))
    asked = made.ask(12).assignments
    made.tell_many({one.id: planted[0] for one in asked[:9]})
    made.amend(asked[0].id, planted[1])
    made.close()
    place.home.token_table.publish("dose", "a test")
    visit = place.visit("manager")
    fetched = [path for path in PAGES if "svg" not in path] + ["/p/dose", "/p/dose/report.html"]
    for path in fetched:
        text = visit.get(path).text
        assert "731317731" not in text.replace(",", "").replace("_", ""), path
        assert not any(one.id in text for one in asked), path
        if path.endswith((".html", ".json", ".csv")):
            continue
        assert active(text) == []
        for never in ("style=", "<style", "http://", "https://"):
            assert never not in text.replace("http://testserver/p/dose<", ""), path


def test_the_picture_is_drawn_once_for_all_who_look(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def draw(said: Any) -> Any:
        drawn.append("")
        return draw_trial(said)

    monkeypatch.setattr("discreet.service.pages.trial.draw_trial", draw)
    monkeypatch.setattr(running.home._seen, "_seconds", -1.0)
    visit = running.visit("monitor", "dose")
    texts = {visit.get("/t/dose/means.svg").text for _ in range(5)}
    assert len(texts) == len(drawn) == 1
    made = Trial.open(running.url, "dose")
    made.manage("pause", "snow")
    made.close()
    visit.get("/t/dose/means.svg")
    assert len(drawn) == 2


def test_people_are_drawn_as_far_as_a_visitor_may_know(running: Service) -> None:
    manager, monitor = running.visit("manager", "dose"), running.visit("monitor", "dose")
    assert trial.NOTED in manager.get("/t/dose").text
    assert "time (UTC)" in manager.get("/t/dose/participants.svg").text
    assert trial.IN_ORDER in monitor.get("/t/dose").text
    drawn = monitor.get("/t/dose/participants.svg").text
    assert "time (UTC)" not in drawn
    assert "Leeds" in drawn
    assert "participants.svg" not in running.visit("site", "dose", "Leeds").get("/t/dose").text
    running.home.token_table.publish("dose", "a test")
    assert "time (UTC)" not in manager.get("/p/dose/participants.svg").text


def test_a_page_asks_for_a_mark_that_changes_with_it(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.home._seen, "_seconds", -1.0)
    visit = running.visit("monitor", "dose")
    mark = visit.get("/t/dose/head").text
    assert f'data-mark="{mark}"' in visit.get("/t/dose").text
    assert visit.get("/t/dose/head").text == mark
    made = Trial.open(running.url, "dose")
    made.ask(1, site="Lyon")
    made.close()
    assert visit.get("/t/dose/head").text != mark


def test_the_record_is_paged_from_its_end(running: Service) -> None:
    made = Trial.open(running.url, "dose")
    for _ in range(15):
        made.manage("pause", "a")
        made.manage("resume", "b")
    made.close()
    visit = running.visit("monitor", "dose")
    first = visit.get("/t/dose").text
    before = first.partition("?before=")[2].partition("#")[0]
    assert "The trial began" not in first
    older = visit.get(f"/t/dose?before={before}").text
    assert "The trial began" in older
    assert "Older events" not in older
    assert visit.get("/t/dose?before=x").status_code == 200


def test_a_wrong_address_has_the_head_of_every_page(running: Service) -> None:
    """Who is logged in sees that; who is not is shown the way in, and nothing else."""
    lost = running.visit("manager").get("/no/such/page", Accept="text/html")
    assert lost.status_code == 404
    assert '<a href="/tokens">Tokens</a>' in lost.text
    assert "a manager (manager)" in lost.text
    assert "Log out" in lost.text
    assert 'href="/login"' not in lost.text
    site = running.visit("site", "dose", "Leeds").get("/no/such/page", Accept="text/html").text
    assert "a site (site, Leeds)" in site
    assert "/tokens" not in site
    stranger, stale = running.visit(), running.visit()
    stale.client.cookies.set(LOGIN_COOKIE, "made up")
    for visit in (stranger, stale):
        for path in ("/no/such/page", "/p/dose"):
            page = visit.get(path, Accept="text/html")
            assert page.status_code == 404
            assert '<a href="/login">Log in</a>' in page.text
            assert not any(words in page.text for words in ("Log out", "All trials", "/tokens"))


@pytest.mark.parametrize("path", ["/new/plan", "/logout", "/t/dose/site/enrol"])
def test_what_only_a_form_makes_is_a_page_too(running: Service, path: str) -> None:
    page = running.visit("manager").get(path, Accept="text/html")
    assert page.status_code in (404, 405)
    assert "<h1>This did not work</h1>" in page.text
    if page.status_code == 405:
        assert "go back, and press the button there" in page.text
        assert page.headers["allow"] == "POST"
        plain = running.visit("manager").get(path)
        assert plain.headers["content-type"] == "application/problem+json"


def test_the_page_of_codes_that_is_loaded_again_asks_first(place: Service) -> None:
    """A reload is a look at the page; the list is shown, and noted, by the button."""
    place.trial("blind", blinding="codes")
    manager = place.visit("manager")
    code = re.findall(r"<code>(\w+)</code>", manager.send("/t/blind/codes").text)[0]
    before = Trial.open(place.url, "blind").audit_trail()
    again = manager.get("/t/blind/codes", Accept="text/html")
    assert (again.status_code, "Show the arm" in again.text) == (200, True)
    assert code not in again.text
    assert "The audit trail has noted" not in again.text
    assert Trial.open(place.url, "blind").audit_trail() == before
    place.trial("seen")
    assert "This trial is not blinded" in manager.get("/t/seen/codes").text
    assert "This trial is not blinded" in manager.send("/t/seen/codes").text


def test_a_wrong_address_is_answered_without_the_database(
    running: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = running.visit("manager")

    def fail(_: str) -> None:
        raise StoreError("the database cannot be used now")

    monkeypatch.setattr(running.home.tokens, "find_login", fail)
    page = visit.get("/no/such/page", Accept="text/html")
    assert page.status_code == 404
    assert "There is no page at this address" in page.text
