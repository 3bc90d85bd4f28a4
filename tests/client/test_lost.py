"""A bad connection to a service: answers that are lost, requests that do not arrive, a
service that is busy or starts again. Nothing is done twice, and the same is answered.

These mistakes were planted to see the tests fail: a new key for each try, a pause that
does not look at Retry-After, a 422 that is tried again, a lost answer that counts as
nothing done.
"""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from discreet import InvalidInputError, RemoteTrial, StoreError, Trial, bet_se
from discreet.client import http
from discreet.client.address import ServiceAddress
from discreet.client.http import ApiRequest, HttpClient, HttpResponse, NoAnswer, encode_key
from tests.support.remote import BUSY, CUT, LIMITED, LOST, Far, now_and_then
from tests.support.stores import ARMS, create

BETS = bet_se(0.05, 1.0)
FATES = (LOST, CUT, BUSY, LIMITED)


def changes(trial: Trial) -> dict[str, Callable[[], Any]]:
    """Every call that changes something, once, with people of its own."""
    ids = [one.id for one in trial.ask(8).assignments]
    trial.tell(ids[1], 1)
    return {
        "ask": lambda: trial.ask(2),
        "tell": lambda: trial.tell(ids[0], 1),
        "amend": lambda: trial.amend(ids[1], 0),
        "miss": lambda: trial.miss(ids[2]),
        "reissue": lambda: trial.reissue(ids[3]),
        "unblind": lambda: trial.unblind(ids[4], "a fever"),
        "manage": lambda: trial.manage("pause", "a holiday"),
    }


@pytest.mark.parametrize("fate", FATES)
def test_whatever_happens_it_is_done_once(fate: str, far: Far) -> None:
    trial = create(far.base, strategy=BETS, blinding="codes")
    local = Trial.open(far.url, "colours")
    calls = changes(trial)
    before, people = len(local.audit_trail()), local.status().participants
    far.calls, found = [], {}
    for name, call in calls.items():
        far.fate = now_and_then(fate, 2)
        found[name] = call()
    keys = [(path.rpartition("/")[2], key) for _, path, key in far.calls]
    assert len(keys) == 3 * len(calls), "each was made three times"
    assert len(set(keys)) == len(calls), "with one key"
    done = [one for one in local.audit_trail() if not one.action.endswith(" again")]
    assert len(done) == before + len(calls), "and done once"
    assert local.status().participants == people + 2
    assert len(found["ask"].assignments) == 2
    assert (found["tell"].new, found["miss"].new) == (1, 1)
    assert found["reissue"].id in [one.id for one in local.open_assignments()]
    assert [act.action for act in local.status().actions] == ["unblind", "pause"]
    assert local.verify().intact


def test_what_is_read_is_read_again(far: Far) -> None:
    trial = create(far.base, strategy=BETS)
    far.fate = now_and_then(CUT, 2)
    assert Trial.open(trial.url).status() == trial.status()
    assert trial.verify().intact


def test_the_service_starts_again(far: Far) -> None:
    trial = create(far.base, strategy=BETS)
    first = trial.ask(3, key="k")
    far.stop()
    starting = threading.Timer(0.5, far.start)
    starting.start()
    assert trial.ask(3, key="k") == first
    starting.join()
    assert trial.tell(first.assignments[0].id, 1).new == 1
    assert trial.status().participants == 3


def test_patience_ends(far: Far) -> None:
    create(far.base, strategy=BETS)
    trial = RemoteTrial.open(far.base, "colours", patience=1.0)
    far.fate = lambda path: LOST if path.endswith(("/ask", "/expire")) else None
    far.calls = []
    with pytest.raises(StoreError, match="not known whether this was done") as found:
        trial.ask()
    assert len(far.calls) < 6, "pauses double, and are a second in all"
    key = str(found.value).partition("key='")[2].partition("'")[0]
    with pytest.raises(StoreError, match=r"not known whether this was done: repeat it$"):
        trial.expire()
    with pytest.raises(StoreError, match="key='mine'"):
        trial.ask(key="mine")
    far.fate = lambda _path: None
    assert Trial.open(far.url, "colours").status().participants == 2
    again = trial.ask(key=key)
    assert len(again.assignments) == 1
    assert trial.ask(key=key) == again
    assert trial.status().participants == 2
    far.stop()
    with pytest.raises(StoreError, match="Nothing was done"):
        trial.tell(again.assignments[0].id, 1)
    far.start()


def test_what_is_refused_is_not_repeated(far: Far) -> None:
    trial = create(far.base, strategy=BETS)
    far.calls = []
    with pytest.raises(InvalidInputError):
        trial.manage("resume", "not paused")
    assert len(far.calls) == 1


def test_many_callers_of_a_bad_connection(far: Far) -> None:
    """Fates by the number of the request, so that each comes in every order."""
    order = iter([LOST, None, BUSY, None, CUT, None, LIMITED, None] * 10_000)
    lock = threading.Lock()

    def fate(_path: str) -> str | None:
        with lock:
            return next(order)

    trial = RemoteTrial.create(far.base, "colours", ARMS, BETS, 500)

    def enrol(number: int) -> int:
        for turn in range(1000):
            batch = trial.ask(participant=f"p{number}", key=f"{number} {turn}")
            if batch.assignments:
                break
            time.sleep(0.01)
        (one,) = batch.assignments
        return trial.tell(one.id, 1.0).new

    far.fate = fate
    with ThreadPoolExecutor(24) as threads:
        assert [*threads.map(enrol, range(24))] == [1] * 24
    trial.close()
    local = Trial.open(far.url, "colours")
    status = local.status()
    assert (status.participants, status.pending) == (24, 0)
    told = [entry for entry in local.audit_trail() if entry.action == "tell"]
    assert sum(entry.participants for entry in told) == 24
    assert local.verify().intact


def test_a_half_open_service_is_given_up() -> None:
    """One that accepts connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("discreet.client.http.READ", 0.2)
            with pytest.raises(StoreError, match="takes too long"):
                RemoteTrial.open(f"http://127.0.0.1:{port}", "t", token="x", patience=0.3)


# --- repeated requests ----------------------------------------------------------------


class Network:
    """A client whose requests get these answers: what it sent, and how long it
    waited.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, answers: list[HttpResponse | NoAnswer]
    ) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.pauses: list[float] = []
        self._answers = iter(answers)
        monkeypatch.setattr(HttpClient, "_send", self._send)
        monkeypatch.setattr(time, "sleep", self.pauses.append)

    def _send(self, *request: Any) -> HttpResponse | NoAnswer:
        self.sent.append(request)
        return next(self._answers)

    def call(self, request: ApiRequest, patience: float = 60.0) -> HttpResponse:
        client = HttpClient(ServiceAddress("https://far.example", "secret", None, patience))
        client._answered = True
        return client.call(request)


OK = HttpResponse(200, {}, b"{}")
GONE = NoAnswer("gone", True, True)


def test_pauses_grow_and_are_as_long_as_the_service_says(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = HttpResponse(503, {"retry-after": "3"}, b"")
    network = Network(monkeypatch, [GONE] * 12 + [OK])
    assert network.call(ApiRequest("POST", "/x"), patience=1000.0) == OK
    assert len(network.pauses) == 12
    for place, pause in enumerate(network.pauses):
        longest = min(http.MIN_PAUSE * 2**place, http.MAX_PAUSE)
        assert longest / 2 <= pause <= longest
    network = Network(monkeypatch, [busy, OK])
    network.call(ApiRequest("GET", "/x"))
    assert network.pauses == [3.0]
    network = Network(monkeypatch, [HttpResponse(429, {"retry-after": "100"}, b"")])
    with pytest.raises(StoreError, match="Nothing was done"):
        network.call(ApiRequest("POST", "/x"))
    assert network.pauses == [], "nobody waits so long"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500, 301])
def test_answers_that_are_not_asked_for_again(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, [HttpResponse(status, {}, b"<html>")])
    with pytest.raises(StoreError) as error:
        network.call(ApiRequest("POST", "/x"))
    assert (len(network.sent), network.pauses) == (1, [])
    assert "secret" not in str(error.value)


def test_every_try_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, [GONE, GONE, OK, OK])
    network.call(ApiRequest("POST", "/x", {"n": 1}))
    assert len(network.sent) == 3
    assert network.sent[0] == network.sent[1] == network.sent[2]
    _, headers, content = network.sent[0]
    assert (headers["authorization"], content) == ("Bearer secret", b'{"n": 1}')
    network.call(ApiRequest("POST", "/x", {"n": 1}))
    assert network.sent[3][1]["idempotency-key"] != headers["idempotency-key"]


def test_keys_that_a_header_cannot_carry() -> None:
    assert encode_key("a-key") == "a-key"
    for key in ("é", " a", "a b", "x" * 201, "a\nb"):
        assert len(encode_key(key)) == 64
    assert encode_key("é") != encode_key("è")
