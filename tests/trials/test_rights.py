"""Roles on a PostgreSQL server: what each may do works, and the rest is refused by the
server itself, in words of ours.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from discreet import ErasingWarning, bet_se, ctb_tt, list_trials, verify_transcript
from discreet.cli import main
from discreet.errors import InvalidInputError, StoreError
from discreet.reports.trial import trial_page
from discreet.service.state import AppState
from discreet.trials.store.dialect import PostgreSQL, make_dialect
from discreet.trials.store.grants import make_grants
from discreet.trials.store.postgresql import Rights, read_rights
from discreet.trials.store.reasons import REFUSED_USER
from discreet.trials.trial import Trial
from tests.support import postgres as postgres_server
from tests.support.stores import create, damage, run

NOT_OWNED = pytest.mark.filterwarnings("ignore::discreet.errors.ErasingWarning")


@pytest.fixture
def roles(postgres: postgres_server.Server) -> dict[str, str]:
    """The addresses of a new place, by role."""
    return postgres.granted()


@pytest.fixture(scope="module")
def empty(postgres: postgres_server.Server) -> dict[str, str]:
    """The same of a place that stays as it is."""
    return postgres.granted()


def direct(url: str, statement: str) -> None:
    """What a role does without the library."""
    address = make_dialect(url).url.set(drivername="postgresql")
    with psycopg.connect(address.render_as_string()) as connection:
        connection.execute(statement)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(StoreError) as error:
        call()
    assert f"{REFUSED_USER}; nothing was changed" in str(error.value)


@NOT_OWNED
def test_a_site_enrols_people_and_tells_outcomes(roles: dict[str, str]) -> None:
    create(roles["manager"], deadline=3600.0)
    trial = Trial.open(roles["site"], "colours", user="Leeds")
    asked = [trial.ask(participant=f"record {n}", key=f"r{n}").assignments[0].id for n in range(3)]
    assert trial.ask(participant="record 1", key="r1").assignments[0].id == asked[1]
    trial.tell(asked[0], 1.0)
    trial.amend(asked[0], 0.0)
    trial.miss(asked[1])
    again = trial.reissue(asked[2]).id
    assert [one.id for one in trial.open_assignments()] == [again]
    trial.tell(again, 1.0)
    assert trial.status().releases == 3
    trial.manage("pause", "holidays")
    trial.manage("set-clock", "it was wrong")
    assert trial.expire() == 0
    assert trial.verify().intact
    assert Trial.open(roles["manager"], "colours").audit_trail()[0].user == "Leeds"


@NOT_OWNED
def test_a_site_makes_no_trial_and_reads_no_audit_trail(roles: dict[str, str]) -> None:
    create(roles["manager"])
    trial = Trial.open(roles["site"], "colours")
    refused(lambda: create(roles["site"], "other"))
    refused(trial.audit_trail)
    assert [one.name for one in list_trials(roles["site"])] == ["colours"]


@pytest.mark.parametrize("role", ["site", "manager"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE discreet_events SET body = '{}'",
        "DELETE FROM discreet_events",
        "TRUNCATE discreet_events",
        "UPDATE discreet_trials SET protocol = '{}'",
        "UPDATE discreet_assignments SET arm = 0",
        "DELETE FROM discreet_outcomes",
        "DELETE FROM discreet_audit_trail",
        "DROP TABLE discreet_counts",
        "ALTER TABLE discreet_outcomes ADD COLUMN extra INTEGER",
    ],
)
def test_nobody_rewrites_the_record(empty: dict[str, str], role: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        direct(empty[role], statement)


@NOT_OWNED
def test_a_viewer_sees_what_anyone_may_see(roles: dict[str, str], tmp_path: Path) -> None:
    made = create(roles["manager"], deadline=3600.0)
    run(made, 8)
    seen = Trial.open(roles["monitor"], "colours", head=made.status().head)
    assert made.status().past_deadline == 0
    assert seen.status() == replace(made.status(), past_deadline=None)
    assert seen.transcript()["events"] == made.transcript()["events"]
    assert "colours" in trial_page(seen.transcript())
    assert verify_transcript(seen.transcript()).intact
    assert [one.participants for one in list_trials(roles["monitor"])] == [8]
    seen.close()
    for command in (["status"], ["transcript"], ["report", "--out", str(tmp_path / "page.html")]):
        words = ["trial", command[0], "colours", "--url", roles["monitor"], *command[1:]]
        result = CliRunner().invoke(main, words)
        assert (result.exit_code, result.stderr) == (0, "")


@NOT_OWNED
def test_a_viewer_changes_nothing(roles: dict[str, str]) -> None:
    (one,) = create(roles["manager"]).ask().assignments
    seen = Trial.open(roles["monitor"], "colours")
    for call in (
        seen.ask,
        lambda: seen.tell(one.id, 1.0),
        lambda: seen.manage("pause", "why not"),
        seen.open_assignments,
        seen.audit_trail,
        lambda: create(roles["monitor"], "other"),
    ):
        refused(call)
    with pytest.raises(StoreError, match=r"discreet trial transcript .*, then discreet verify"):
        seen.verify()
    words = ["trial", "ask", "colours", "--url", roles["monitor"]]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert REFUSED_USER in result.stderr


@pytest.mark.parametrize(
    "what",
    [
        "* FROM discreet_outcomes",
        "token FROM discreet_assignments",
        "arm FROM discreet_assignments",
        "* FROM discreet_secrets",
        "* FROM discreet_round_keys",
        "* FROM discreet_participants",
        "* FROM discreet_requests",
        "* FROM discreet_audit_trail",
    ],
)
def test_a_viewer_reads_no_secret(empty: dict[str, str], what: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        direct(empty["monitor"], f"SELECT {what}")


# --- who may not tidy up --------------------------------------------------------------


def test_who_may_not_tidy_up_is_told(
    roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not try at each call; the owner's next one does it."""
    with monkeypatch.context() as patch:
        patch.setattr(PostgreSQL, "scrub", None)
        with pytest.warns(ErasingWarning, match="GRANT MAINTAIN ON discreet_outcomes") as told:
            trial = create(roles["manager"])
        assert Path(told[0].filename).name == "stores.py", "where the caller is"
        trial.tell_many({one.id: 1.0 for one in trial.ask(3).assignments})
        assert trial.status().erasing
        trial.expire()
        with pytest.warns(ErasingWarning):
            assert Trial.open(roles["site"], "colours").status().erasing
        assert Trial.open(roles["monitor"], "colours").status().erasing, "a monitor erases nothing"
    assert not Trial.open(roles["owner"], "colours").status().erasing
    assert not trial.status().erasing


def test_who_erases_nothing_is_not_told(roles: dict[str, str]) -> None:
    """Warnings are errors here."""
    create(roles["manager"], "kept", retain="forever")
    create(roles["manager"], "local", strategy=ctb_tt(epsilon=1.0, delta=0.1))
    create(roles["owner"], "over", strategy=bet_se(0.1, trust="none")).manage("stop", "why not")
    for name in ("kept", "local", "over"):
        Trial.open(roles["site"], name)


def test_a_warning_is_one_line_on_stderr(roles: dict[str, str]) -> None:
    create(roles["owner"])
    words = ["trial", "status", "colours", "--json", "--url", roles["manager"]]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert result.stderr.startswith("discreet: warning: outcomes that this trial erases")
    assert result.stderr.count("\n") == 1
    arms = ["--arms", "a,b", "--max-participants", "500", "--strategy", "bet-se", "--epsilon", "1"]
    result = CliRunner().invoke(
        main, ["trial", "create", "new", *arms, "--url", roles["manager"], "--json"]
    )
    assert result.stderr.count("discreet: warning: ") == result.stderr.count("\n") == 1


@pytest.mark.parametrize("version", [15, 17])
def test_a_right_of_newer_servers_is_asked_for_there_only(version: int) -> None:
    """Older ones would refuse the question."""
    asked: list[str] = []

    def answer(statement: str) -> SimpleNamespace:
        asked.append(statement)
        return SimpleNamespace(one=lambda: (True, False, True))

    dialect = SimpleNamespace(server_version_info=(version, 2))
    stand_in: Any = SimpleNamespace(dialect=dialect, exec_driver_sql=answer)
    assert read_rights(stand_in) == Rights(erases=True, scrubs=False, verifies=True)
    assert ("'MAINTAIN'" in asked[0]) == (version >= 17)


# --- the script -----------------------------------------------------------------------


def test_the_script_may_be_run_again_and_takes_rights_away(roles: dict[str, str]) -> None:
    place = roles["owner"].rpartition("%3D")[2]
    create(roles["owner"], retain="forever")
    direct(roles["owner"], make_grants(monitors=["the-manager"], schema=place))
    assert Trial.open(roles["manager"], "colours").status().participants == 0
    refused(lambda: Trial.open(roles["manager"], "colours").ask())
    Trial.open(roles["site"], "colours").ask()
    damage(roles["owner"], "UPDATE discreet_schema SET version = version - 1")
    with pytest.raises(psycopg.errors.RaiseException):
        direct(roles["owner"], make_grants(managers=["the-manager"], schema=place))


@NOT_OWNED
def test_a_service_has_a_role_of_its_own_and_tokens_nobody_else_sees(
    roles: dict[str, str],
) -> None:
    place = roles["owner"].rpartition("%3D")[2]
    direct(roles["owner"], make_grants(services=["the-manager"], schema=place))
    create(roles["manager"])
    with closing(AppState(roles["manager"])) as home:
        secret, made = home.tokens.make("a nurse", "site", "a test", "colours", "Leeds")
        assert home.tokens.find_token(secret) is not None
        assert home.tokens.use_code(home.tokens.make_code(made, "a test"))
        assert home.tokens.find_login(home.tokens.log_in(made)) is not None
        home.token_table.publish("colours", "a test")
        assert home.published("colours")
        assert home.tokens.revoke(made.number, "a test")
        home.trial("colours").ask(1)
    for role in ("site", "monitor"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            direct(roles[role], "SELECT hash FROM discreet_tokens")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            direct(roles[role], "SELECT hash FROM discreet_login_codes")
    for statement in ("DELETE FROM discreet_tokens", "UPDATE discreet_login_codes SET expires = 0"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            direct(roles["manager"], statement)


@NOT_OWNED
def test_a_service_of_before_has_the_script_run_again(roles: dict[str, str]) -> None:
    """A role that makes no tables is refused one that is new, until the owner has made
    it.
    """
    script = make_grants(services=["the-manager"], schema=roles["owner"].rpartition("%3D")[2])
    direct(roles["owner"], script)
    with closing(AppState(roles["manager"])) as home:
        secret, _ = home.tokens.make("a nurse", "monitor", "a test")
    direct(roles["owner"], "DROP TABLE discreet_login_codes")
    refused(lambda: AppState(roles["manager"]))
    direct(roles["owner"], script)
    with closing(AppState(roles["manager"])) as home:
        assert home.tokens.find_token(secret) is not None


def test_roles_and_schemas_have_plain_names() -> None:
    for wrong in ("", 'a"; DROP TABLE x; --', "a b", "é", "-a", "a" * 64, "public", "none", "a$$"):
        with pytest.raises(InvalidInputError, match="the site must have a plain name"):
            make_grants(sites=[wrong])
    with pytest.raises(InvalidInputError, match="the schema must have a plain name"):
        make_grants(sites=["a"], schema="a'b")
    with pytest.raises(InvalidInputError, match="at least one role"):
        make_grants()
    with pytest.raises(InvalidInputError, match="name each role once"):
        make_grants(managers=["a"], monitors=["a"])


def test_the_command_prints_the_script() -> None:
    words = ["trial", "grants", "--manager", "ann", "--site", "leeds", "--site", "lyon"]
    result = CliRunner().invoke(main, [*words, "--monitor", "web", "--schema", "trials"])
    assert result.exit_code == 0
    assert result.stdout == make_grants(["ann"], ["leeds", "lyon"], ["web"], "trials")
    result = CliRunner().invoke(main, ["trial", "grants"])
    assert result.exit_code == 2
    assert "at least one role" in result.stderr
