"""Whoever listens hears that something is compiled, once, and not what is kept."""

import numba

from discreet.simulation.compile import notify_of_compilation


def test_what_is_compiled_is_heard_once() -> None:
    heard: list[str] = []
    one = numba.njit(lambda x: x + 1)
    other = numba.njit(lambda x: x + 2)
    with notify_of_compilation(lambda: heard.append("first")):
        assert (one(1), other(1)) == (2, 3)
    with notify_of_compilation(lambda: heard.append("again")):
        assert one(2) == 3
    other(1.5)
    assert heard == ["first"]
