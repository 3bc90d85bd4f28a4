"""Answers that leave together: none is lost, and none overtakes another."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.service.connections import Leaving, Patient, patient
from discreet.service.limits import Bounds


class Wire:
    """What is written to some connections, in order."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []


class End:
    """One of these connections."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire, self.name, self.closed = wire, name, False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.wire.written.append((self.name, data.split(b"\r\n")[0]))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


def connection(end: End) -> Any:
    """A connection of a server on which nothing is under way."""
    made: Any = object.__new__(patient(Bounds()))
    made.transport, made.cycle = end, None
    made.server_state = SimpleNamespace(default_headers=[])
    made.loop = SimpleNamespace(call_later=lambda *_: None)
    return made


def test_answers_of_a_moment_leave_together_and_in_order() -> None:
    wire, leaving = Wire(), Leaving()
    one, two, gone = End(wire, "one"), End(wire, "two"), End(wire, "gone")

    async def answer() -> None:
        places: list[Any] = [(one, b"1"), (two, b"2"), (gone, b"3"), (one, b"4")]
        for end, said in places:
            leaving.add(end, said)
        gone.close()
        assert wire.written == []
        await asyncio.sleep(0)
        assert wire.written == [("one", b"1"), ("two", b"2"), ("one", b"4")]
        leaving.add(two, b"5")  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert wire.written[3:] == [("two", b"5")]
        await asyncio.sleep(0)

    asyncio.run(answer())
    assert len(wire.written) == 4


@pytest.mark.parametrize("ends", [Patient.shutdown, lambda one: one.send_400_response("no")])
def test_nothing_is_closed_or_refused_before_what_was_answered(ends: Any) -> None:
    wire = Wire()
    end = End(wire, "one")
    made = connection(end)

    async def answer() -> None:
        made.leaving.add(end, b"answered")
        ends(made)
        assert wire.written[0] == ("one", b"answered")
        assert end.closed
        await asyncio.sleep(0)

    asyncio.run(answer())
    assert len(wire.written) == 1 + (ends is not Patient.shutdown)


def test_servers_do_not_write_for_each_other() -> None:
    assert patient(Bounds()).leaving is not patient(Bounds()).leaving  # type: ignore[attr-defined]
