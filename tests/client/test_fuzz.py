"""Whatever is handed to a trial at a service: it works, or says why not in one line
that repeats no outcome, and then nothing has changed; as for a local one.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from discreet import Trial
from tests.support.calls import Call, lives
from tests.support.fuzz import LIVE, check
from tests.support.remote import Far, far_away

HERE = {"tell_many: one", "as_user"}
"""Not of a trial at a service."""
NAMES = [f"Trial.{name}" for name in LIVE if name not in HERE] + ["list_trials"]


class Live:
    """A service, the calls of its trials, and all that stands in the database."""

    def __init__(self, far: Far) -> None:
        self.far = far
        self.calls: dict[str, Call] = lives(far.base)
        self.trials = [Trial.open(far.url, name) for name in ("t", "local")]

    def seen(self) -> Any:
        """What calls change."""
        return [(one.status(), one.audit_trail(10)) for one in self.trials]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    url = f"sqlite:///{tmp_path_factory.mktemp('live')}/trial.db"
    with far_away(url) as far, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_TOKEN", far.secret)
        yield Live(far)


@pytest.mark.parametrize("name", NAMES)
def test_live(name: str, live: Live) -> None:
    check(name, *live.calls[name], live.seen)
    assert live.trials[0].verify().intact
