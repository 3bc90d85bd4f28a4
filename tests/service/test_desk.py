"""A site's site, as plain forms: what it shows, what it does once, what no address has
in it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se, ctb_tt
from discreet.service.pages.site import sentence, short_code, span
from discreet.service.state import AppState
from tests.support.served import Visit, behind

ARMS = ["5 mg", "10 mg"]
DESK = "/t/dose/site"
ID = re.compile(r"\d+-[0-9a-f]{16}")


@pytest.fixture
def home(tmp_path: Path) -> AppState:
    return AppState(f"sqlite:///{tmp_path}/service.db")


@pytest.fixture
def base(home: AppState) -> Iterator[str]:
    with behind(home) as address:
        yield address


def start(home: AppState, **settings: Any) -> Trial:
    usual: dict[str, Any] = {"strategy": bet_se(0.05, 1.0), "max_participants": 500}
    return Trial.create(home.url, "dose", ARMS, **usual | settings)


def staff(home: AppState, base: str, site: str | None = None) -> Visit:
    role = "manager" if site is None else "site"
    secret = home.tokens.make(f"{site} site", role, "test", site and "dose", site)[0]
    return Visit(base, secret)


def enrol(visit: Visit, **fields: str) -> httpx.Response:
    return visit.send(f"{DESK}/enrol", visit.get(DESK).text, **fields)


def id_in(page: str) -> str:
    found = ID.search(page)
    assert found is not None
    return found.group()


def participants(trial: Trial) -> int:
    return trial.status().participants


@pytest.mark.parametrize("length", [120, 180, 195])
def test_a_site_with_a_long_name_enrols_one_person_after_the_other(
    home: AppState, base: str, length: int
) -> None:
    """Its name leaves the key of each form whole."""
    name = "L" * length
    trial = start(home, sites=[name, "Lyon"])
    site = staff(home, base, name)
    for number in (1, 2):
        page = site.get(DESK).text
        first, again = (site.send(f"{DESK}/enrol", page) for _ in range(2))
        assert first.url == again.url
        assert participants(trial) == number


def test_a_form_that_is_sent_again_enrols_once(home: AppState, base: str) -> None:
    trial = start(home)
    site = staff(home, base)
    page = site.get(DESK).text
    first = site.send(f"{DESK}/enrol", page)
    again = site.send(f"{DESK}/enrol", page)
    assert first.url == again.url
    assert participants(trial) == 1
    assert id_in(first.text) == id_in(again.text)
    reloaded = site.get(DESK).text
    assert "Participant 1 was enrolled a moment ago" in reloaded
    assert f"<code>{short_code(id_in(first.text))}</code>" in reloaded
    second = site.send(f"{DESK}/enrol", reloaded)
    assert second.url != first.url
    assert participants(trial) == 2
    for one in (first.text, second.text):
        mixed = site.send(f"{DESK}/tell", one, once="a", outcome="1").text
    assert "This page was already used for something else" in mixed
    assert "key" not in mixed.split('role="alert"')[1].split("</p>")[0]


def test_no_address_has_more_in_it_than_a_number(home: AppState, base: str) -> None:
    start(home, returning="refuse")
    page = enrol(staff(home, base), participant="Ada Lovelace")
    assert str(page.url).endswith("/t/dose/site/1?said=enrolled")
    assert "Lovelace" not in page.text
    arm = re.search(r'<p class="arm">(.*?)</p>', page.text)
    assert arm is not None
    assert arm.group(1) in ARMS
    assert f"<code>{short_code(id_in(page.text))}</code>" in page.text


def test_whoever_came_before_is_refused_in_words(home: AppState, base: str) -> None:
    trial = start(home, returning="refuse")
    site = staff(home, base)
    enrol(site, participant="Ada")
    found = enrol(site, participant=" Ada ")
    assert found.status_code == 422
    assert "This participant took part before, and cannot take part again." in found.text
    assert "Ada" not in found.text
    assert participants(trial) == 1


def test_a_lost_answer_is_found_by_its_key_and_nothing_is_done(home: AppState, base: str) -> None:
    trial = start(home)
    site, once = staff(home, base), "f" * 32
    assert "did not reach the service" in site.get(f"{DESK}?asked={once}").text
    assert participants(trial) == 0
    made = site.send(f"{DESK}/enrol", site.get(DESK).text, once=once)
    assert id_in(site.get(f"{DESK}?asked={once}").text) == id_in(made.text)
    assert participants(trial) == 1
    other = staff(home, base, "Leeds")
    assert "did not reach the service" in other.get(f"{DESK}?asked={once}").text


def test_outcomes_are_taken_once_and_corrected(home: AppState, base: str) -> None:
    trial = start(home)
    site = staff(home, base)
    page = enrol(site).text
    assert (
        "Participant 1: the entry was saved." in site.send(f"{DESK}/tell", page, outcome="1").text
    )
    assert trial.status().pending == 0
    again = site.get(f"{DESK}/1").text
    assert "The outcome of participant 1 is already saved, or recorded as missing." in again
    assert "Save the outcome" not in again
    said = [site.send(f"{DESK}/tell", page, once=f"a{one}", outcome=one).text for one in "01"]
    assert all("an outcome was already recorded" in one for one in said)
    assert "the outcome was corrected" in site.send(f"{DESK}/amend", again, outcome="0").text


@pytest.mark.parametrize("typed", ["", "a few", "1,5", "nan", "inf", "0x1", "150", "-1", "1_0"])
def test_what_is_no_outcome_is_refused_in_words(home: AppState, base: str, typed: str) -> None:
    trial = start(home, range=(0.0, 100.0), strategy=bet_se(0.05, 1.0, outcomes="numbers"))
    site = staff(home, base)
    page = enrol(site).text
    assert "A number from 0 to 100; more is better." in page
    found = site.send(f"{DESK}/tell", page, outcome=typed)
    assert found.status_code == 422
    assert trial.status().pending == 1
    words = re.search(r'<p class="wrong notice".*?>(.*?)</p>', found.text)
    assert words is not None
    assert not typed or typed not in words.group(1)


def test_missing_needs_a_tick(home: AppState, base: str) -> None:
    trial = start(home)
    site = staff(home, base)
    page = enrol(site).text
    assert site.send(f"{DESK}/tell", page).status_code == 422
    assert trial.status().pending == 1
    assert "the entry was saved" in site.send(f"{DESK}/tell", page, sure="yes").text
    assert trial.status().pending == 0


def test_a_new_id_makes_the_old_one_useless(home: AppState, base: str) -> None:
    start(home)
    site = staff(home, base)
    page = enrol(site).text
    found = site.send(f"{DESK}/reissue", page)
    assert "there is a new id" in found.text
    assert id_in(found.text) != id_in(page)
    assert id_in(site.send(f"{DESK}/reissue", page).text) == id_in(found.text)
    old = site.send(f"{DESK}/tell", page, outcome="1")
    assert old.status_code == 422
    assert "There is no assignment" in old.text


def test_an_arm_is_made_known_with_a_reason(home: AppState, base: str) -> None:
    trial = start(home, blinding="codes")
    site = staff(home, base)
    page = enrol(site).text
    assert not any(f">{arm}<" in page for arm in ARMS)
    assert site.send(f"{DESK}/unblind", page, reason="").status_code == 422
    shown = site.send(f"{DESK}/unblind", page, reason="a fall")
    assert any(f'<strong class="arm">{arm}</strong>' in shown.text for arm in ARMS)
    assert not any(arm.replace(" ", "") in str(shown.url) for arm in ARMS)
    act = trial.status().actions[-1]
    assert (act.action, act.about, act.reason) == ("unblind", 1, "a fall")
    site.send(f"{DESK}/unblind", page, reason="a fall")
    assert len(trial.status().actions) == 1


def test_a_site_sees_and_tells_its_own_people_only(home: AppState, base: str) -> None:
    trial = start(home, sites=["Leeds", "Lyon"])
    leeds, lyon = staff(home, base, "Leeds"), staff(home, base, "Lyon")
    page = enrol(leeds).text
    assert "Enrolled just now at Leeds." in page
    assert "No outcome is awaited at Lyon." in lyon.get(DESK).text
    assert 'href="/t/dose/site/1"' in leeds.get(DESK).text
    assert lyon.get(f"{DESK}/1").status_code == 422
    assert id_in(page) not in lyon.get(f"{DESK}/1").text
    for form in ("tell", "amend", "reissue", "unblind"):
        key = {"key": re.findall(r'name="key" value="(\w+)"', lyon.get(DESK).text)[0]}
        about = {"id": id_in(page), "outcome": "1", "sure": "yes", "reason": "x", "once": form}
        found = lyon.post(f"{DESK}/{form}", key | about)
        assert found.status_code in (404, 422), form
    assert trial.status().pending == 1


def test_an_operator_picks_the_site(home: AppState, base: str) -> None:
    trial = start(home, sites=["Leeds", "Lyon"])
    site = staff(home, base)
    assert enrol(site).status_code == 422
    assert enrol(site, site="Paris").status_code == 422
    found = enrol(site, site="Lyon")
    assert str(found.url).endswith("/site/1?said=enrolled&site=Lyon")
    assert [site.participants for site in trial.status().sites] == [0, 1]
    assert 'value="Lyon"' in found.text
    assert site.get(f"{DESK}?site=Paris").status_code == 422


def test_what_is_waited_for_is_said(home: AppState, base: str) -> None:
    trial = start(home, sites=["Leeds", "Lyon"], max_participants=200)
    leeds = staff(home, base, "Leeds")
    asked = trial.ask(200, site="Leeds")
    full = enrol(leeds)
    assert full.status_code == 200
    assert "the button enrols another participant" not in full.text
    waits = re.search(r"This round is full. (\d+) outcomes must come in", full.text)
    assert waits is not None
    assert int(waits.group(1)) == len(asked.assignments)
    trial.manage("close-site", "no staff", "Leeds")
    assert "This site is closed" in leeds.get(DESK).text
    trial.manage("pause", "a check")
    assert "The trial is paused" in leeds.get(DESK).text
    trial.manage("resume", "done")
    trial.manage("stop", "no money")
    over = leeds.get(DESK).text
    assert "The trial is over" in over
    assert "Enrol the next participant" not in over


def test_outcomes_of_another_site_are_said_to_be_awaited_elsewhere(
    home: AppState, base: str
) -> None:
    """Not where, nor whose; and nothing where this site awaits one of them itself."""
    trial = start(home, sites=["Leeds", "Lyon"])
    leeds, lyon, manager = staff(home, base, "Leeds"), staff(home, base, "Lyon"), staff(home, base)
    asked = trial.ask(200, site="Leeds").assignments
    full = enrol(lyon).text
    assert "can be enrolled. They are awaited elsewhere, not at this site.</p>" in full
    assert "No outcome is awaited at Lyon." in full
    assert "Leeds" not in full
    assert "They are awaited elsewhere" in enrol(manager, site="Lyon").text
    for page in (enrol(leeds), enrol(manager, site="Leeds"), lyon.get(DESK)):
        assert page.status_code == 200
        assert "awaited elsewhere" not in page.text
    trial.tell_many({one.id: 1.0 for one in asked[1:]})
    one = enrol(lyon).text
    assert (
        "One outcome must come in before the next participant can be enrolled. It is awaited" in one
    )
    assert "awaited elsewhere" not in enrol(leeds).text


def test_at_the_maximum_nobody_is_kept_waiting_for_a_place(home: AppState, base: str) -> None:
    trial = start(home, max_participants=2)
    site = staff(home, base)
    before = site.get(DESK).text
    trial.ask(2)
    for page in (site.get(DESK).text, site.send(f"{DESK}/enrol", before).text):
        assert "The maximum of 2 participants is reached: nobody else can be enrolled." in page
        assert "Enrol the next participant" not in page
        assert "must come in before" not in page


def test_the_table_says_since_when_and_until_when(home: AppState, base: str) -> None:
    start(home, deadline=3 * 86400.0)
    site = staff(home, base)
    enrol(site)
    assert re.search(r">just now</td>\s*<td[^>]*>in 3 days</td>", site.get(DESK).text)


def test_people_are_found_by_number_code_and_id(home: AppState, base: str) -> None:
    start(home)
    site = staff(home, base)
    id = id_in(enrol(site).text)
    page = site.get(DESK).text
    short = short_code(id)
    spaced = [short.replace("-", gap) for gap in (" ", " - ", "--")]
    for typed in ("1", f" {short} ", short.upper(), *spaced, id):
        assert str(site.send(f"{DESK}/find", page, code=typed).url).endswith("/site/1")
    for typed in ("2", "0", "-1", "Ada", "9" * 30, "20417"):
        refused = site.send(f"{DESK}/find", page, code=typed)
        assert refused.status_code == 422
        notice = refused.text.partition('role="alert"')[2].partition("</p>")[0]
        assert "number in the trial, " in notice
        assert "20417" not in refused.text, "it may be the number of a participant elsewhere"
    another = f"{short[:-1]}{'0' if short[-1] != '0' else '1'}"
    for typed in (another, short[:-1], f"0{short}", f"{short}ffff", f"{id}0", "1-"):
        refused = site.send(f"{DESK}/find", page, code=typed)
        assert refused.status_code == 422, typed
        assert "another id: compare what you typed" in refused.text


def test_a_number_is_that_in_the_trial_and_nothing_else(home: AppState, base: str) -> None:
    """By what else a site knows a participant is an identifier."""
    start(home, returning="refuse")
    page = enrol(staff(home, base), participant="Ada").text + staff(home, base).get(DESK).text
    words = re.sub(r"<[^>]*>", " ", page)
    assert "An identifier from your own files, or a name." in words
    assert re.findall(r"[Nn]umbers?\b.{14}", words) == ["Number in the trial,"]


def test_forms_need_the_key_of_the_login(home: AppState, base: str) -> None:
    trial = start(home)
    site = staff(home, base)
    assert site.send(f"{DESK}/enrol", site.get(DESK).text, key="0" * 64).status_code == 422
    assert participants(trial) == 0


def test_viewers_and_strangers_have_no_desk(home: AppState, base: str) -> None:
    start(home)
    monitor = Visit(base, home.tokens.make("v", "monitor", "test", "dose")[0])
    assert monitor.get(DESK).status_code == monitor.get(f"{DESK}/1").status_code == 403
    stranger = httpx.get(base + DESK, follow_redirects=True)
    assert str(stranger.url).endswith("/login?to=%2Ft%2Fdose%2Fsite")


def test_names_that_are_markup_stay_text(home: AppState, base: str) -> None:
    name = "<b>'\"&amp;?#/"
    start(home, sites=[name, "Lyon"], question="<script>alert(1)</script> & you?")
    site = staff(home, base)
    found = enrol(site, site=name)
    assert found.status_code == 200
    assert "<b>" not in found.text
    assert "<script>alert" not in found.text
    assert "&lt;script&gt;alert" in found.text
    assert (
        "Participant 1: the entry was saved."
        in site.send(f"{DESK}/tell", found.text.replace(name, ""), site="", outcome="1").text
    )


@pytest.mark.parametrize(
    ("direction", "numbers", "better"),
    [
        ("max", False, "Yes is"),
        ("min", False, "No is"),
        ("min", True, "A number from 0 to 72; less"),
    ],
)
def test_the_desk_says_what_is_entered(
    home: AppState, base: str, direction: str, numbers: bool, better: str
) -> None:
    asked = "For how many hours did the pain last?" if numbers else "Was the pain gone?"
    kind = {"strategy": bet_se(0.05, 1.0, outcomes="numbers"), "range": (0, 72)} if numbers else {}
    start(home, question=asked, direction=direction, **kind)
    page = enrol(staff(home, base)).text
    assert page.count(f">{asked}</") == 2, "to tell it, and to correct it"
    assert better in page
    assert "The protocol does not say" not in page


@pytest.mark.parametrize("numbers", [False, True])
def test_where_no_question_is_written_down_the_desk_says_whom_to_ask(
    home: AppState, base: str, numbers: bool
) -> None:
    kind = {"strategy": bet_se(0.05, 1.0, outcomes="numbers"), "range": (0, 72)} if numbers else {}
    start(home, **kind)
    page = enrol(staff(home, base)).text
    assert "The protocol does not say what the outcome is: ask the manager" in page


def test_an_answer_under_local_trust_is_invited_not_told(home: AppState, base: str) -> None:
    trial = start(home, strategy=ctb_tt(1.0, 0.1))
    site = staff(home, base)
    page = enrol(site).text
    assert 'Invite<span class="unseen"> participant 1</span>' in site.get(DESK).text
    assert 'action="/t/dose/site/tell"' not in page
    raw = site.send(f"{DESK}/answer", page, response="1")
    assert raw.status_code == 422
    assert trial.status().pending == 1
    link = site.send(f"{DESK}/invite", page, days="2")
    assert re.search(rf"{base}/a#discreet_[\w-]{{43}}", link.text)
    assert "valid for 2 days" in link.text
    assert "opened on this machine only" in link.text
    assert site.send(f"{DESK}/answer", page, response="rr/1.0/1").status_code == 200
    assert trial.status().pending == 0
    after = site.send(f"{DESK}/invite", page, days="2")
    assert after.status_code == 422
    assert "not waiting for an answer" in after.text.lower()


def link_in(page: str) -> str:
    found = re.search(r"/a#(discreet_[\w-]{43})", page)
    assert found is not None, page
    return found[1]


def test_spans_and_sentences_read_well() -> None:
    seconds = [0, 59, 60, 61, 119, 7200, 86_400, 2 * 86_400, 30 * 86_400 - 5]
    words = [span(one) for one in seconds]
    assert words[:2] == ["less than a minute"] * 2
    assert words[2:5] == ["1 minute", "1 minute", "2 minutes"]
    assert words[5:] == ["2 hours", "24 hours", "2 days", "30 days"]
    assert sentence("no: wait") == "No: wait."
    assert sentence("Over.") == "Over."


@pytest.mark.parametrize("kept", [True, False], ids=["revoked", "forgotten"])
def test_a_form_of_a_login_that_has_ended_says_so_and_leads_back(
    home: AppState, base: str, kept: bool
) -> None:
    """A browser forgets a login of its own accord when its time is over."""
    trial = start(home, sites=["Leeds"])
    site = staff(home, base, "Leeds")
    participant, page = enrol(site).text, site.get(DESK).text
    home.tokens.revoke(1, "test")
    if not kept:
        site.cookies = {}
    enrolled = site.send(f"{DESK}/enrol", page)
    told = site.send(f"{DESK}/tell", participant, id=id_in(participant), outcome="1")
    for answer, nothing in ((enrolled, "nobody was enrolled"), (told, "nothing was done")):
        assert answer.status_code == 403
        ended = "Your login has ended, because it expired or its token was revoked"
        assert f"{ended}, and {nothing}: log in" in answer.text
        assert "bearer" not in answer.text
        assert 'href="/login?to=%2Ft%2Fdose%2Fsite"' in answer.text
    assert participants(trial) == 1
    assert trial.status().pending == 1
