"""A clock that tests turn."""


class Clock:
    """The time in seconds, as both databases tell it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
