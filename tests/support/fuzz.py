"""Calls with something spoilt: each works, or says why not, and then nothing has
changed.
"""

import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from tests.support.nasty import NASTY, OUTCOMES, check_said

LIVE = [
    *("create", "open", "ask", "tell", "tell_many", "tell_many: one", "answer", "answer_many"),
    *(
        "amend",
        "miss",
        "reissue",
        "unblind",
        "was_answered",
        "as_user",
        "open_assignments",
        "audit_trail",
        "verify",
        "manage",
    ),
    *(f"manage: {act}" for act in ("resume", "raise-maximum", "lower-maximum", "close-site")),
    *(f"manage: {act}" for act in ("open-site", "add-arm", "drop-arm", "set-clock")),
]
"""Calls of a trial that take something."""
TAKEN = {"Trial.tell": "outcome", "Trial.amend": "outcome", "Trial.tell_many": "outcomes"}
TAKEN |= {"Trial.tell_many: one": "outcome", "respond": "outcome", "suggest_range": "values"}
TAKEN |= {"Sampled": "rewards", "Sampled.from_outcomes": "outcomes", "plan_ranges": "outcomes"}
"""Where outcomes are handed in."""
CALLED = {"progress", "executor"}
"""What is called, and may raise what it likes: nothing that can be called is given."""


def spoilt(name: str, good: dict[str, Any]) -> st.SearchStrategy[dict[str, tuple[str, str]]]:
    """Some of the arguments, each with what to put in its place."""
    pools = {}
    for part in good:
        words = [("nasty", word) for word in NASTY if not (part in CALLED and word[:2] == "a ")]
        if name == "plan" and part == "strategies":
            words.remove(("nasty", "None"))  # would compile the kernel of the usual one
        if TAKEN.get(name) == part:
            words += [("outcome", word) for word in OUTCOMES] * 3
        pools[part] = st.sampled_from(words)
    some = st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2, unique=True)
    return some.flatmap(lambda parts: st.fixed_dictionaries({part: pools[part] for part in parts}))


def made(chosen: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """The values that were chosen."""
    pools = {"nasty": NASTY, "outcome": OUTCOMES}
    return {part: pools[pool][word]() for part, (pool, word) in chosen.items()}


def check(
    name: str, function: Callable[..., Any], good: dict[str, Any], seen: Callable[[], Any]
) -> None:
    """Call it again and again with something spoilt."""

    @settings(max_examples=30, suppress_health_check=list(HealthCheck))
    @given(spoilt(name, good))
    def tried(chosen: dict[str, tuple[str, str]]) -> None:
        before = seen()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(**(good | made(chosen)))
            except DiscreetError as error:
                check_said(error)
                assert seen() == before, "something was changed"

    tried()
