"""Lines of the public record, in words."""

import json

from discreet.service.pages.trial_text import event_words
from discreet.trials.record import Event
from discreet.wording import LEFT_TO_RIGHT_MARK

ARMS = ("תרופה 1", "תרופה 2")


def test_numbers_stay_with_names_that_are_written_from_right_to_left() -> None:
    """Without a mark, "1 to A 1, 2 to A 2" is shown with the numbers of other arms."""
    assigned = {"first": 1, "arms": [0, 1, 1], "site": "הדסה", "at": 0.0}
    assert event_words(Event(1, "assigned", json.dumps(assigned), ""), ARMS) == (
        f"Participants 1 to 3 were assigned: 1 to תרופה 1{LEFT_TO_RIGHT_MARK}, 2 to תרופה "
        f"2{LEFT_TO_RIGHT_MARK} at הדסה{LEFT_TO_RIGHT_MARK}, 1970-01-01 00:00 UTC."
    )
    released = {"unit": 1.0, "releases": [{"arm": 1, "sum": 7, "count": 9}]}
    assert event_words(Event(2, "released", json.dumps(released), ""), ARMS) == (
        f"Released, with noise, as sums of outcomes on a scale from 0 (worst) to 1 (best): "
        f"תרופה 2{LEFT_TO_RIGHT_MARK}: 7 over 9 participants."
    )
