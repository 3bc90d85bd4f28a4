"""Secrets of callers: each kind works in its own place and nowhere else, whatever it
was used for before; nobody learns or does anything with the secret of another.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from discreet import Trial, bet_se
from discreet.service.app import make_app
from discreet.service.auth import ACTIONS, Principal, SecretKind, form_key, new_secret
from discreet.service.endpoints import ENDPOINTS, PREFIX
from discreet.service.limits import LimitConfig
from discreet.service.pages.base import LOGIN_COOKIE, SECURE_LOGIN_COOKIE
from discreet.service.state import AppState, invite
from discreet.trials.store.tokens import Token

BASE = "https://trials.example"
MANAGER = Principal(Token(0, "a test", "manager", None, None, None, 0.0, "", None, None, None))


class Browser:
    """Calls of one browser or program, without a network."""

    def __init__(self, home: AppState) -> None:
        self.home = home
        self.loop = asyncio.new_event_loop()
        through = httpx.ASGITransport(make_app(home), raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=through, base_url=BASE)

    def send(self, method: str, path: str, **how: Any) -> httpx.Response:
        return self.loop.run_until_complete(self.client.request(method, path, **how))

    def bearer(self, method: str, path: str, secret: str, **how: Any) -> httpx.Response:
        self.client.cookies.clear()
        return self.send(method, path, headers={"Authorization": f"Bearer {secret}"}, **how)

    def cookie(self, method: str, path: str, login: str, **how: Any) -> httpx.Response:
        self.client.cookies.clear()
        named = "; ".join(f"{name}={login}" for name in (LOGIN_COOKIE, SECURE_LOGIN_COOKIE))
        return self.send(method, path, headers={"Cookie": named}, **how)

    def log_in(self, secret: str, **form: str) -> httpx.Response:
        return self.send("POST", "/login", data={"secret": secret, "to": "/", **form})


@pytest.fixture
def home(url: str) -> Iterator[AppState]:
    strategy = bet_se(0.1, 1.0, trust="local")
    Trial.create(url, "L", ["a", "b"], strategy, max_participants=200, sites=["Leeds"]).close()
    made = AppState(url, limit_config=LimitConfig(rate=1e6, stranger_rate=1e6))
    yield made
    made.close()


@pytest.fixture
def browser(home: AppState) -> Iterator[Browser]:
    made = Browser(home)
    yield made
    made.loop.run_until_complete(made.client.aclose())
    made.loop.close()


def make_secrets(home: AppState) -> dict[SecretKind, str]:
    """A working secret of every kind."""
    id = home.trial("L").ask(site="Leeds").assignments[0].id
    secret, token = home.tokens.make("a manager", "manager", "a test")
    return {
        SecretKind.TOKEN: secret,
        SecretKind.INVITATION: invite(home, MANAGER, "L", id, 1.0)[0],
        SecretKind.LOGIN: home.tokens.log_in(token),
        SecretKind.LOGIN_CODE: home.tokens.make_code(token),
    }


def accepted_as(browser: Browser, secret: str) -> set[SecretKind]:
    """Use a secret as every kind; return the kinds as which it is accepted."""
    kinds = set[SecretKind]()
    if browser.bearer("GET", f"{PREFIX}/trials/L", secret).status_code == 200:
        kinds.add(SecretKind.TOKEN)
    if browser.bearer("POST", "/a/question", secret).status_code == 200:
        kinds.add(SecretKind.INVITATION)
    if browser.cookie("GET", "/t/L", secret).status_code == 200:
        kinds.add(SecretKind.LOGIN)
    browser.client.cookies.clear()
    if browser.log_in(secret).status_code == 303:
        kinds.add(SecretKind.LOGIN_CODE)
    return kinds


EXPECTED = {
    SecretKind.TOKEN: {SecretKind.TOKEN, SecretKind.LOGIN_CODE},  # staff may type it to log in
    SecretKind.INVITATION: {SecretKind.INVITATION},
    SecretKind.LOGIN: {SecretKind.LOGIN},
    SecretKind.LOGIN_CODE: {SecretKind.LOGIN_CODE},
}


def test_each_secret_works_as_its_kind_alone_before_and_after_each_use(
    home: AppState, browser: Browser
) -> None:
    """Every secret is used as every kind, twice, with all others used in between: what
    was found a moment ago as one kind is not found as another.
    """
    secrets = make_secrets(home)
    for kind, secret in secrets.items():
        assert accepted_as(browser, secret) == EXPECTED[kind], kind
    for kind, secret in reversed(secrets.items()):
        used_up = {SecretKind.LOGIN_CODE} if kind is SecretKind.LOGIN_CODE else set()
        assert accepted_as(browser, secret) == EXPECTED[kind] - used_up, kind


def test_a_secret_under_the_prefix_of_another_kind_is_unknown(
    home: AppState, browser: Browser
) -> None:
    for kind, secret in make_secrets(home).items():
        for other in SecretKind:
            renamed = other.prefix + secret.removeprefix(kind.prefix)
            expected = EXPECTED[kind] if other is kind else set()
            assert accepted_as(browser, renamed) == expected, (kind, other)


def test_a_participants_secret_reaches_no_other_route(home: AppState, browser: Browser) -> None:
    secret = make_secrets(home)[SecretKind.INVITATION]
    for one in ENDPOINTS:
        path = PREFIX + one.path.replace("{name}", "L").replace("{about}", "1")
        body = b'{"no": ' if one.body is not None else None
        for _ in range(2):
            assert browser.bearer("POST", "/a/question", secret).status_code == 200
            found = browser.bearer(one.method, path, secret, content=body)
            assert found.status_code == 401, one


def test_a_participants_link_reads_and_answers_for_nobody_else(
    home: AppState, browser: Browser
) -> None:
    """The secret, sent as a bearer token, then as a cookie with the key of forms that
    follows from it, opened the page of every participant and answered for them.
    """
    trial = home.trial("L")
    ids = [one.id for one in trial.ask(24, site="Leeds").assignments]
    secret = invite(home, MANAGER, "L", ids[0], 1.0)[0]
    for used in (False, True):
        for number, id in enumerate(ids[1:], start=2):
            assert browser.bearer("POST", "/a/question", secret).status_code == 200
            for guess in (f"{number}-00000000", id):
                form = {"id": guess, "response": "rr/1.0/1", "key": form_key(secret), "once": "a"}
                found = browser.cookie("POST", "/t/L/site/answer", secret, data=form)
                assert found.status_code == 403
                assert id not in found.text or guess == id
                assert not re.search(r"\bArm\b|id=\"arm\"", found.text)
            page = browser.cookie("GET", f"/t/L/site/{number}", secret)
            assert page.status_code == 303
            assert page.headers["location"].startswith("/login")
        assert all(trial.as_user("a test").participant_view(id).state == "open" for id in ids[1:])
        if not used:
            taken = browser.bearer("POST", "/a/answer", secret, json={"response": "rr/1.0/1"})
            assert taken.json()["taken"]


def test_an_error_page_shows_nothing_that_its_reader_may_not_open(
    home: AppState, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may answer but not open a participant's page gets no page of one."""
    id = home.trial("L").ask(site="Leeds").assignments[0].id
    token = home.tokens.make("a site", "site", "a test", "L", "Leeds")[1]
    login = home.tokens.log_in(token)
    form = {"id": "1-00000000", "response": "rr/1.0/1", "key": form_key(login), "once": "a"}
    monkeypatch.setitem(ACTIONS, "list-open", frozenset({"manager"}))
    found = browser.cookie("POST", "/t/L/site/answer", login, data=form)
    assert found.status_code == 403
    assert id not in found.text


@pytest.mark.parametrize("origin", ["http://trials.example", "null", "//trials.example"])
def test_a_page_without_tls_cannot_log_a_browser_in(
    origin: str, home: AppState, browser: Browser
) -> None:
    """Somebody on the network answers for http:// in the name of the service, and has
    the browser send a login of their own to https://.
    """
    form = {"secret": home.tokens.make("somebody", "manager", "a test")[0], "to": "/"}
    found = browser.send("POST", "/login", headers={"Origin": origin}, data=form)
    assert found.status_code == 422
    assert "set-cookie" not in found.headers
    assert browser.send("POST", "/login", headers={"Origin": BASE}, data=form).status_code == 303


# --- login links ----------------------------------------------------------------------


def test_a_login_link_works_once_and_says_what_to_do(home: AppState, browser: Browser) -> None:
    code = make_secrets(home)[SecretKind.LOGIN_CODE]
    first = browser.log_in(code)
    assert first.status_code == 303
    browser.client.cookies.clear()
    again = browser.log_in(code)
    assert again.status_code == 403
    assert "already used" in again.text
    assert "ask the person who gave you the link for a new one" in again.text
    assert code not in again.text


def test_a_login_link_expires(
    home: AppState, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = make_secrets(home)[SecretKind.LOGIN_CODE]
    now = home.token_table.now()
    monkeypatch.setattr(type(home.token_table), "_now", lambda *_: now + 15 * 60 + 1)
    assert home.tokens.find_code(code) is None
    found = browser.log_in(code)
    assert found.status_code == 403
    assert "older than 15 minutes" in found.text


def test_a_login_link_ends_with_its_token(home: AppState, browser: Browser) -> None:
    _, token = home.tokens.make("a manager", "manager", "a test")
    code = home.tokens.make_code(token)
    home.tokens.revoke(token.number, "a test")
    assert browser.log_in(code).status_code == 403


def test_two_who_press_at_once_are_not_both_logged_in(home: AppState) -> None:
    code = make_secrets(home)[SecretKind.LOGIN_CODE]
    assert [home.tokens.use_code(code) for _ in range(2)] == [True, False]


def test_the_cookie_of_a_login_belongs_to_this_host(home: AppState, browser: Browser) -> None:
    secrets = make_secrets(home)
    said = browser.log_in(secrets[SecretKind.TOKEN]).headers["set-cookie"]
    assert said.startswith(f"{SECURE_LOGIN_COOKIE}={SecretKind.LOGIN.prefix}")
    words = {word.strip().lower() for word in said.split(";")[1:]}
    assert {"secure", "httponly", "path=/", "samesite=strict"} <= words
    assert not any(word.startswith("domain") for word in words)
    browser.client.cookies.clear()
    planted = {"Cookie": f"{LOGIN_COOKIE}={secrets[SecretKind.LOGIN]}"}
    assert browser.send("GET", "/t/L", headers=planted).status_code == 303, "not over TLS"


def test_a_login_over_another_login_asks_first(home: AppState, browser: Browser) -> None:
    """A link that somebody sends must not change who enters outcomes here."""
    tokens = home.tokens
    mine, _ = tokens.make("Ada", "manager", "a test")
    _, other = tokens.make("Bob", "manager", "a test")
    typed, _ = tokens.make("Cleo", "manager", "a test")
    assert browser.log_in(mine).status_code == 303
    before = browser.client.cookies[SECURE_LOGIN_COOKIE]
    for secret, name in ((tokens.make_code(other), "Bob"), (typed, "Cleo")):
        asked = browser.log_in(secret)
        assert asked.status_code == 409
        assert "You are logged in as <strong>Ada</strong>" in asked.text
        assert f"Log in as {name}" in asked.text
        assert "Ada (manager)" in browser.send("GET", "/").text, "still"
        assert typed not in asked.text, "a token is not repeated in a page"
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.text))
        forged = browser.log_in(form["secret"], key=form_key(new_secret(SecretKind.LOGIN)))
        assert forged.status_code == 409
    assert browser.log_in(form["secret"], key=form["key"]).status_code == 303
    assert "Cleo (manager)" in browser.send("GET", "/").text
    assert tokens.find_login(before) is None, "the former login has ended"


def test_a_login_with_the_same_token_is_not_asked_about(home: AppState, browser: Browser) -> None:
    secret, token = home.tokens.make("Ada", "manager", "a test")
    assert browser.log_in(secret).status_code == 303
    assert browser.log_in(home.tokens.make_code(token)).status_code == 303


def test_a_manager_makes_another_login_link_for_staff(home: AppState, browser: Browser) -> None:
    site = home.tokens.make("Leeds staff", "site", "a test", "L", "Leeds")[1]
    invitation = make_secrets(home)[SecretKind.INVITATION]
    answers = home.tokens.find_invitation(invitation)
    assert answers is not None
    browser.log_in(home.tokens.make("Ada", "manager", "a test")[0])
    key = form_key(browser.client.cookies[SECURE_LOGIN_COOKIE])
    made = browser.send("POST", f"/tokens/{site.number}/link", data={"key": key})
    (code,) = re.findall(rf"/login[^\"#]*#({SecretKind.LOGIN_CODE.prefix}[\w-]+)", made.text)
    assert home.tokens.find_code(code) == site
    assert "discreet_token_" not in made.text
    entry = home.trial("L").audit_trail()[0]
    assert (entry.user, entry.action) == ("Ada", f"token link {site.number}")
    refused = browser.send("POST", f"/tokens/{answers.number}/link", data={"key": key})
    assert refused.status_code == 422
    browser.client.cookies.clear()
    browser.log_in(home.tokens.make("Leeds staff", "site", "a test", "L", "Leeds")[0])
    key = form_key(browser.client.cookies[SECURE_LOGIN_COOKIE])
    assert browser.send("POST", f"/tokens/{site.number}/link", data={"key": key}).status_code == 403
