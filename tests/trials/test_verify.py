"""A published transcript is checked by whoever has it: every change is found, and
nothing else is needed.
"""

import gc
import json
import os
import subprocess
import sys
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from discreet import (
    InvalidInputError,
    Strategy,
    Trial,
    adap_tt_star,
    bet_se,
    ctb_tt,
    dp_se,
    gauss_tt,
    respond,
    trial_page,
    ttucb,
    ttucb_batched,
    verify_transcript,
)
from discreet.trials.protocol import Protocol
from discreet.trials.record import BROKEN, PublicState, new_state, parse_body
from discreet.trials.status import ReleasedFigures, summarize_releases
from tests.support.forge import UNKNOWN, changed, leaves, others, rechained

ARMS = ["5 mg", "10 mg"]


def published(
    folder: Path,
    strategy: Strategy,
    people: int,
    turns: int = 99,
    missing: bool = False,
    **options: Any,
) -> Any:
    """The transcript of a trial of so many turns, as somebody else reads it; the last
    people have not told.
    """
    trial = Trial.create(
        f"sqlite:///{folder / 'trial.db'}", "dose", ARMS, strategy, people, **options
    )
    for _ in range(turns):
        batch = trial.ask(6)
        outcomes = {one.id: int(one.arm == "10 mg") for one in batch.assignments}
        if missing and len(outcomes) > 2:
            trial.miss(next(iter(outcomes)))
        if strategy.trust == "local":
            level = float(strategy.epsilon or 0)
            answers = {id: respond(bit, level, strategy.gamma) for id, bit in outcomes.items()}
            trial.answer_many(answers)
        else:
            trial.tell_many(outcomes)
        if batch.stopped:
            break
    trial.ask(5)
    return json.loads(json.dumps(trial.transcript()))


CASES: dict[str, tuple[Strategy, int, int]] = {
    "under way": (bet_se(0.1, epsilon=1), 500, 8),
    "conclusive": (bet_se(0.1, epsilon=5), 500, 99),
    "inconclusive": (bet_se(1e-50, epsilon=2), 30, 99),
    "in turn": (ctb_tt(3, 0.1), 24, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_change_of_a_value_is_found(case: str, tmp_path: Path) -> None:
    """Every leaf of the document, one after the other; no file of it may say anything
    that is not checked.
    """
    transcript = published(tmp_path, *CASES[case])
    assert verify_transcript(transcript).problems == ()
    every = dict(leaves(transcript))
    assert len(every) > 80
    missed = set()
    for path, value in every.items():
        for other in others(value):
            if verify_transcript(changed(transcript, path, other)).intact:
                missed.add(path)
    assert missed <= UNKNOWN


@pytest.mark.parametrize("case", CASES)
def test_outcomes_that_are_not_in_have_limits(case: str, tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES[case])
    for name in ("pending", "waiting"):
        for value in (-1, 10**6, 1.0, True, None, "1"):
            found = verify_transcript(changed(transcript, ("status", name), value))
            assert "cannot be" in found.problems[0], (name, value)


def test_parts_that_are_left_out_added_or_moved_are_found(tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES["conclusive"])
    events = transcript["events"]
    for wrong in (events[1:], events[:-1], [], [*events[:2], *events[3:]], [*events, events[-1]]):
        assert not verify_transcript(changed(transcript, ("events",), wrong)).intact
    swapped = [*events[:2], events[3], events[2], *events[4:]]
    assert not verify_transcript(changed(transcript, ("events",), swapped)).intact
    odd_ones: list[Any] = [None, 3, [], {}, {"seq": 1}, {"seq": 1, "kind": [], "hash": {}}]
    for odd in odd_ones:
        assert not verify_transcript(changed(transcript, ("events", 1), odd)).intact
    for path in (("note",), ("status", "note"), ("events", 1, "note"), ("protocol", "note")):
        assert not verify_transcript(changed(transcript, path, "all is well")).intact
    for name in transcript["status"]:
        other = deepcopy(transcript)
        del other["status"][name]
        assert not verify_transcript(other).intact
    for name in transcript["protocol"]:
        other = deepcopy(transcript)
        del other["protocol"][name]
        assert not verify_transcript(other).intact


def test_a_new_chain_must_be_what_the_strategy_would_have_done(tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES["under way"])
    assert rechained(deepcopy(transcript)) == transcript
    head = transcript["status"]["head"]
    kinds = [event["kind"] for event in transcript["events"]]
    opened, assigned, released = map(kinds.index, ("opened", "assigned", "released"))
    arms = transcript["events"][assigned]["arms"]
    wrong = {
        ("events", opened, "odds", 0, 1): 2,
        ("events", opened, "participants"): 1,
        ("events", opened, "round"): 2,
        ("events", opened, "commit"): "0" * 64,
        ("events", released, "releases", 0, "epsilon"): 1.5,
        ("events", released, "releases", 0, "sum"): 0.5,
        ("events", released, "releases", 1, "sum"): 10**300,
        ("events", released, "releases"): [],
        ("events", assigned, "arms", 0): 2,
        ("events", assigned, "arms"): [1 - arm for arm in arms],
        ("events", 0, "protocol"): "0" * 64,
        ("events", assigned, "kind"): ["assigned"],
        ("protocol", "max_participants"): 3,
        ("protocol", "direction"): "up",
        ("protocol", "strategy", "name"): "no such strategy",
    }
    for path, value in wrong.items():
        forged = rechained(changed(transcript, path, value))
        assert not verify_transcript(forged).intact, path
    for path in (
        ("events", 1, "kind"),
        ("events", 1, "note"),
        ("protocol", "name"),
        ("status", "name"),
    ):
        assert not verify_transcript(changed(transcript, path, "\udc80")).intact, (
            "no text can hold it"
        )
    made_up = rechained(
        changed(transcript, ("events", released, "releases", 0, "epsilon"), 0.9999999995)
    )
    assert verify_transcript(made_up).intact, "a chain of one's own is as good as any"
    assert "as it is known" in verify_transcript(made_up, head).problems[0], (
        "but for those who know a head"
    )


def test_a_head_that_is_known_must_be_in_the_record(tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES["under way"])
    for event in transcript["events"]:
        assert verify_transcript(transcript, f"{event['seq']}:{event['hash']}").intact
    assert not verify_transcript(transcript, f"99:{event['hash']}").intact
    with pytest.raises(InvalidInputError, match="head must look like"):
        verify_transcript(transcript, "17")


STRATEGIES = [
    ttucb(0.1),
    ttucb_batched(0.1),
    gauss_tt(8, 0.05, 0.1),
    adap_tt_star(10, 0.1),
    dp_se(10, 0.1),
    bet_se(0.1, epsilon=3, trust="local"),
    bet_se(0.1, trust="none"),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{s.name} {s.trust}")
def test_what_a_trial_publishes_is_in_order(strategy: Strategy, tmp_path: Path) -> None:
    """Also if outcomes are missing."""
    for turns, missing in product((1, 4), (True, False)):
        folder = tmp_path / f"{turns} {missing}"
        folder.mkdir()
        transcript = published(folder, strategy, 60, turns, missing)
        assert verify_transcript(transcript).problems == ()
        keyed = any(event["kind"] == "opened" for event in transcript["events"])
        assert keyed == (not strategy.spec.each_answer)


@pytest.mark.parametrize(("told", "every"), [(1_000, 1), (3, 2)], ids=str)
def test_progress_counts_events_up_to_the_last(
    told: int, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them in a short record, some of them in a long one; the same whoever
    checks it.
    """
    monkeypatch.setattr("discreet.trials.transcript.MAX_PROGRESS_CALLS", told)
    published(tmp_path, *CASES["in turn"])
    trial = Trial.open(f"sqlite:///{tmp_path / 'trial.db'}", "dose")
    trial.ask(1)
    transcript = trial.transcript()
    total, seen = len(transcript["events"]), list[tuple[int, int]]()
    assert total == 7
    expected = [(done, total) for done in range(1, total) if done % every == 0] + [(total, total)]
    assert trial.verify(progress=lambda *step: seen.append(step)) == trial.verify()
    assert seen == expected
    seen.clear()
    assert verify_transcript(transcript, progress=lambda *step: seen.append(step)).intact
    assert seen == expected
    seen.clear()
    broken = changed(transcript, ("events", 4, "hash"), "0" * 64)
    assert not verify_transcript(broken, progress=lambda *step: seen.append(step)).intact
    assert seen == [step for step in expected if step[0] < 5], "what follows a break is not read"


def test_files(tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES["in turn"])
    path = tmp_path / "transcript.json"
    path.write_text(json.dumps(transcript), encoding="utf-8")
    assert verify_transcript(path) == verify_transcript(str(path)) == verify_transcript(transcript)
    assert verify_transcript(path).head == transcript["status"]["head"]
    with pytest.raises(InvalidInputError):
        verify_transcript(tmp_path / "nowhere.json")
    assert gc.isenabled(), "garbage is collected again"
    twice = path.read_text().replace('"stopped": false', '"stopped": true, "stopped": false')
    bad = [
        "",
        "nonsense",
        "[]",
        "{}",
        "1",
        json.dumps({**transcript, "events": {}}),
        twice,
        "[" * 100_000,
    ]
    bad += [
        path.read_text().replace("10 mg", '10 mg", NaN, "'),
        path.read_text().replace("0.1", "1e999"),
    ]
    for text in bad:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(
            InvalidInputError, match="is not a transcript of a trial: give the file"
        ):
            verify_transcript(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="is not a transcript of a trial: give the file"):
        verify_transcript(path)
    with pytest.raises(InvalidInputError, match="cannot read"):
        verify_transcript(tmp_path / "nowhere.json")
    for odd in ({}, {"protocol": object()}, {**transcript, "status": None}):
        with pytest.raises(
            InvalidInputError, match="this is not a transcript of a trial: give what"
        ):
            verify_transcript(odd)


def test_a_page_says_what_of_it_the_record_does_not(tmp_path: Path) -> None:
    trial = Trial.create(f"sqlite:///{tmp_path}/t.db", "dose", ARMS, bet_se(0.1, 1.0), 500)
    trial.ask(3)
    page = trial_page(trial.transcript())
    assert "except how many outcomes are not in, of which the record says nothing." in page
    assert "yes or no (1 or 0), yes is better" in page


def test_a_page_says_at_the_top_whether_it_is_verified(tmp_path: Path) -> None:
    transcript = published(tmp_path, *CASES["conclusive"])
    page = trial_page(transcript)
    assert "NOT VERIFIED" not in page
    assert "all of the above follows from the record." in page
    path = tmp_path / "transcript.json"
    path.write_text(json.dumps(transcript))
    assert trial_page(path) == page
    for where, value in (
        ("recommendation", "5 mg"),
        ("delta", "small"),
        ("arms", 7),
        ("name", None),
    ):
        page = trial_page(changed(transcript, ("status", where), value))
        assert "<title>NOT VERIFIED" in page
        assert page.index("Nothing below can be relied on") < 6000
        assert "follows from the record" in page
    page = trial_page(changed(transcript, ("events", 3, "kind"), "<script>"))
    assert "event 4 is not what was written there" in page
    assert "<script>" not in page


BASE = """
import sys
for name in ("sqlalchemy", "opendp", "psycopg"):
    sys.modules[name] = None
import discreet
from discreet.cli import main
print(discreet.verify_transcript(sys.argv[1]).intact, len(discreet.trial_page(sys.argv[1])) > 1000)
print(discreet.Response.parse("rr/1.0/1").value, discreet.Verification.__name__)
for call in (lambda: discreet.respond(1, 1.0), lambda: discreet.verify_transcript(sys.argv[2]), lambda: discreet.Trial):
    try:
        call()
    except discreet.MissingExtraError as error:
        print(error)
main(["verify", sys.argv[1]])
"""


def test_the_base_install_is_enough(tmp_path: Path) -> None:
    """Without a database and without noise; but for gauss-tt, whose noise only OpenDP's
    map knows.
    """
    for name, strategy in (
        ("bet-se", bet_se(0.1, epsilon=2)),
        ("gauss-tt", gauss_tt(8, 0.05, 0.1)),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.json").write_text(
            json.dumps(published(tmp_path / name, strategy, 60, 2))
        )
    files = [str(tmp_path / "bet-se.json"), str(tmp_path / "gauss-tt.json")]
    command = [sys.executable, "-c", BASE, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["True True", "1 Verification"], done.stderr
    needed = ("needs OpenDP", "needs OpenDP", "need SQLAlchemy")
    assert all(words in line for words, line in zip(needed, lines[2:5], strict=True))
    assert lines[5].startswith("Intact: ")
    assert done.returncode == 0


# --- the stored state -----------------------------------------------------------------


def test_a_state_that_lacks_a_name_is_refused() -> None:
    protocol = Protocol("dose", ("a", "b"), bet_se(0.1, epsilon=1), max_participants=100)
    state = json.loads(new_state(protocol).dump())
    names = ["releases", "stopped", "conclusive", "cursor", "run", "management"]
    assert list(state) == names
    for name in names:
        less = {key: value for key, value in state.items() if key != name}
        with pytest.raises(BROKEN):
            new_state(protocol).load(json.dumps(less))


@pytest.mark.parametrize(
    "change",
    [
        {"releases": "7"},
        {"releases": -1},
        {"releases": True},
        {"stopped": 1},
        {"conclusive": None},
        {"cursor": [1]},
        {"cursor": "1"},
        {"cursor": -1},
        {"management": {}},
        {"management": None},
        {"run": {}},
        {"run": None},
        {"run": []},
    ],
    ids=str,
)
def test_a_malformed_state_is_refused(change: dict[str, Any]) -> None:
    now = new_state(Protocol("dose", ("a", "b"), bet_se(0.1, epsilon=1), max_participants=100))
    state = {**json.loads(now.dump()), **change}
    with pytest.raises(BROKEN):
        now.load(json.dumps(state))


def test_the_number_of_an_answer_is_a_number(tmp_path: Path) -> None:
    """Whoever can compute a hash writes `true` for the first person."""
    transcript = published(tmp_path, *CASES["in turn"])
    place = next(
        place for place, one in enumerate(transcript["events"]) if one["kind"] == "answered"
    )
    path = ("events", place, "answers", 0, 0)
    assert verify_transcript(rechained(changed(transcript, path, 1))).intact
    assert not verify_transcript(rechained(changed(transcript, path, True))).intact


@pytest.mark.parametrize("around", ["{} ", " {}", "{}\n", "{},", ""])
def test_an_event_has_nothing_around_it(around: str) -> None:
    assert parse_body("{}") == {}
    with pytest.raises(BROKEN):
        parse_body(around)


def test_the_figures_of_a_status_are_computed_once_for_each_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def counted(now: PublicState) -> ReleasedFigures:
        computed.append(now)
        return summarize_releases(now)

    monkeypatch.setattr("discreet.trials.trial.summarize_releases", counted)
    trial = Trial.create(
        f"sqlite:///{tmp_path / 'trial.db'}", "dose", ARMS, bet_se(0.1, epsilon=1), 500
    )
    people = trial.ask(4).assignments
    first = trial.status()
    assert trial.status() == trial.status() == first
    assert len(computed) == 1
    trial.tell(people[0].id, 1)
    assert trial.status().pending == first.pending - 1, "what is not in the record is never kept"
    assert len(computed) == 1
    trial.ask(1)
    assert trial.status().participants == 5
    assert len(computed) == 2
