"""Arms that have the same released mean are called level: no page, report or terminal
says that one of them leads.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se, trial_page
from discreet.reports.terminal import render
from discreet.reports.trial import build_status
from discreet.reports.trial_text import choose_best_mark, name_tied_arms
from discreet.service.pages.trial_text import known_words
from discreet.service.state import AppState
from discreet.trials.operations import ADD, DROP
from tests.support.keys import seeded_keys
from tests.support.served import Visit, behind

LEADS = ("doing best", "best so far", "best arm so far", "did best so far")


@pytest.fixture
def home(tmp_path: Path) -> AppState:
    return AppState(f"sqlite:///{tmp_path}/t.db")


@pytest.fixture
def tied(home: AppState, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """A trial in which everybody is well: without noise, all means are equal. Coins
    could give the first eight people one arm.
    """
    seeded_keys(monkeypatch)
    settings: dict[str, Any] = {"strategy": bet_se(0.001, trust="none"), "sites": ["Leeds"]}
    arms = ["usual care", "new care"]
    trial = Trial.create(home.url, "dose", arms, max_participants=400, **settings)
    while not trial.status().releases:
        trial.tell_many({one.id: 1.0 for one in trial.ask(20, site="Leeds").assignments})
    return trial


def stand(*means: float | None, best: str | None = "a", **more: Any) -> dict[str, Any]:
    arms = [{"name": name, "mean": mean} for name, mean in zip("abcd", means, strict=False)]
    nothing: dict[str, Any] = {"conclusive": False, "stopped": False, "actions": (), "leads": ()}
    return nothing | {"arms": arms, "recommendation": best} | more


def lead(better_by: float) -> dict[str, Any]:
    return {"name": "a", "over": ["b"], "better_by": better_by, "participants": 9}


def act(action: str) -> dict[str, Any]:
    return {"action": action, "about": "b", "reason": "why", "means": "so"}


@pytest.mark.parametrize(
    ("status", "level", "mark"),
    [
        (stand(0.5, 0.4), "", "best so far"),
        (stand(0.5, 0.5), "a and b", ""),
        (stand(0.5, 0.5, 0.5, 0.1), "a, b and c", ""),
        (stand(0.5, 0.4, 0.5, best="c"), "a and c", ""),
        (stand(0.5, 0.5, conclusive=True, stopped=True), "", "best"),
        (stand(None, None, best=None), "", "best so far"),
        (stand(None, None), "", "best so far"),
        (stand(0.1 + 0.2, 0.3), "a and b", ""),
        (stand(0.5, 0.5, actions=[act(DROP)]), "", "best so far"),
        (stand(0.5, 0.5, actions=[act(ADD)]), "a and b", ""),
        (stand(0.5, 0.5, leads=[lead(0.1)]), "", "best so far"),
        (stand(0.5, 0.5, leads=[lead(0.0)]), "a and b", ""),
    ],
)
def test_which_arms_are_level(status: dict[str, Any], level: str, mark: str) -> None:
    """Not an arm that was dropped, nor one that a released difference puts behind."""
    assert name_tied_arms(status) == level
    assert choose_best_mark(status) == mark


def test_many_level_arms_are_counted() -> None:
    arms = [{"name": f"dose {number}", "mean": 0.5} for number in range(30)]
    assert name_tied_arms(stand(best="dose 0") | {"arms": arms}) == "30 arms"


def test_names_from_right_to_left_keep_their_place() -> None:
    arms = [{"name": name, "mean": 0.5} for name in ("דוד", "b")]
    assert name_tied_arms(stand(best="b") | {"arms": arms}) == "דוד\u200e and b"


def test_a_page_says_that_arms_are_level(home: AppState, tied: Trial) -> None:
    """For the manager, for a site, and for anyone."""
    home.token_table.publish("dose", "a test")
    with behind(home) as base:
        manager = home.tokens.make("manager", "manager", "test")[0]
        site = home.tokens.make("site", "site", "test", "dose", "Leeds")[0]
        pages = [Visit(base, secret).get("/t/dose").text for secret in (manager, site)]
        pages.append(Visit(base, manager).get("/p/dose").text)
    for page in pages:
        assert "So far usual care and new care are level. This is not a conclusion" in page
        assert "badge good" not in page
        assert not any(words in page for words in LEADS)


def test_an_end_without_a_lead(tied: Trial, capsys: pytest.CaptureFixture[str]) -> None:
    render(build_status(tied.status()))
    assert "usual care and new care are level so far." in capsys.readouterr().out
    tied.manage("stop", "Nobody comes.")
    said = tied.transcript()
    told = " ".join(known_words(said["status"], False))
    ended = "In the end usual care and new care were level. No arm was found to be the best."
    assert ended in told
    page = trial_page(said)
    assert ended in page
    assert re.search("compared with (usual|new) care, which was level with another arm", page)
    assert "does not apply to the arms that were level" in page
    render(build_status(tied.status()))
    shown = capsys.readouterr().out
    assert ended in " ".join(shown.split())
    assert "so far" not in shown
    assert not any(words in place for words in LEADS for place in (told, page, shown))


@pytest.mark.parametrize(
    ("best", "conclusive", "said"),
    [
        (
            "a",
            True,
            "a was identified as the best arm by a prespecified procedure whose",
        ),
        ("a", False, "The arm that did best so far was a. It was not found to be the best."),
        (None, False, "There was no interim analysis."),
    ],
)
def test_after_the_end_a_terminal_says_what_a_page_says(
    tied: Trial,
    capsys: pytest.CaptureFixture[str],
    best: str | None,
    conclusive: bool,
    said: str,
) -> None:
    arms = tuple(
        replace(arm, name=name, mean=mean)
        for arm, name, mean in zip(tied.status().arms, "ab", (0.7, 0.2), strict=True)
    )
    ended = replace(
        tied.status(), stopped=True, conclusive=conclusive, recommendation=best, arms=arms
    )
    render(build_status(ended))
    assert said in " ".join(capsys.readouterr().out.split())
    assert said in " ".join(known_words(ended.to_dict(), False))


def test_an_interval_is_said_in_per_cent(
    home: AppState, tied: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    with behind(home) as base:
        manager = home.tokens.make("manager", "manager", "test")[0]
        page = Visit(base, manager).get("/t/dose").text
    render(build_status(tied.status()))
    shown = " ".join(capsys.readouterr().out.split())
    report = trial_page(tied.transcript())
    assert "99.9 % confidence sequence" in report
    for place in (page, shown, report):
        assert "With a probability of at least 99.9 %, the confidence sequence of an arm" in place
        assert "0.999" not in place
