"""What differs between databases: addresses, errors in words, and that each is in the
suite of the store.
"""

from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from discreet.errors import InvalidInputError
from discreet.trials.store import dialect, reasons
from tests import conftest


def test_every_database_is_in_the_suite() -> None:
    marker = conftest.url._fixture_function_marker
    assert set(marker.params or ()) == set(dialect.DIALECTS)


def test_addresses_are_shown_without_secrets() -> None:
    server = dialect.make_dialect(
        "postgresql://ann:secret@somewhere:5433/trials?sslpassword=secret"
    )
    assert "secret" not in server.address + server.label
    assert "somewhere:5433/trials" in server.label
    file = dialect.make_dialect("sqlite:///folder/trial.db")
    assert (file.address, file.label) == ("sqlite:///folder/trial.db", "folder/trial.db")


@pytest.mark.parametrize(
    "url", ["mysql://ann:secret@x/y", "oracle://secret", "sqlite://", "secret", ""]
)
def test_other_addresses_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        dialect.make_dialect(url)
    assert "secret" not in str(error.value)


CODES = {
    ("sqlite", "SQLITE_BUSY_SNAPSHOT"): reasons.BUSY,
    ("sqlite", "SQLITE_IOERR_WRITE"): reasons.NOT_WRITTEN,
    ("sqlite", "SQLITE_CORRUPT"): reasons.DAMAGED,
    ("sqlite", "SQLITE_CONSTRAINT"): "the database refused (SQLITE_CONSTRAINT)",
    ("postgresql", "55P03"): reasons.BUSY,
    ("postgresql", "53100"): reasons.FULL,
    ("postgresql", "53300"): reasons.OVERLOADED,
    ("postgresql", "57P01"): reasons.ENDED,
    ("postgresql", "23514"): "the database refused (23514)",
}


@pytest.mark.parametrize(("kind", "code"), CODES)
def test_codes_in_words(kind: str, code: str) -> None:
    """In words of ours, and without what the driver said."""
    driver = (
        SimpleNamespace(sqlite_errorname=code)
        if kind == "sqlite"
        else SimpleNamespace(sqlstate=code)
    )
    error = sa.exc.OperationalError("INSERT secret", {}, Exception("secret"))
    error.orig = driver  # type: ignore[assignment]
    chosen = dialect.make_dialect("sqlite:///x.db" if kind == "sqlite" else "postgresql://x/y")
    assert chosen.describe_error(error) == CODES[kind, code]
    error.orig = None
    assert chosen.describe_error(error) == reasons.UNREACHABLE
    assert "secret" not in chosen.describe_error(sa.exc.InvalidRequestError("secret"))
