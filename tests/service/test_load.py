"""What many calls at once share: a look at their token, a thread that leads; and
answers that leave in order.

Seen to fail with: a look for each call, a thread for each transaction, an answer to
HEAD with a body or refused without one.
"""

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.service import auth
from discreet.service.state import AppState
from discreet.trials.store.tokens import Token
from tests.support.service import serving


def test_a_token_is_looked_up_once_for_all_who_call_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "REMEMBERED", 3600.0)
    home, looks = AppState(f"sqlite:///{tmp_path}/trials.db"), list[bytes]()
    secret, made = home.tokens.make("load", "manager", "a test")
    by_hash = home.token_table.find

    def slowly(hash: bytes) -> Token | None:
        looks.append(hash)
        time.sleep(0.05)
        return by_hash(hash)

    home.token_table.find = slowly  # type: ignore[method-assign]

    async def calls() -> list[Token | None]:
        found = await asyncio.gather(*(home.token_of(secret) for _ in range(20)))
        assert not home._under_way
        return [*found, await home.token_of(secret), await home.token_of("another")]

    found = asyncio.run(calls())
    home.close()
    assert found == [made] * 21 + [None]
    assert len(looks) == 1, "what is not even of the form of a token is not looked up"


def test_a_trial_is_opened_once_for_all_who_call_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, opens = f"sqlite:///{tmp_path}/trials.db", list[Trial]()
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    home, open_it = AppState(url), Trial.open

    def opened(*about: Any, **more: Any) -> Trial:
        time.sleep(0.05)
        opens.append(open_it(*about, **more))
        return opens[-1]

    monkeypatch.setattr(Trial, "open", opened)
    with ThreadPoolExecutor(20) as threads:
        found = set(threads.map(home.trial, ["dose"] * 20))
    assert found == set(opens)
    assert len(opens) == 1
    home.close()


def test_answers_leave_whole_and_in_order(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    Trial.create(url, "dose", ["a", "b"], bet_se(0.1, 1.0), max_participants=50).close()
    who = "Host: x\r\nAuthorization: Bearer {}\r\n"
    with serving(url) as service:
        host, port = service.base_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            heads = who.format(service.secret)
            ask = f"POST /api/v1/trials/dose/ask HTTP/1.1\r\n{heads}Content-Length: 2\r\n\r\n{{}}"
            look = f"HEAD /static/style.css HTTP/1.1\r\n{heads}\r\n"
            look += f"HEAD /api/v1/trials/dose HTTP/1.1\r\n{heads}\r\n"
            last = f"GET /api/v1/trials/dose HTTP/1.1\r\n{heads}Connection: close\r\n\r\n"
            connection.sendall(f"{ask}{look}{last}".encode())
            got = b""
            while piece := connection.recv(65_536):
                got += piece
    first, *others = [one for one in got.split(b"HTTP/1.1 ") if one]
    assert first.startswith(b"200")
    assert b'"assignments":[{"id":"1-' in first
    *bare, status = others
    for one in bare:
        assert one.startswith(b"200")
        assert one.endswith(b"\r\n\r\n")
        assert b"content-length: 0" not in one
    assert status.count(b"connection: close") == 1
    assert b'"participants":1' in status
