"""Who published a trial, or made or revoked a token for it, is in its audit trail."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from discreet import StoreError, Trial, backup_trials, bet_se, restore_trials
from discreet.cli import main
from discreet.service.auth import SecretKind, hash_secret
from discreet.service.state import AppState
from discreet.trials.store import schema
from discreet.trials.store.database import Database
from discreet.trials.store.tables import TrialTables
from tests.support.postgres import Server
from tests.support.service import serving, wait_for
from tests.support.stores import database
from tests.support.visitors import Service, service

Noted = list[tuple[str, str, str | None, int]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path) as made:
        made.trial("dose")
        made.trial("second")
        yield made


def made_home(url: str) -> AppState:
    """A service of two trials."""
    for name in ("dose", "second"):
        Trial.create(url, name, ["a", "b"], bet_se(0.1, 1.0), max_participants=400).close()
    return AppState(url)


@pytest.fixture
def home(url: str) -> Iterator[AppState]:
    with closing(made_home(url)) as made:
        yield made


def noted(trial: Trial, most: int) -> Noted:
    """The last entries, the newest last."""
    found = reversed(trial.audit_trail(most))
    return [(one.user, one.action, one.site, one.participants) for one in found]


def test_forms_are_noted(place: Service) -> None:
    visit, trial = place.visit("manager"), place.home.trial("dose")
    second = place.home.trial("second").audit_trail()
    for published in ("yes", "no", "no"):
        assert visit.send("/t/dose/publish", published=published).status_code == 303
    form = {"name": "Ada", "role": "site", "site": "Leeds"}
    assert visit.send("/tokens", trial="dose", **form).status_code == 200
    number = place.home.token_table.list_all()[0].number
    for _ in range(2):
        assert visit.send(f"/tokens/{number}/revoke").status_code == 303
    who = "a manager"
    assert noted(trial, 4) == [
        (who, "publish", None, 0),
        (who, "unpublish", None, 0),
        (who, f"token create {number}", "Leeds", 0),
        (who, f"token revoke {number}", "Leeds", 0),
    ]
    before = len(trial.audit_trail())
    assert visit.send("/tokens", name="Bob", role="monitor").status_code == 200
    assert len(trial.audit_trail()) == before
    assert place.home.trial("second").audit_trail() == second
    shown = visit.get("/t/dose/audit-trail").text
    assert f"token revoke {number}" in shown
    assert "A token for all trials is in no trial" in shown


def test_calls_of_programs_are_noted(url: str) -> None:
    with closing(
        Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0, trust="local"), max_participants=50)
    ) as trial:
        with serving(url) as server:
            address, headers = f"{server.base_url}/api/v1", server.headers
            (one,) = trial.ask(1).assignments
            body = {"name": "Ada", "role": "monitor", "trial": "dose"}
            with httpx.Client(base_url=address, headers=headers) as client:
                made = client.post("/tokens", json=body).json()["token"]["number"]
                assert client.post("/trials/dose/publish").status_code == 200
                assert client.post("/trials/dose/unpublish").status_code == 200
                assert client.post("/trials/dose/invite", json={"id": one.id}).status_code == 200
                assert client.post(f"/tokens/{made}/revoke").status_code == 200
        found = [one for one in noted(trial, 100) if one[0] == "the tests' manager"]
        assert [(call, participants) for _, call, _, participants in found if call != "open"] == [
            *((f"token create {made}", 0), ("publish", 0), ("unpublish", 0)),
            *(("invite", 1), (f"token revoke {made}", 0)),
        ]


def test_commands_are_noted(url: str) -> None:
    with closing(
        Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0, trust="local"), max_participants=50)
    ) as trial:
        words = ["create", "Ada", "--role=monitor", "--trial=dose", f"--url={url}", "--json"]
        made = CliRunner().invoke(main, ["token", *words])
        number = str(json.loads(made.stdout)["token"]["number"])
        done = CliRunner().invoke(main, ["token", "revoke", number, f"--url={url}"])
        assert done.exit_code == 0, done.output
        with closing(Database(url)) as store:
            user = store.user
        assert noted(trial, 2) == [
            (user, f"token create {number}", None, 0),
            (user, f"token revoke {number}", None, 0),
        ]


def test_what_cannot_be_noted_is_not_done(home: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    """But a revocation is."""
    doors, tokens = home.token_table, home.tokens
    secret, one = tokens.make("Ada", "monitor", "a test", "dose")
    doors.publish("second", "a test")

    def fail(*_: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(TrialTables, "add_audit_entry", fail)
    for act in (
        lambda: doors.publish("dose", "a test"),
        lambda: doors.unpublish("second", "a test"),
        lambda: tokens.make("Bob", "monitor", "a test", "dose"),
        lambda: tokens.make_code(one, "a test"),
    ):
        with pytest.raises(StoreError):
            act()
    assert list(doors.list_published()) == ["second"]
    assert [token for token in doors.list_all() if token.trial == "dose"] == [one]
    assert tokens.find_token(secret) == one
    with pytest.raises(StoreError, match="is revoked, and of no use any more"):
        tokens.revoke(one.number, "a test")
    assert tokens.find_token(secret) is None


def test_nobody_waits_with_a_note_for_a_trial(postgres: Server) -> None:
    """While a trial is locked, tokens of others are looked up, and its own revoked."""
    url = postgres.new_url()
    with closing(made_home(url)) as home, database(url) as connection:
        secret = home.tokens.make("Ada", "monitor", "a test", "second")[0]
        one = home.tokens.make("Bob", "monitor", "a test", "dose")[1]
        connection.execute(sa.text("SELECT 1 FROM discreet_trials WHERE name='dose' FOR UPDATE"))
        with ThreadPoolExecutor() as threads:
            published = threads.submit(home.token_table.publish, "dose", "a test")
            wait_for(lambda: _waiting(connection))
            assert home.token_table.find(hash_secret(SecretKind.TOKEN, secret)) is not None
            home.tokens.log_in(one)
            revoked = threads.submit(home.tokens.revoke, one.number, "a test")
            wait_for(lambda: not home.token_table.find_valid([one.number]))
            assert [published.done(), revoked.done()] == [False, False]
            connection.rollback()
            assert revoked.result()
        calls = [entry.action for entry in home.trial("dose").audit_trail()]
        assert sorted(calls[:2]) == ["publish", f"token revoke {one.number}"]


def _waiting(connection: sa.Connection) -> bool:
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return bool(connection.execute(sa.text(waits)).scalar_one())


def test_notes_have_their_place_among_calls(url: str) -> None:
    """Whoever writes into the audit trail at the same time: nothing fails, and no entry has
    the number of another.
    """
    with closing(made_home(url)) as home:
        trial = home.trial("dose")

        def ask() -> None:
            for _ in range(20):
                trial.ask()

        def make() -> None:
            for _ in range(10):
                home.tokens.make("Ada", "monitor", "a test", "dose")

        with ThreadPoolExecutor() as threads:
            for done in [threads.submit(work) for work in (ask, make, ask, make)]:
                done.result()
        found = trial.audit_trail()
        assert [entry.entry for entry in found] == list(range(len(found), 0, -1))
        assert sum(entry.action.startswith("token create") for entry in found) == 20


# --- what a restore keeps -------------------------------------------------------------


def audit_of(url: str) -> list[tuple[float, str, str]]:
    """When, who and what, the oldest first."""
    with closing(Trial.open(url, "dose")) as trial:
        found = trial.audit_trail()[::-1]
    assert [one.entry for one in found] == list(range(1, len(found) + 1))
    assert [one.at for one in found] == sorted(one.at for one in found)
    return [(one.at, one.user, one.action) for one in found]


def set_back(url: str, file: Path) -> None:
    """Restore, though the record has gone on since the backup."""
    with closing(Trial.open(url, "dose")) as trial:
        trial.ask()
    done = restore_trials(file, url, i_know_that_epsilon_is_spent_again=True, reason="a test")
    assert {one.name: one.done for one in done}["dose"] == "replaced"


def test_notes_of_tokens_outlast_a_restore(url: str, tmp_path: Path) -> None:
    """The tokens do: a restore does not set them back."""
    file = tmp_path / "backup.db"
    with closing(made_home(url)) as home:
        _, old = home.tokens.make("Leeds", "site", "Ada", "dose", "Leeds")
        backup_trials(url, file, "Ada")
        _, new = home.tokens.make("Lyon", "site", "Bob", "dose", "Lyon")
        home.tokens.revoke(old.number, "Eve")
        home.token_table.publish("dose", "Eve")
    before = audit_of(url)
    set_back(url, file)
    after = audit_of(url)
    kept = [f"token create {old.number}", "backup", f"token create {new.number}"]
    kept += [f"token revoke {old.number}", "publish"]
    assert [call for _, _, call in after] == ["create", *kept, "restore"]
    assert after[:-1] == before, "with their times"
    set_back(url, file)
    again = audit_of(url)
    assert [call for _, _, call in again] == ["create", *kept, "restore"], "each of them once"
    with closing(AppState(url)) as home:
        assert {one.number for one in home.token_table.list_all()} >= {old.number, new.number}


def test_a_note_of_a_clock_that_was_ahead_stops_nobody(url: str, tmp_path: Path) -> None:
    """Nobody could call before that time: the clock would seem to be behind."""
    file = tmp_path / "backup.db"
    with closing(made_home(url)) as home:
        backup_trials(url, file)
        with closing(Trial.open(url, "dose")) as trial:
            trial.ask()
        home.tokens.make("Lyon", "site", "Bob", "dose", "Lyon")
    with database(url) as connection:
        late = schema.audit_trail.update().where(schema.audit_trail.c.action.like("token create%"))
        connection.execute(late.values(at=schema.audit_trail.c.at + 1e6))
    restore_trials(file, url, i_know_that_epsilon_is_spent_again=True, reason="a test")
    assert audit_of(url)[-2][2].startswith("token create")
    with closing(Trial.open(url, "dose")) as trial:
        assert len(trial.ask().assignments) == 1
