"""Callers who share a trial: each with a name, some bound to a site, and each request
done once.
"""

import hmac
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from discreet import bet_se, ctb_tt, respond
from discreet.errors import InvalidInputError
from discreet.trials.protocol import canonical
from discreet.trials.store import schema
from discreet.trials.trial import TrialUser
from tests.support.stores import create, database

BETS = bet_se(0.05, 1.0)
UNKNOWN = "there is no assignment"


def two_sites(url: str) -> tuple[Any, TrialUser, TrialUser]:
    trial = create(url, strategy=BETS, sites=["Leeds", "Lyon"])
    return trial, trial.as_user("nurse", "Leeds"), trial.as_user("clerk", "Lyon")


# --- sites ----------------------------------------------------------------------------


def test_whoever_is_bound_asks_for_its_site(url: str) -> None:
    trial, leeds, lyon = two_sites(url)
    leeds.ask(2)
    lyon.ask(site="Lyon")
    assert [(site.name, site.participants) for site in trial.status().sites] == [
        ("Leeds", 2),
        ("Lyon", 1),
    ]
    for call in (leeds.ask, leeds.open_assignments):
        with pytest.raises(InvalidInputError, match="you call for Leeds"):
            call(site="Lyon")
    assert {one.site for one in leeds.open_assignments()} == {"Leeds"}
    noted = [(entry.user, entry.action, entry.site) for entry in trial.audit_trail()]
    assert noted[::-1][1:] == [
        *(("nurse", "ask", "Leeds"), ("clerk", "ask", "Lyon")),
        ("nurse", "open", "Leeds"),
    ]


@pytest.mark.parametrize("call", ["tell", "amend", "miss", "reissue"])
def test_another_sites_people_are_nobody(call: str, url: str) -> None:
    trial, leeds, lyon = two_sites(url)
    id = leeds.ask().assignments[0].id
    before = trial.audit_trail()
    outcome = [1.0] if call in ("tell", "amend") else []
    with pytest.raises(InvalidInputError, match=UNKNOWN) as foreign:
        getattr(lyon, call)(id, *outcome)
    with pytest.raises(InvalidInputError, match=UNKNOWN) as wrong:
        getattr(lyon, call)("1-0123456789abcdef", *outcome)
    assert str(foreign.value).replace(id, "") == str(wrong.value).replace("1-0123456789abcdef", "")
    assert trial.audit_trail() == before
    assert trial.status().pending == 1
    if call != "amend":
        getattr(leeds, call)(id, *outcome)


def test_managers_are_bound_to_no_site(url: str) -> None:
    _, leeds, _ = two_sites(url)
    with pytest.raises(InvalidInputError, match="ask a manager"):
        leeds.manage("pause", "a holiday")


def test_callers_of_one_commit_are_noted_each(url: str) -> None:
    trial, leeds, lyon = two_sites(url)
    one, two = leeds.ask().assignments[0], lyon.ask().assignments[0]
    leeds.tell(one.id, 1)
    lyon.tell(two.id, 0)
    assert [entry.user for entry in trial.audit_trail()[:2]] == ["clerk", "nurse"]


# --- requests -------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Any, str, str | None], Any]] = {
    "tell": lambda trial, id, key: trial.tell(id, 1.0, key=key),
    "tell_many": lambda trial, id, key: trial.tell_many({id: 0.0}, key=key),
    "miss": lambda trial, id, key: trial.miss(id, key=key),
    "reissue": lambda trial, id, key: trial.reissue(id, key=key),
    "manage": lambda trial, id, key: trial.manage("pause", "a holiday", key=key),
}


@pytest.mark.parametrize("call", CHANGES)
def test_a_request_is_done_once(call: str, url: str) -> None:
    trial = create(url, strategy=BETS)
    id = trial.ask().assignments[0].id
    first = CHANGES[call](trial, id, "k")
    noted, head = trial.audit_trail(), trial.status().head
    if call == "manage":
        trial.manage("resume", "back")
        noted, head = trial.audit_trail(), trial.status().head
    assert CHANGES[call](trial, id, "k") == first
    assert (trial.audit_trail(), trial.status().head) == (noted, head)
    assert trial.status().paused is False


def test_an_amendment_is_made_once(url: str) -> None:
    trial = create(url, strategy=BETS)
    id = trial.ask().assignments[0].id
    trial.tell(id, 1.0)
    trial.amend(id, 0.0, key="k")
    noted = trial.audit_trail()
    trial.amend(id, 0.0, key="k")
    assert trial.audit_trail() == noted


def test_an_answer_is_given_once(url: str) -> None:
    trial = create(url, strategy=ctb_tt(1.0, 0.1))
    id = trial.ask().assignments[0].id
    answer = respond(1.0, 1.0)
    first = trial.answer(id, answer, key="k")
    assert (first.new, trial.answer(id, answer, key="k")) == (1, first)
    assert trial.answer(id, answer).new == 0


def test_a_key_is_for_one_thing(url: str) -> None:
    trial = create(url, strategy=BETS)
    one, two = (each.id for each in trial.ask(2, key="k").assignments)
    trial.tell(one, 1.0, key="k")
    for otherwise in (
        lambda: trial.tell(two, 1.0, key="k"),
        lambda: trial.miss(two, key="k"),
        lambda: trial.manage("pause", "a holiday", key="k"),
    ):
        with pytest.raises(InvalidInputError, match="was used before, for something else"):
            otherwise()
    assert trial.status().pending == 1
    assert trial.tell(one, 0.0, key="k").new == 1, "whatever it carries"
    assert trial.miss(one, key="k").new == 1


def test_what_is_refused_can_be_asked_again(url: str) -> None:
    trial = create(url, strategy=BETS)
    with pytest.raises(InvalidInputError, match="is not paused"):
        trial.manage("resume", "nothing to resume", key="k")
    trial.manage("pause", "a holiday")
    trial.manage("resume", "now", key="k")
    assert trial.status().paused is False


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_of_a_request_no_outcome_is_kept(outcome: float, url: str) -> None:
    """What is kept follows from the trial's secret, the id, the key and the caller."""
    trial = create(url, strategy=BETS)
    id = trial.ask().assignments[0].id
    trial.tell(id, outcome, key="k")
    with database(url) as connection:
        secret = bytes(connection.execute(sa.select(schema.secrets.c.key)).scalar_one())
        hash, answer = connection.execute(sa.select(schema.requests)).one()[1:]
    about = hmac.digest(secret, canonical([id]).encode(), "sha256").hex()
    told = {"new": 1, "already_told": [], "late": []}
    assert bytes(hash) == hmac.digest(secret, b"\0k", "sha256")
    stored = {"request": ["tell", about], "user": trial.user, "answer": told}
    assert answer == canonical(stored)


def test_a_site_learns_nothing_of_a_participant_of_another_site(url: str) -> None:
    """Whoever returns keeps the assignment, at the site that enrolled them: another
    site gets neither the id, with which outcomes are recorded, nor the arm.
    """
    trial = create(url, strategy=bet_se(0.05, 1.0), returning="same-arm", sites=["Leeds", "Lyon"])
    leeds, lyon = (trial.as_user("staff", site) for site in ("Leeds", "Lyon"))
    (given,) = leeds.ask(participant="ann").assignments
    for people in (["ann"], ["bob", "ann"]):
        with pytest.raises(InvalidInputError, match="enrolled at another site") as refused:
            lyon.ask(participants=people)
        said = str(refused.value)
        assert not [word for word in (given.id, given.arm, "Leeds", "ann") if word in said]
    assert trial.status().participants == 1
    assert leeds.ask(participant="ann").assignments == (given,)
    assert trial.ask(participant="ann", site="Lyon").assignments == (given,), "a manager may"
