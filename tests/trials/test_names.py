"""Names of trials, arms and sites: one way to write them, nothing that rewrites a line,
and every one that is accepted can be drawn.
"""

import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from discreet import InvalidInputError, Trial, bet_se, trial_page, verify_transcript
from discreet.trials.listing import describe_names
from discreet.trials.names import check_arms
from tests.support.stores import create, run

BETS = bet_se(0.1, trust="none")
UNSEEN = [
    "a\rb",
    "a\x1b[2K",
    "a\u202eb",
    "a\u2066b",
    "a\u2028b",
    "a\u0085b",
    "a\x00",
    "\ud800",
    "a\nb",
    "\u3164",
    "\u2800\ufe0f",
]


@pytest.fixture
def url(tmp_path: object) -> str:
    return f"sqlite:///{tmp_path}/trials.db"


@pytest.mark.parametrize("name", UNSEEN, ids=ascii)
def test_what_rewrites_a_line_is_no_name(name: str, url: str) -> None:
    for settings in ({"name": name}, {"arms": ["x", name]}, {"sites": ["x", name]}):
        with pytest.raises(InvalidInputError):
            create(url, **{"strategy": BETS, **settings})  # type: ignore[arg-type]
    trial = create(url, strategy=BETS)
    with pytest.raises(InvalidInputError):
        trial.ask(site=name)
    with pytest.raises(InvalidInputError):
        trial.manage("add-arm", "a new dose", name)
    with pytest.raises(InvalidInputError):
        trial.manage("pause", name)
    assert trial.status().participants == 0


def test_a_name_is_kept_in_one_way(url: str) -> None:
    apart = unicodedata.normalize("NFD", "café é")
    trial = create(url, apart, arms=[apart, "b"], strategy=BETS, sites=[apart])
    together = unicodedata.normalize("NFC", apart)
    assert apart != together
    assert trial.protocol.name == together
    assert trial.protocol.arms[0] == together
    assert trial.ask(site=apart).assignments
    for name in (apart, together):
        assert Trial.open(url, name).status().sites[0].participants == 1
    with pytest.raises(InvalidInputError, match="same name"):
        create(url, "other", arms=[apart, together], strategy=BETS)


@pytest.mark.parametrize(
    "arm",
    [
        "a onset=3",
        "<script>",
        "x --> y",
        "a & b",
        "$x^2$",
        "javascript:x",
        "url(x)",
        "می‌خواهم",
        "🧪",
    ],
)
def test_every_name_can_be_drawn(arm: str, url: str) -> None:
    trial = create(url, arm, arms=[arm, "b"], strategy=BETS, max_participants=40)
    run(trial, 40)
    assert "<figure>" in trial_page(trial.transcript())


# --- which trials there are -----------------------------------------------------------


def test_near_names() -> None:
    assert describe_names("x", []) == "there are no trials yet"
    assert describe_names("x", ["a", "b"]) == "trials there: a, b"
    many = [f"trial {number}" for number in range(10_000)]
    assert describe_names("trial 77z", many).startswith("did you mean 'trial 77")
    assert len(describe_names("trial 77z", many)) < 150
    assert describe_names("?", many) == "there are 10000: discreet trial list shows them"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A", "А"),  # Cyrillic
        ("Β", "B"),  # Greek
        ("5 mg", "5\u00a0mg"),
        ("10 mg", "1О mg"),
        ("Dose I", "Dose l"),
        ("Dose 1", "Dose I"),
        ("5–10", "5-10"),
        ("5 µg", "5 μg"),
        ("ﬁrst", "first"),
        ("ab", "a\u200db"),
        ("red", "red\ufe0f"),
        ("red", "r\u034fed"),
        ("red", "red\u3164"),
        ("red", "\u2800red"),
        ("red", "re\U000e0101d"),
        ("3 mg", "З mg"),  # Cyrillic, as are the next two
        ("6 mg", "б mg"),
        ("Dose 1", "Dose ӏ"),
        ("0 mg", "Օ mg"),  # Armenian
    ],
)
def test_names_that_look_alike_are_refused(tmp_path: Path, first: str, second: str) -> None:
    """For arms and sites, at the start and later."""
    url = f"sqlite:///{tmp_path}/t.db"
    with pytest.raises(InvalidInputError, match="arms 1 and 2 look alike"):
        Trial.create(url, "t", [first, second], bet_se(0.1, 1.0), max_participants=500)
    with pytest.raises(InvalidInputError, match="sites 1 and 2 look alike"):
        create(url, sites=[first, second])
    trial = Trial.create(
        url, "t", [first, "y"], bet_se(0.1, 1.0), max_participants=500, sites=[first]
    )
    with pytest.raises(InvalidInputError, match="arms 1 and 3 look alike"):
        trial.manage("add-arm", "new", second)
    with pytest.raises(InvalidInputError, match="sites 1 and 2 look alike"):
        trial.manage("open-site", "new", second)
    assert trial.verify().intact


def test_names_that_differ_are_accepted() -> None:
    check_arms(["a", "A", "5 mg", "50 mg", "0.5 mg", "Arm 1", "Arm 2", "Плацебо", "παλιό", "新薬"])


def test_a_trial_has_at_most_a_thousand_arms(tmp_path: Path) -> None:
    names = [f"arm {number:04}" for number in range(1001)]
    url = f"sqlite:///{tmp_path}/t.db"
    with pytest.raises(InvalidInputError, match="at most 1000 arms; got 1001"):
        Trial.create(url, "t", names, bet_se(0.1, 1.0), max_participants=10**6)
    trial = Trial.create(url, "t", names[:1000], bet_se(0.1, 1.0), max_participants=10**6)
    with pytest.raises(InvalidInputError, match="at most 1000 arms; got 1001"):
        trial.manage("add-arm", "new", "one more")


def test_verification_is_linear_in_the_arms(tmp_path: Path) -> None:
    """For each arm as many steps of Python as for twice as many arms, and as many items
    of lists that are looked through.
    """
    steps = dict[int, int]()
    for arms in (250, 500, 1000):
        url = f"sqlite:///{tmp_path}/{arms}.db"
        names = [f"arm {number:04}" for number in range(arms)]
        trial = Trial.create(url, "t", names, bet_se(0.1, 1.0), max_participants=10**6)
        trial.ask(100)
        transcript = trial.transcript()
        trial.close()
        steps[arms] = count_steps(lambda said=transcript: verify_transcript(said))  # type: ignore[misc]
    assert steps[500] < 2.2 * steps[250]
    assert steps[1000] < 2.2 * steps[500]


def count_steps(work: Callable[[], object]) -> int:
    """Calls of Python and C functions while something is done; a search through a list
    counts as many as the list has items.
    """
    steps = 0

    def see(_frame: FrameType, event: str, about: Any) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")
        if event == "c_call" and getattr(about, "__name__", "") in ("index", "count", "remove"):
            steps += len(about.__self__)

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps
