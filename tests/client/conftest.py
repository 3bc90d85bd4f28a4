from collections.abc import Iterator

import pytest

from tests.support.remote import Far, far_away


@pytest.fixture
def far(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    """A service of a new database of each kind, whose manager's token is at hand."""
    with far_away(url) as made:
        monkeypatch.setenv("DISCREET_TOKEN", made.secret)
        yield made
