"""The table of settings: every part that restates it agrees with it."""

import inspect
from dataclasses import MISSING, fields

from discreet import Trial
from discreet.strategies.estimators import FIXED, SHUFFLED, SIMPLE
from discreet.trials.protocol import Protocol
from discreet.trials.settings import SETTINGS, TrialSettings

CALLER = ["cls", "url", "name", "arms", "strategy", "user", "token", "ca"]
"""Arguments of `Trial.create` that are no settings."""


def test_create_takes_the_settings_of_the_table() -> None:
    parameters = inspect.signature(Trial.create.__func__).parameters  # type: ignore[attr-defined]
    defaults = {
        name: MISSING if one.default is inspect.Parameter.empty else one.default
        for name, one in parameters.items()
        if name not in CALLER
    }
    assert defaults == {name: one.default for name, one in SETTINGS.items()}
    assert list(defaults) == list(SETTINGS)


def test_every_setting_is_described() -> None:
    assert list(SETTINGS) == [one.name for one in fields(TrialSettings)]
    assert set(SETTINGS) < {one.name for one in fields(Protocol)}
    for name, one in SETTINGS.items():
        assert one.label, name
        assert one.help.endswith("."), name
        assert all(one.choices.values()), name
        assert not one.choices or one.default in (*one.choices, "", MISSING), name
    assert list(SETTINGS["randomisation"].choices) == [SIMPLE, SHUFFLED, FIXED]
