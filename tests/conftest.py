import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings

from discreet.trials.store import postgresql
from discreet.trials.store.tables import TrialTables
from tests.support import browser as browsers
from tests.support import certificates
from tests.support import chance as same_chance
from tests.support import postgres as postgres_server
from tests.support.clock import Clock

if TYPE_CHECKING:
    from playwright.sync_api import Page

# The same examples in every run: a failure is never a matter of luck.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("fixed")

# The same keys and noise too.
same_chance.install()

# A call waits for its answer however busy the machine is; the default is 5 seconds.
for wait in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)

certificates.install()

# Rarer than usual: a worker holds all tests, and would look through them often.
gc.set_threshold(50_000, 20, 10)

# A shell's background job ignores Ctrl-C, which tests send, and its children do too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = Path("/dev/shm")
"""Where files are in memory: nothing is waited for until it is on disk. Deaths of
processes, which tests are about, lose as little there.
"""
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 2 * 1024**3
):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test's chance comes from its name, before any of its fixtures."""
    real = item.get_closest_marker("real_chance") is not None
    same_chance.chance.begin(None if real else item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[None]:
    """What tests share is made in the same way whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    param = getattr(request, "param_index", 0)
    with same_chance.chance.within(f"{fixturedef.baseid} {fixturedef.argname} {param}"):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What was never closed is found while a test can still fail for it: a worker's
    last warnings reach nobody.

    What importing all tests has made is set aside until then, or each collection would
    look through all of it.
    """
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    """A PostgreSQL server for this session; without one its tests are skipped, or fail
    where it must be there.
    """
    if postgres_server.programs() is None:
        assert postgres_server.REQUIRED not in os.environ, (
            "no PostgreSQL server is installed, and there must be one"
        )
        pytest.skip("no PostgreSQL server is installed")
    with postgres_server.server() as made, pytest.MonkeyPatch.context() as patch:
        patch.setitem(postgresql.FOR_NOW, "statement_timeout", "60s")  # however busy it is
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[browsers.Started]:
    """A browser for this session; without one its tests are skipped, or fail where it
    must be there.
    """
    if reason := browsers.missing():
        assert browsers.REQUIRED not in os.environ, f"{reason}, and it must be there"
        pytest.skip(reason)
    with browsers.started() as made:
        yield made


@pytest.fixture(scope="session")
def scripts() -> Iterator[str]:
    """The address at which the service's scripts are served."""
    with browsers.serving() as address:
        yield address


@pytest.fixture
def page(browser: browsers.Started) -> "Iterator[Page]":
    """A page of the browser, for this test alone."""
    with browser.page() as made:
        yield made


@pytest.fixture(scope="module")
def script_page(browser: browsers.Started, scripts: str) -> "Iterator[Page]":
    """One for all tests of a file that only call functions of the scripts."""
    with browser.page() as made:
        made.goto(scripts)
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/trials.db"
    server: postgres_server.Server = request.getfixturevalue("postgres")
    return server.new_url()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of all databases, for the test to turn."""
    made = Clock()
    monkeypatch.setattr(TrialTables, "now", property(lambda _ledger: made.now))
    return made
