"""Who may do what: reach ends where a token's does."""

import itertools

import pytest

from discreet.errors import RefusedError
from discreet.service.auth import ACTIONS, ANYONE, PUBLIC, WHOLE, Principal
from discreet.trials.store.tokens import Token
from discreet.trials.verbs import MANAGER, ROLES, SITE


def token(role: str, trial: str | None = None) -> Token:
    site = "Leeds" if role == SITE else None
    return Token(1, "n", role, trial, site, None, 0.0, "me", None, None, None)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_role_may_do_what_the_table_says(action: str) -> None:
    for role in ROLES:
        wanted = role in ACTIONS[action]
        assert Principal(token(role)).may(action, "dose") == wanted
        mine = wanted and action not in WHOLE
        assert Principal(token(role, "dose")).may(action, "dose") == mine
        assert not Principal(token(role, "other")).may(action, "dose")
    assert not Principal().may(action, "dose")
    assert Principal().may(action, "dose", published=True) == (action in PUBLIC)


def test_what_is_in_no_table_nobody_may() -> None:
    for role, trial in itertools.product(ROLES, (None, "dose")):
        assert not Principal(token(role)).may("delete", trial, published=True)


def test_refusals_say_nothing_of_what_is_there() -> None:
    with pytest.raises(RefusedError, match="not for this trial") as refused:
        Principal(token(MANAGER, "other")).check("status", "dose")
    assert refused.value.known
    with pytest.raises(RefusedError, match="needs a token") as unknown:
        Principal().check("status", "dose")
    assert not unknown.value.known
    assert Principal().role == Principal().who == ANYONE
