"""Who may know how a trial may go on, and from what it follows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.planning.forecast import Forecast, forecast
from discreet.service import planner
from discreet.service.auth import Principal
from discreet.service.cache import OnceCache
from discreet.service.pages import trial_text
from discreet.strategies.run import Run
from tests.support.service import PATIENCE, wait_for
from tests.support.visitors import Service, service

TAKES = "simulated continuations"


def patient(run: Run, seed: int) -> Forecast | None:
    """A forecast with time enough, however busy the machine is."""
    return forecast(run, seed, PATIENCE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(planner, "warm", lambda: None)
    monkeypatch.setattr(planner, "forecast", patient)
    with service(tmp_path) as made:
        yield made


def released(place: Service, name: str, **settings: Any) -> Trial:
    """A trial after its first release."""
    usual: dict[str, Any] = {"strategy": bet_se(0.01, 1.0), "max_participants": 2000}
    trial = Trial.create(place.url, name, ["usual", "new"], **{**usual, **settings})
    while not trial.status().releases:
        batch = trial.ask(40)
        trial.tell_many({one.id: float(int(one.id[0]) % 2) for one in batch.assignments})
    return trial


def forecast_on(place: Service, path: str, role: str, trial: str, wanted: str = TAKES) -> str:
    """A page, once its forecast is there."""
    visit = place.visit(role, trial, "Leeds" if role == "site" else None)
    seen = list[str]()

    def is_there() -> bool:
        seen[:] = [visit.get(path).text]
        return wanted in seen[0]

    wait_for(is_there)
    return seen[0]


def test_it_is_shown_with_its_label_to_those_who_see_results(place: Service) -> None:
    released(place, "dose")
    for role in ("manager", "monitor", "site"):
        text = forecast_on(place, "/t/dose", role, "dose")
        assert trial_text.LABEL in text
        assert "without a conclusion" in text
        assert "participants a day" not in text
    listed = place.visit("monitor", "dose").get("/").text
    assert re.search(r'Forecast" class="free">(about )?[\d,]+ ', listed)
    assert "Nothing about it is guaranteed" in listed


def test_a_blinded_site_learns_nothing_from_it(place: Service) -> None:
    trial = released(place, "dose", blinding="codes")
    forecast_on(place, "/t/dose", "monitor", "dose")
    site = place.visit("site", "dose", "Leeds")
    for path in ("/", "/t/dose"):
        text = site.get(path).text
        assert TAKES not in text
        assert "simulated continuations of" not in text
        assert (
            f"of {trial.status().max_participants:,} participants without a conclusion" not in text
        )
    assert "May take" not in site.get("/").text


def test_the_pace_is_the_operators_unless_the_record_tells_times(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    released(place, "dose").ask(5)
    timed = Trial.create(
        place.url, "timed", ["a", "b"], bet_se(0.1, 1.0), 900, release="scheduled", deadline=60.0
    )
    for _ in range(2):
        timed.ask(3)
    forecast_on(place, "/t/dose", "monitor", "dose")
    monkeypatch.setattr(trial_text, "SOON", 0.0)
    monkeypatch.setattr(trial_text, "PACES", OnceCache[float | None](256, seconds=60.0))
    assert "participants a day" not in place.visit("monitor", "dose").get("/t/dose").text
    assert "participants a day" in place.visit("manager", "dose").get("/t/dose").text
    assert trial_text.pace_of(place.home, place.home.trial("timed"), Principal()) is not None


def test_a_pace_counts_who_came_after_the_first_call() -> None:
    assert trial_text.pace([], 9e9) is None
    assert trial_text.pace([(0.0, 50)], 1e5) is None
    assert trial_text.pace([(0.0, 50), (10.0, 5)], 100.0) is None
    assert trial_text.pace([(0.0, 50), (10.0, 5), (5000.0, 15)], 10_000.0) == pytest.approx(0.002)


def test_it_follows_from_the_public_record_alone(place: Service) -> None:
    """What was told and not released changes nothing in what is played on."""
    trial = released(place, "dose")
    batch = trial.ask(5).assignments
    before = place.home.trial("dose").copy_run().dump()
    trial.tell_many({one.id: 1.0 for one in batch[:4]})
    assert place.home.trial("dose").copy_run().dump() == before
    assert trial.status().pending == 1


def test_it_is_made_once_for_a_release(place: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def counted(run: Any, seed: int) -> Any:
        made.append(seed)
        return patient(run, seed)

    monkeypatch.setattr(planner, "forecast", counted)
    trial = released(place, "dose")
    mark = place.visit("monitor", "dose").get("/t/dose/head").text
    forecast_on(place, "/t/dose", "monitor", "dose")
    trial.ask(1)
    forecast_on(place, "/t/dose", "manager", "dose")
    assert len(made) == 1
    assert place.home.forecasts.known("dose")
    assert mark != place.visit("monitor", "dose").get("/t/dose/head").text


def test_where_there_is_none_a_page_says_why(
    place: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    Trial.create(place.url, "new", ["a", "b"], bet_se(0.1, 1.0), max_participants=100).close()
    assert trial_text.NOTHING_YET in place.visit("monitor", "new").get("/t/new").text
    monkeypatch.setattr(planner, "forecast", lambda run, seed: None)
    released(place, "long")
    assert "too long" in forecast_on(place, "/t/long", "monitor", "long", "No forecast:")

    def fails(run: Any, seed: int) -> None:
        raise ValueError("outcome 7")

    monkeypatch.setattr(planner, "forecast", fails)
    released(place, "broken")
    assert "outcome 7" not in forecast_on(place, "/t/broken", "monitor", "broken", "No forecast:")
