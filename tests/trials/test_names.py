"""Names of trials, arms and sites: one way to write them, nothing that rewrites a line,
and every one that is accepted can be drawn.
"""

import unicodedata

import pytest

from discreet import InvalidInputError, bet_se, trial_page
from discreet.trials.listing import near_names
from discreet.trials.trial import Trial
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
        trial.operate("add-arm", "a new dose", name)
    with pytest.raises(InvalidInputError):
        trial.operate("pause", name)
    assert trial.status().people == 0


def test_a_name_is_kept_in_one_way(url: str) -> None:
    apart = unicodedata.normalize("NFD", "café é")
    trial = create(url, apart, arms=[apart, "b"], strategy=BETS, sites=[apart])
    together = unicodedata.normalize("NFC", apart)
    assert apart != together
    assert trial.protocol.name == together
    assert trial.protocol.arms[0] == together
    assert trial.ask(site=apart).assignments
    for name in (apart, together):
        assert Trial.open(url, name).status().sites[0].people == 1
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
    trial = create(url, arm, arms=[arm, "b"], strategy=BETS, max_people=40)
    run(trial, 40)
    assert "<figure>" in trial_page(trial.transcript())


# --- which trials there are -----------------------------------------------------------


def test_near_names() -> None:
    assert near_names("x", []) == "there are no trials yet"
    assert near_names("x", ["a", "b"]) == "trials there: a, b"
    many = [f"trial {number}" for number in range(10_000)]
    assert near_names("trial 77z", many).startswith("did you mean 'trial 77")
    assert len(near_names("trial 77z", many)) < 150
    assert near_names("?", many) == "there are 10000: discreet trial list shows them"
