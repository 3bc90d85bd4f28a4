"""A PostgreSQL server that writes outcomes into its log: opening a trial warns."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from click.testing import CliRunner

from discreet import LoggedOutcomesWarning
from discreet.cli import main
from discreet.service.state import AppState
from discreet.trials.store import schema
from discreet.trials.store.dialect import make_dialect
from discreet.trials.trial import Trial
from tests.support import postgres as postgres_server
from tests.support.stores import OUTCOME, UNITS, create

ROLE = postgres_server.ROLES["owner"]
SAID = str(UNITS + schema.OFFSET)
"""An outcome, as a parameter says it."""
LOGS = {
    "log_statement": ("all", "log_parameter_max_length = 0"),
    "log_min_duration_statement": ("0", "log_parameter_max_length = 0"),
    "log_transaction_sample_rate": ("1", "log_parameter_max_length = 0"),
    "log_parameter_max_length_on_error": ("-1", "log_parameter_max_length_on_error = 0"),
}
"""Settings with which a server logs parameters, and what to set in addition."""


@pytest.fixture
def url(postgres: postgres_server.Server) -> str:
    return postgres.granted()["owner"]


@contextmanager
def settings(url: str, **chosen: str) -> Iterator[None]:
    """Settings of a role, which only an administrator can make."""
    address = make_dialect(url).url.set(drivername="postgresql", username="postgres")
    with psycopg.connect(address.render_as_string(), autocommit=True) as connection:
        try:
            for name, value in chosen.items():
                connection.execute(f"ALTER ROLE \"{ROLE}\" SET {name} = '{value}'")
            yield
        finally:
            connection.execute(f'ALTER ROLE "{ROLE}" RESET ALL')


def tell(url: str, name: str) -> None:
    trial = create(url, name)
    trial.tell(trial.ask().assignments[0].id, OUTCOME)
    trial.close()


def log_of(postgres: postgres_server.Server) -> str:
    return (postgres.folder / "log").read_text()


@pytest.mark.parametrize("setting", [name for name in LOGS if "error" not in name])
def test_the_log_has_outcomes_when_it_warns(
    postgres: postgres_server.Server, url: str, setting: str
) -> None:
    before = log_of(postgres).count(SAID)
    tell(url, "usual")
    assert log_of(postgres).count(SAID) == before, "by default there are none in it"
    with settings(url, **{setting: LOGS[setting][0]}):
        with pytest.warns(LoggedOutcomesWarning, match=setting):
            tell(url, "logged")
        assert log_of(postgres).count(SAID) > before
        before = log_of(postgres).count(SAID)
        with settings(url, **{setting: LOGS[setting][0], "log_parameter_max_length": "0"}):
            tell(url, "again")
        assert log_of(postgres).count(SAID) == before


@pytest.mark.parametrize("setting", LOGS)
def test_the_warning_says_what_to_set(url: str, setting: str) -> None:
    create(url).close()
    value, advice = LOGS[setting]
    with settings(url, **{setting: value}):
        with pytest.warns(LoggedOutcomesWarning, match=f"{setting}.*set {advice}") as told:
            Trial.open(url, "colours").close()
        assert len(told) == 1
        assert told[0].filename == __file__
        name, setting_advised = advice.split(" = ")
        with settings(url, **{setting: value, name: setting_advised}):
            Trial.open(url, "colours").close()


@pytest.mark.parametrize(
    "harmless",
    [
        {"log_statement": "ddl"},
        {"log_min_duration_sample": "0", "log_statement_sample_rate": "0"},
        {"log_min_error_statement": "debug5"},
    ],
)
def test_what_logs_no_parameters_is_fine(url: str, harmless: dict[str, str]) -> None:
    with settings(url, **harmless):
        create(url).close()


def test_explained_statements(url: str) -> None:
    """A library that servers load for sessions."""
    chosen = {"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0"}
    with (
        settings(url, **chosen),
        pytest.warns(LoggedOutcomesWarning, match=r"set auto_explain\.log_min_duration = -1"),
    ):
        create(url).close()


def test_the_command_line_and_the_service_say_it_once(url: str) -> None:
    create(url).close()
    with settings(url, log_statement="all"):
        found = CliRunner().invoke(main, ["trial", "status", "colours", "--url", url])
        assert found.exit_code == 0
        assert found.stderr.count("warning: ") == 1
        assert "log_parameter_max_length = 0" in found.stderr
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            home = AppState(url)
            home.trial("colours")
            home.close()
        assert len([one for one in told if one.category is LoggedOutcomesWarning]) == 1
