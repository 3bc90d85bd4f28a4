"""Who published a trial, or made or revoked a token for it, is in its journal."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from discreet import Trial, bet_se
from discreet.cli import main
from discreet.trials.store.database import Store
from discreet.trials.store.doors import Doors
from discreet.trials.store.ledger import Ledger
from tests.support.service import serving
from tests.support.visitors import Service, service

Noted = list[tuple[str, str, str | None, int]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path) as made:
        made.trial("dose")
        made.trial("second")
        yield made


def noted(trial: Trial, most: int) -> Noted:
    """The last entries, the newest last."""
    found = reversed(trial.journal(most))
    return [(one.who, one.call, one.site, one.people) for one in found]


def test_forms_are_noted(place: Service) -> None:
    visit, trial = place.visit("operator"), place.home.trial("dose")
    second = place.home.trial("second").journal()
    for published in ("yes", "no", "no"):
        assert visit.send("/t/dose/publish", published=published).status_code == 303
    form = {"name": "Ada", "role": "site", "site": "Leeds"}
    assert visit.send("/tokens", trial="dose", **form).status_code == 200
    number = place.home.doors.all()[0].number
    for _ in range(2):
        assert visit.send(f"/tokens/{number}/revoke").status_code == 303
    who = "a operator"
    assert noted(trial, 4) == [
        (who, "publish", None, 0),
        (who, "unpublish", None, 0),
        (who, f"token create {number}", "Leeds", 0),
        (who, f"token revoke {number}", "Leeds", 0),
    ]
    before = len(trial.journal())
    assert visit.send("/tokens", name="Bob", role="viewer").status_code == 200
    assert len(trial.journal()) == before
    assert place.home.trial("second").journal() == second
    shown = visit.get("/t/dose/journal").text
    assert f"token revoke {number}" in shown
    assert "A token for all trials is in no trial" in shown


def test_calls_of_programs_are_noted(url: str) -> None:
    with closing(
        Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0, trust="local"), max_people=50)
    ) as trial:
        with serving(url) as server:
            address, headers = f"{server.base_url}/api/v1", server.headers
            (one,) = trial.ask(1).assignments
            body = {"name": "Ada", "role": "viewer", "trial": "dose"}
            with httpx.Client(base_url=address, headers=headers) as client:
                made = client.post("/tokens", json=body).json()["token"]["number"]
                assert client.post("/trials/dose/publish").status_code == 200
                assert client.post("/trials/dose/unpublish").status_code == 200
                assert client.post("/trials/dose/invite", json={"id": one.id}).status_code == 200
                assert client.post(f"/tokens/{made}/revoke").status_code == 200
        found = [one for one in noted(trial, 100) if one[0] == "the tests' operator"]
        assert [(call, people) for _, call, _, people in found if call != "open"] == [
            *((f"token create {made}", 0), ("publish", 0), ("unpublish", 0)),
            *(("invite", 1), (f"token revoke {made}", 0)),
        ]


def test_commands_are_noted(url: str) -> None:
    with closing(
        Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0, trust="local"), max_people=50)
    ) as trial:
        words = ["create", "Ada", "--role=viewer", "--trial=dose", f"--url={url}", "--json"]
        made = CliRunner().invoke(main, ["token", *words])
        number = str(json.loads(made.stdout)["token"]["number"])
        done = CliRunner().invoke(main, ["token", "revoke", number, f"--url={url}"])
        assert done.exit_code == 0, done.output
        with closing(Store(url)) as store:
            user = store.user
        assert noted(trial, 2) == [
            (user, f"token create {number}", None, 0),
            (user, f"token revoke {number}", None, 0),
        ]


def test_what_cannot_be_noted_is_not_done(place: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    home = place.home
    one = home.tokens.make("Ada", "viewer", "a test", "dose")[1]

    def fail(_: Ledger) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Ledger, "write", fail)
    doors = Doors(home.store)
    for act in (
        lambda: doors.publish("dose", "a test"),
        lambda: doors.revoke(one.number, "a test"),
        lambda: home.tokens.make("Bob", "viewer", "a test", "dose"),
    ):
        with pytest.raises(RuntimeError):
            act()
    assert not home.published("dose")
    assert [token for token in doors.all() if token.trial == "dose"] == [one]
