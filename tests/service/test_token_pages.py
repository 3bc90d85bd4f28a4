"""The page of tokens where a trial has many links for participants."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.trials.store.tokens import Token
from discreet.trials.verbs import PARTICIPANT
from tests.support.visitors import Service, service


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path) as made:
        made.trial("dose")
        made.trial("second")
        yield made


def link(place: Service, participant: int, trial: str = "dose") -> Token:
    """A link of a participant; nobody answers with it."""
    words = f"invitation of participant {participant}"
    tokens = place.home.tokens
    return tokens.make(words, PARTICIPANT, "a test", trial, "Leeds", 7.0, f"{participant}-x")[1]


def named(page: str) -> list[str]:
    """Whose tokens a page lists."""
    return re.findall(r'<th scope="row">([^<]*) <span class="hint">no. [0-9]+</span></th>', page)


def test_links_of_participants_are_one_row_a_trial(place: Service) -> None:
    made = [link(place, participant) for participant in range(1, 38)]
    link(place, 1, "second")
    for one in made[:30]:
        place.home.tokens.revoke(one.number, "a test")
    for one in made[30:34]:
        place.home.token_table.note_use(one.number)
    visit = place.visit("manager")
    page = visit.get("/tokens").text
    assert named(page) == ["a manager"]
    words = "37 links for participants of dose: 3 not opened yet, 4 opened, 30 expired or revoked."
    assert words in page
    assert "1 link for participants of second: 1 not opened yet." in page
    links = visit.get("/tokens?links=dose").text
    assert len(named(links)) == 37
    assert named(links)[:2] == ["invitation of participant 37", "invitation of participant 36"]
    path = f"/tokens/{made[-1].number}/revoke"
    assert path in links
    assert 'href="/tokens?links=dose"' in visit.get(path).text
    assert visit.send(path).headers["location"] == "/tokens?links=dose"
    assert path not in visit.get("/tokens?links=dose").text


def test_of_very_many_tokens_a_page_shows_some_and_says_so(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.service.pages.account.MOST", 10)
    links = [link(place, participant) for participant in range(1, 26)]
    tokens = place.home.tokens
    old = tokens.make("Ada", "monitor", "a test")[1]
    for number in range(12):
        tokens.revoke(tokens.make(f"Bob {number}", "monitor", "a test")[1].number, "a test")
    visit = place.visit("manager")
    page = visit.get("/tokens").text
    assert len(named(page)) == 10
    assert old.name in named(page)[:2]  # those that work are before those that do not
    assert "Tokens 1 to 10 of 14 are shown, those that work first." in page
    rest = visit.get("/tokens?from=10").text
    assert len(named(rest)) == 4
    assert 'href="/tokens?from=10"' in page
    pages = [visit.get(f"/tokens?links=dose&from={start}").text for start in (0, 10, 20)]
    shown = [name for one in pages for name in named(one)]
    assert shown == [one.name for one in reversed(links)]
    assert "/tokens?links=dose&amp;from=10" in pages[0]
    assert "/tokens?links=dose&amp;from=10" in pages[2]  # and back
    for wrong in ("-1", "x", "1e9", "99999999999999999999"):
        assert visit.get(f"/tokens?from={wrong}").status_code == 200


def test_links_of_another_trial_are_nobodys_to_see(place: Service) -> None:
    link(place, 1)
    other = place.visit("manager", "second")
    assert "participants of dose" not in other.get("/tokens").text
    hidden, none = (other.get(f"/tokens?links={name}") for name in ("dose", "no-such"))
    assert hidden.status_code == none.status_code == 404
    assert hidden.text == none.text
