"""Streams of public changes."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import dropwhile
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service import events
from discreet.service.pages.base import LOGIN_COOKIE
from discreet.trials import listing
from tests.support.service import Service, serving, wait_for

SOON = 60.0
"""Seconds within which what must happen has happened, on a busy machine too."""


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    arms = ["a", "b"]
    Trial.create(url, "dose", arms, bet_se(0.1, 1.0), max_participants=100, sites=["Leeds"]).close()
    with serving(url) as made:
        yield made


HERE = ": still here"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@contextmanager
def listening(service: Service, secret: str | None, after: str = "") -> Iterator[Iterator[str]]:
    """The lines of a stream, empty ones left out."""
    headers = {} if secret is None else bearer(secret)
    headers |= {"Last-Event-ID": after} if after else {}
    address = f"{service.base_url}/api/v1/trials/dose/events"
    with httpx.stream("GET", address, headers=headers, timeout=SOON) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield (line for line in answer.iter_lines() if line)


def event(lines: Iterator[str]) -> tuple[int, dict[str, Any]]:
    """The next event: its id, and what it says."""
    id, name, data = next(lines), next(lines), next(lines)
    assert name == "event: changed"
    return int(id.removeprefix("id: ")), json.loads(data.removeprefix("data: "))


def ask(service: Service) -> None:
    address = f"{service.base_url}/api/v1/trials/dose/ask"
    said = {"n": 1, "site": "Leeds"}
    assert httpx.post(address, headers=service.headers, json=said).status_code == 200


def test_a_change_is_told_at_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "POLL", 3600.0)
    with listening(service, service.secret) as lines:
        first, said = event(lines)
        status = httpx.get(f"{service.base_url}/api/v1/trials/dose", headers=service.headers).json()
        assert said == {"head": status["head"], "participants": 0, "state": "goes on"}
        ask(service)
        second, said = event(lines)
        assert said["participants"] == 1
        assert second > first
        assert said["head"].startswith(f"{second}:")
    with listening(service, service.secret, after=str(first)) as lines:
        assert event(lines)[0] == second


def test_what_was_seen_is_not_told_again(service: Service) -> None:
    with listening(service, service.secret) as lines:
        first, _ = event(lines)
    with listening(service, service.secret, after=str(first)) as lines:
        ask(service)
        assert event(lines)[0] > first


def test_a_change_by_others_is_seen(service: Service) -> None:
    with listening(service, service.secret) as lines:
        event(lines)
        with closing(Trial.open(service.home.url, "dose")) as trial:
            trial.manage("pause", "a holiday")
        assert event(lines)[1]["state"] == "paused"


def test_a_site_learns_only_that_it_changed(service: Service) -> None:
    secret = service.token("site", trial="dose", site="Leeds")
    with listening(service, secret) as lines:
        assert set(event(lines)[1]) == {"head"}


def test_streams_are_for_those_who_may(service: Service) -> None:
    address = f"{service.base_url}/api/v1/trials/dose/events"
    assert httpx.get(address).status_code == 401
    other = f"{service.base_url}/api/v1/trials/nothing/events"
    assert httpx.get(other, headers=service.headers).status_code == 404
    service.home.token_table.publish("dose", "a test")
    with listening(service, None) as lines:
        assert event(lines)[1]["participants"] == 0
        service.home.token_table.unpublish("dose", "a test")
        assert next(lines, None) is None


@pytest.mark.parametrize("published", [False, True])
def test_a_revoked_token_hears_no_more(service: Service, published: bool) -> None:
    if published:
        service.home.token_table.publish("dose", "a test")
    secret, token = service.home.tokens.make("eyes", "monitor", "a test")
    with listening(service, secret) as lines, listening(service, service.secret) as others:
        event(lines)
        event(others)
        service.home.token_table.revoke(token.number, "a test")
        assert next(lines, None) is None
        ask(service)
        assert event(others)[1]["participants"] == 1


def test_a_stream_says_that_it_is_there(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has something to say too, if that takes longer."""
    monkeypatch.setattr(events, "HEARTBEAT", 0.2)
    with listening(service, service.secret) as lines:
        told = dropwhile(lambda line: line == HERE, lines)
        event(told)
        assert next(told) == next(told) == HERE


def test_streams_end_with_the_service(service: Service) -> None:
    with listening(service, service.secret) as lines:
        event(lines)
        service.server.end()
        assert next(lines, None) is None


def test_nobody_is_watched_for_when_nobody_listens(service: Service) -> None:
    with listening(service, service.secret) as lines:
        event(lines)
        assert set(service.home.events._watchers) == {"dose"}
    wait_for(lambda: not service.home.events._watchers)
    wait_for(lambda: service.home.limits._streams == 0)


MONITORS = 150


@pytest.mark.slow
def test_many_viewers_cost_one_computation(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many listen, a change is read and written down once; and what they then
    ask for, as programs and in pages, is computed once.
    """
    counts = Counter[str]()

    def counted(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counts_it(*about: Any) -> Any:
            counts[what] += 1
            return work(*about)

        return counts_it

    monkeypatch.setattr(events, "_event", counted("written", events._event))
    monkeypatch.setattr(events, "find_trial", counted("looked", listing.find_trial))
    monkeypatch.setattr(Trial, "status", counted("computed", Trial.status))
    monkeypatch.setattr(Trial, "record", counted("read", Trial.record))
    token = service.home.tokens.find_token(service.secret)
    assert token is not None
    login = service.home.tokens.log_in(token)
    told = threading.Semaphore(0)

    async def view() -> None:
        host, port = service.base_url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        who = f"Authorization: Bearer {service.secret}\r\nCookie: {LOGIN_COOKIE}={login}"
        head = f"Host: here\r\n{who}\r\n\r\n"
        writer.write(f"GET /api/v1/trials/dose/events HTTP/1.1\r\n{head}".encode())
        for wanted in (b'"participants":0', b'"participants":1'):
            await reader.readuntil(wanted)
            told.release()
        writer.close()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /api/v1/trials/dose HTTP/1.1\r\n{head}".encode())
        await reader.readuntil(b'"participants":1')
        writer.write(f"GET /t/dose HTTP/1.1\r\n{head}".encode())
        await reader.readuntil(b"</html>")
        writer.close()

    async def view_all() -> None:
        await asyncio.gather(*(view() for _ in range(MONITORS)))

    begun = time.monotonic()
    thread = threading.Thread(target=asyncio.run, args=(view_all(),))
    thread.start()
    for _ in range(MONITORS):
        assert told.acquire(timeout=SOON)
    ask(service)
    for _ in range(MONITORS):
        assert told.acquire(timeout=SOON)
    thread.join(SOON)
    assert not thread.is_alive()
    seconds = time.monotonic() - begun
    assert counts["written"] in (4, 6), "for those who see it and for sites; a round is opened"
    assert counts["looked"] <= 5 + 2 * seconds
    assert counts["computed"] <= 2 + seconds
    assert counts["read"] <= counts["computed"], "of pages, the record"
