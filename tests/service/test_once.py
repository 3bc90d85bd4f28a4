"""A token or an invitation is made once for a request, by whatever server, and its
secret is stored nowhere.

Seen to fail with: a request that is not looked up, one that is looked up before it is
written, a secret without its salt, its key or its caller, another wish under a known
key, a request that is known for ever, and forms that are remembered by one server.
"""

import hashlib
import hmac
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from discreet import InvalidInputError, ctb_tt
from discreet.service.home import Home
from discreet.service.once import Once
from discreet.service.pages.frame import COOKIE
from discreet.service.tokens import GONE, Made, Wish, form_key, hash_of, secret_of
from discreet.trials.again import ANOTHER
from discreet.trials.store.database import Store
from discreet.trials.store.doors import DAY, Doors, metadata, once
from tests.support import visitors
from tests.support.service import Service, serving
from tests.support.stores import create, database

WISH = Wish("Leeds", "viewer", "a test", days=3.0)
KEY = "leeds-1"
NOW = 1_000_000_000.0


@pytest.fixture
def home(url: str) -> Iterator[Home]:
    with closing(Home(url)) as made:
        yield made


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the clock of all databases to some seconds after a moment."""

    def turn(seconds: float) -> None:
        monkeypatch.setattr(Doors, "_now", lambda *_: NOW + seconds)

    turn(0)
    return turn


def rows(url: str, table: sa.Table = once) -> list[Any]:
    with database(url) as connection:
        return list(connection.execute(sa.select(table)))


def test_a_request_that_is_repeated_makes_one_token(home: Home, url: str) -> None:
    mine = Once.of("discreet_mine", KEY)
    first, second = (home.tokens.make_once(WISH, mine) for _ in range(2))
    assert first.new
    assert second == first._replace(new=False)
    assert home.tokens.find(first.secret) == first.token
    assert len(home.doors.all()) == len(rows(url)) == 1
    others = [Once.of("discreet_mine", "leeds-2"), Once.of("discreet_other", KEY), None]
    made = [home.tokens.make_once(WISH, other) for other in others]
    assert all(one.new for one in made)
    assert len({first.secret, *(one.secret for one in made)}) == 4


def test_another_wish_under_its_key_is_refused(home: Home) -> None:
    mine = Once.of("discreet_mine", KEY)
    made = home.tokens.make_once(WISH, mine)
    changes: list[dict[str, Any]] = [
        {"name": "Lyon"},
        {"role": "operator"},
        {"trial": "dose"},
        {"days": 4.0},
        {"days": None},
        {"role": "site", "trial": "dose", "site": "Leeds"},
        {"role": "participant", "trial": "dose", "person": "1-5f2c"},
    ]
    for change in changes:
        with pytest.raises(InvalidInputError) as refused:
            home.tokens.make_once(WISH._replace(**change), mine)
        assert str(refused.value) == ANOTHER
    assert home.tokens.make_once(WISH._replace(days=3), mine).token == made.token
    assert [one.name for one in home.doors.all()] == ["Leeds"]


def test_each_part_of_a_wish_counts(home: Home) -> None:
    """Whoever asks for Lyon is not given the secret of Leeds."""
    site = Wish("Ada", "site", "a test", "dose", "Leeds", 3.0)
    link = Wish("Ada", "participant", "a test", "dose", "Leeds", 3.0, "1-5f2c")
    changes: list[tuple[Wish, dict[str, Any]]] = [
        (site, {"name": "Bob", "made_by": "them", "trial": "second", "site": "Lyon", "days": 4.0}),
        (link, {"person": "2-5f2c"}),
    ]
    for wish, parts in changes:
        mine = Once.of("discreet_mine", f"{KEY} {wish.role}")
        home.tokens.make_once(wish, mine)
        for part, value in parts.items():
            with pytest.raises(InvalidInputError, match="made before, for something else"):
                home.tokens.make_once(wish._replace(**{part: value}), mine)


def test_what_is_refused_uses_up_no_key(home: Home, url: str) -> None:
    mine = Once.of("discreet_mine", KEY)
    with pytest.raises(InvalidInputError, match="role must be"):
        home.tokens.make_once(WISH._replace(role="king"), mine)
    assert rows(url) == []
    assert home.tokens.make_once(WISH, mine).new


def test_many_at_once_at_two_servers_make_one(url: str) -> None:
    """Each round of them with a key of its own."""
    threads, rounds = 8, 5
    with closing(Home(url)) as here, closing(Home(url)) as there:
        for turn in range(rounds):
            together = threading.Barrier(threads)

            def make(number: int, turn: int = turn, together: threading.Barrier = together) -> Made:
                together.wait()
                tokens = (here, there)[number % 2].tokens
                return tokens.make_once(WISH, Once.of("discreet_mine", f"key {turn}"))

            with ThreadPoolExecutor(threads) as pool:
                made = list(pool.map(make, range(threads)))
            assert [one.new for one in made].count(True) == 1
            assert len({one.secret for one in made}) == 1
            assert len(here.doors.all()) == turn + 1


def test_a_request_is_known_for_a_day(
    home: Home, url: str, turned: Callable[[float], None]
) -> None:
    """After it nobody can draw the secret again, not even with the caller's own."""
    forever = WISH._replace(days=None)
    mine = Once.of("discreet_mine", KEY)
    first = home.tokens.make_once(forever, mine)
    turned(DAY - 1)
    assert home.tokens.make_once(forever, mine) == first._replace(new=False)
    turned(DAY)
    later = home.tokens.make_once(forever, mine)
    assert later.new
    assert later.secret != first.secret
    assert later.token.number != first.token.number
    assert home.tokens.find(first.secret) == first.token
    (left,) = rows(url)
    assert left.made == NOW + DAY


@pytest.mark.parametrize("how", ["make", "log_in"])
def test_old_salts_are_deleted(
    home: Home, url: str, turned: Callable[[float], None], how: str
) -> None:
    made = home.tokens.make_once(WISH, Once.of("discreet_mine", KEY))
    ways: dict[str, Callable[[], object]] = {
        "make": lambda: home.tokens.make("another", "viewer", "a test"),
        "log_in": lambda: home.tokens.log_in(made.token),
    }
    work = ways[how]
    turned(DAY - 1)
    work()
    assert len(rows(url)) == 1
    turned(DAY)
    work()
    assert rows(url) == []


def test_a_token_that_is_of_no_use_any_more_is_not_given_again(
    home: Home, turned: Callable[[float], None]
) -> None:
    mine, other = Once.of("discreet_mine", KEY), Once.of("discreet_mine", "leeds-2")
    made = home.tokens.make_once(WISH, mine)
    home.tokens.revoke(made.token.number, "a test")
    home.tokens.make_once(WISH._replace(days=0.5), other)
    turned(DAY / 2)
    for wish, request in ((WISH, mine), (WISH._replace(days=0.5), other)):
        with pytest.raises(InvalidInputError) as refused:
            home.tokens.make_once(wish, request)
        assert str(refused.value) == GONE
    assert len(home.doors.all()) == 2


# --- the secret -----------------------------------------------------------------------


def drawn(own: bytes, key: str, salt: bytes) -> str:
    """The secret, by the book."""
    seed = hmac.new(own, b"once\0" + key.encode(), hashlib.sha256).digest()
    return secret_of(hmac.new(seed, b"secret " + salt, hashlib.sha256).digest())


def test_what_is_drawn_from_fits_into_a_block(home: Home) -> None:
    """Of a longer key, HMAC takes the SHA-256, which the database keeps."""
    secret, token = home.tokens.make("Ada", "viewer", "a test")
    assert max(len(secret), len(home.tokens.log_in(token))) <= hashlib.sha256().block_size


def test_the_secret_needs_what_the_database_and_the_caller_have(home: Home, url: str) -> None:
    """The slow, obvious version; what the database has of the caller is no help."""
    caller = "discreet_mine"
    made = home.tokens.make_once(WISH, Once.of(caller, KEY))
    (kept,) = rows(url)
    assert drawn(caller.encode(), KEY, kept.salt) == made.secret
    for known in (hash_of(caller), hash_of(caller).hex().encode(), kept.hash, b""):
        assert drawn(known, KEY, kept.salt) != made.secret
    salts = (bytes(32), b"\1" * 32)
    parts = [(c, k, salt) for c in ("a", "b") for k in ("x", "y") for salt in salts]
    assert len({Once.of(c, k).secret(salt) for c, k, salt in parts}) == len(parts)
    request = Once.of(caller, KEY)
    assert len({request.hash, request.said(WISH), request.secret(b""), request._seed}) == 4


def test_what_pages_show_of_a_login_draws_nothing() -> None:
    for key in ("forms", "", "\0forms"):
        assert Once.of("a login", key)._seed.hex() != form_key("a login")
        assert Once.of("a login", key).hash.hex() != form_key("a login")


def test_no_secret_is_stored_logged_or_shown(
    home: Home, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caller, key = "discreet_zebedee", "zebedee-7313177"
    request = Once.of(caller, key)
    made = home.tokens.make_once(WISH, request)
    with pytest.raises(InvalidInputError) as refused:
        home.tokens.make_once(WISH._replace(name="Lyon"), request)
    stored = [
        bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()
        for table in metadata.sorted_tables
        for row in rows(url, table)
        for value in row
    ]
    assert len(stored) > 10
    seen = [repr(request), repr(made), str(refused.value), caplog.text]
    for hidden in (caller, key, made.secret, made.secret.removeprefix("discreet_")):
        assert not any(hidden.encode() in value for value in stored)
        assert not any(hidden in words for words in seen)
    for bits in (request._seed, request.secret(rows(url)[0].salt)):
        assert bits not in stored
        assert not any(repr(bits)[2:-1] in words or bits.hex() in words for words in seen)


# --- over HTTP ------------------------------------------------------------------------


def post(service: Service, path: str, body: dict[str, Any], key: str, secret: str = "") -> Any:
    headers = {"Authorization": f"Bearer {secret or service.secret}", "Idempotency-Key": key}
    return httpx.post(f"{service.base_url}/api/v1{path}", json=body, headers=headers)


def test_the_api_gives_the_same_answer_again_also_after_a_restart(url: str) -> None:
    body = {"name": "Leeds", "role": "viewer", "days": 3}
    with serving(url) as service:
        first, again = (post(service, "/tokens", body, KEY) for _ in range(2))
        assert first.status_code == again.status_code == 200
        assert first.json() == again.json()
        other = post(service, "/tokens", {**body, "name": "Lyon"}, KEY)
        assert (other.status_code, other.json()["detail"]) == (422, ANOTHER)
        another = service.token("operator")
        assert post(service, "/tokens", body, KEY, another).json() != first.json()
        operator = service.secret
    with serving(url) as service:
        assert post(service, "/tokens", body, KEY, operator).json() == first.json()
        assert service.home.tokens.revoke(first.json()["token"]["number"], "a test")
        gone = post(service, "/tokens", body, KEY, operator)
        assert (gone.status_code, gone.json()["detail"]) == (422, GONE)
        assert [one.name for one in service.home.doors.all()].count("Leeds") == 2
        plain = [
            httpx.post(f"{service.base_url}/api/v1/tokens", json=body, headers=service.headers)
            for _ in range(2)
        ]
        assert plain[0].json()["secret"] != plain[1].json()["secret"]


def test_secrets_are_drawn_from_what_callers_send(url: str) -> None:
    """And not from what the database keeps of it, by the API and by a form."""
    with serving(url) as service:
        made = post(service, "/tokens", {"name": "Leeds", "role": "viewer"}, KEY).json()
        (kept,) = rows(url)
        assert made["secret"] == drawn(service.secret.encode(), KEY, kept.salt)
    with closing(visitors.Service(url)) as second:
        visit = second.visit("operator")
        form = {**visit.hidden("/tokens"), "name": "Ada", "role": "viewer"}
        page = visit.send("/tokens", **form).text
        salt = next(row.salt for row in rows(url) if row != kept)
        wish = ("Ada", "viewer", "a operator", None, None, None, None)
        key = repr(("/tokens", form["once"], *wish))
        login = visit.client.cookies[COOKIE]
        assert drawn(login.encode(), key, salt) in page


def test_a_late_repeat_publishes_nothing_again(url: str) -> None:
    create(url).close()
    with serving(url) as service:
        for what, key in (("publish", "1"), ("unpublish", "2"), ("publish", "1")):
            assert post(service, f"/trials/colours/{what}", {}, key).status_code == 200
        assert not service.home.published("colours")
        again = post(service, "/trials/colours/publish", {}, "3")
        assert again.json() == {"published": True}
        assert service.home.published("colours")
        calls = [one.call for one in service.home.trial("colours").journal()]
        assert [calls.count(what) for what in ("publish", "unpublish")] == [2, 1]


def test_an_invitation_is_made_once(url: str) -> None:
    local = create(url, strategy=ctb_tt(epsilon=1.0, delta=0.1))
    ids = [one.id for one in local.ask(2).assignments]
    local.close()
    path = "/trials/colours/invite"
    with serving(url) as service, serving(url) as second:
        body = {"id": ids[0], "days": 2}
        first = post(service, path, body, KEY)
        again = post(second, path, body, KEY, service.secret)
        assert first.status_code == 200
        assert first.json() == again.json()
        for other in ({"id": ids[1], "days": 2}, {"id": ids[0]}):
            refused = post(service, path, other, KEY)
            assert (refused.status_code, refused.json()["detail"]) == (422, ANOTHER)
        token = post(service, "/tokens", {"name": "Leeds", "role": "viewer"}, KEY)
        assert (token.status_code, token.json()["detail"]) == (422, ANOTHER)
        links = [one for one in service.home.doors.all() if one.role == "participant"]
        assert [one.number for one in links] == [first.json()["token"]["number"]]


def test_a_form_makes_one_token_whatever_server_it_is_sent_to(url: str) -> None:
    with closing(visitors.Service(url)) as first, closing(visitors.Service(url)) as second:
        visit, elsewhere = first.visit("operator"), second.visit()
        elsewhere.client.cookies = visit.client.cookies
        form = {**visit.hidden("/tokens"), "name": "Ada", "role": "viewer"}
        assert 'id="secret"' in visit.send("/tokens", **form).text
        again = elsewhere.send("/tokens", **form)
        assert "This token was made already" in again.text
        assert 'id="secret"' not in again.text
        other = second.visit("operator")
        assert 'id="secret"' in other.send("/tokens", **{**form, "key": other.key}).text
        assert [one.name for one in first.home.doors.all()].count("Ada") == 2


# --- databases of before --------------------------------------------------------------


def test_a_database_of_before_gets_the_table(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trials.db"
    with closing(Home(url)) as home:
        secret, made = home.tokens.make("Leeds", "viewer", "a test")
    with database(url) as connection:
        once.drop(connection)
    with closing(Store(url)) as store:
        assert Doors(store).by_hash(hash_of(secret)) == made
    assert rows(url) == []
