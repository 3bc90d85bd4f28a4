"""Outcomes, identities, tokens and addresses are planted, and all that reaches a client
or a log is searched for them: every address of the service, for every kind of caller,
while all is well, while a bug throws what it knows, and without a database.

Seen to fail with: the words of a foreign error in an answer, a logged query, a form
that shows an outcome again, a store that tells its path.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
import sqlalchemy as sa

from discreet import Trial, bet_se
from discreet.service import observability, planner
from discreet.service.app import routes
from discreet.service.auth import form_key
from discreet.service.pages.base import LOGIN_COOKIE
from discreet.trials.store.tables import TrialTables
from tests.support.service import Service, serving

DIGITS = "7313177"
"""Stand in every outcome."""
PERSON = "Zebedee"
OUTCOME = f"0.{DIGITS}"
ROLES: dict[str, dict[str, Any]] = {
    "manager": {},
    "site": {"trial": "dose", "site": "Leeds"},
    "monitor": {},
}


class Searched(logging.Handler):
    """All that was said, to whomever."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service
        self.said: list[tuple[str, str]] = []
        self.callers: dict[str, httpx.Client] = {}
        self.secrets = [service.secret]
        for role, scope in ROLES.items():
            self._add(role, service.token(role, **scope))
        id = service.home.trial("local").ask().assignments[0].id
        self._add("participant", service.token("participant", trial="local", participant=id))
        self._add("stranger", "discreet_" + "x" * 43)

    def _add(self, role: str, secret: str) -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        client = httpx.Client(base_url=self.service.base_url, headers=headers, timeout=60)
        client.event_hooks = {"response": [self.heard]}
        self.secrets.append(secret)
        self.callers[role] = client
        if role in ROLES:
            client.post("/login", data={"secret": secret, "to": "/"})
            self.secrets.append(client.cookies[LOGIN_COOKIE])

    def close(self) -> None:
        for client in self.callers.values():
            client.close()
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        lines = [
            put(observability.fields(record))
            for put in (observability.json_line, observability.text_line)
        ]
        self.said.append(("log", "\n".join(lines)))

    def heard(self, answer: httpx.Response) -> None:
        if answer.request.url.path.endswith("/events"):
            return  # it does not end
        where = f"{answer.request.method} {answer.request.url.path}: {answer.status_code}"
        answer.read()
        heads = [f"{key}: {value}" for key, value in answer.headers.items() if key != "set-cookie"]
        self.said.append((where, "\n".join([*heads, answer.text])))

    def check(self, *more: str) -> None:
        """Nothing of what was planted is in it. (A participant is named to whoever asks for
        their arm by that name.)
        """
        words = [DIGITS, PERSON, *self.secrets, *more]
        units = round(float(OUTCOME) * 2**20)
        number = re.compile(rf"(?<![\w.]){units}(?!\w)")
        for where, text in self.said:
            found = [word for word in words if word in text]
            if "/ask" in where and PERSON in found:
                found.remove(PERSON)
            assert not found, f"{found} in {where}: {text[:3000]}"
            assert not number.search(text), f"an outcome in units in {where}"
        assert len(self.said) > 10


@contextmanager
def searching(url: str) -> Iterator[Searched]:
    """A service of two trials, of which one has local trust, and its callers."""
    numbers = bet_se(0.1, 5.0, outcomes="numbers")
    Trial.create(
        url, "dose", ["a", "b"], numbers, 500, sites=["Leeds"], returning="same-arm"
    ).close()
    Trial.create(url, "local", ["a", "b"], bet_se(0.1, 5.0, trust="local"), 500).close()
    log = logging.getLogger()
    with serving(url) as service:
        service.home.token_table.publish("dose", "a test")
        made = Searched(service)
        log.addHandler(made)
        try:
            yield made
        finally:
            log.removeHandler(made)
            made.close()


@pytest.fixture
def searched(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Searched]:
    monkeypatch.setattr(planner, "warm", lambda: None)
    caplog.set_level(logging.INFO)
    for chatty in ("httpx", "httpcore"):
        caplog.set_level(logging.WARNING, chatty)
    with searching(url) as made:
        yield made


def walk(searched: Searched, roles: Any, methods: tuple[str, ...] = ("GET", "POST")) -> None:
    """Call every address as each of these, with something planted wherever it fits."""
    parts = {"{name}": "dose", "{number}": "1", "{action}": "pause"}
    for route in routes(searched.service.home):
        path = route.path
        for old, new in parts.items():
            path = path.replace(old, new)
        for method in methods:
            if method in (route.methods or ()) and not path.endswith("/events"):
                for role in roles:
                    with suppress(httpx.ReadError):  # refused before all of it was read
                        call(searched.callers[role], method, path)


JSON: tuple[Any, ...] = (
    {"outcomes": {OUTCOME: OUTCOME}, "answers": {OUTCOME: OUTCOME}},
    {"outcomes": {"1-0": float(OUTCOME)}},
    {"id": OUTCOME, "outcome": float(DIGITS)},
)


def call(client: httpx.Client, method: str, path: str) -> None:
    if path == "/logout":
        return
    if method == "GET":
        client.get(path)
        client.get(path, params={"head": OUTCOME, "said": OUTCOME})
    elif path.startswith(("/api", "/a/")):
        for body in JSON:
            client.post(path, json=body)
        client.post(path, content=f'{{"outcomes": {{"{PERSON}": {OUTCOME}'.encode())
        client.post(path, headers={"Idempotency-Key": f"{OUTCOME} {PERSON}" * 20})
    else:
        login = client.cookies.get(LOGIN_COOKIE) or ""
        planted = dict.fromkeys(("outcome", "response", "id", "code", "once", "token"), OUTCOME)
        form = {**planted, "participant": PERSON, "site": "Leeds", "key": form_key(login)}
        client.post(path, data=form)
        client.post(path, data={**form, "id": "1-0123456789abcdef", "outcome": f"0,{DIGITS}"})


def enrol_and_tell(searched: Searched) -> None:
    """A site's participants, told and corrected, until something is released."""
    site, path = searched.callers["site"], "/api/v1/trials/dose"
    for turn in range(2):
        key = {"Idempotency-Key": f"{PERSON} {turn}"}
        said = {"participants": [f"{PERSON} {turn} {place}" for place in range(6)]}
        batch = site.post(f"{path}/ask", json=said, headers=key).json()["assignments"]
        told = {one["id"]: float(OUTCOME) for one in batch}
        assert site.post(f"{path}/tell", json={"outcomes": told}).json()["new"] == len(told)
        assert site.post(f"{path}/tell", json={"outcomes": told}).json()["new"] == 0
        site.post(f"{path}/amend", json={"id": batch[0]["id"], "outcome": float(OUTCOME)})
        site.post(f"{path}/list-open", json={})


@pytest.mark.slow
def test_nothing_planted_is_found_while_all_is_well(searched: Searched) -> None:
    monitor = searched.callers["monitor"]
    enrol_and_tell(searched)
    walk(searched, searched.callers, ("GET",))
    walk(searched, ("manager", "participant"), ("POST",))
    with monitor.stream("GET", "/api/v1/trials/dose/events") as stream:
        lines = [line for line, _ in zip(stream.iter_lines(), range(3), strict=False)]
    searched.said.append(("events", "\n".join(lines)))
    statuses = {where.rpartition(" ")[2] for where, _ in searched.said if where != "log"}
    assert {"200", "303", "400", "401", "403", "404", "422"} <= statuses
    assert not [text for where, text in searched.said if "an unexpected error" in text]
    searched.check()


def bug(*_about: Any) -> NoReturn:
    raise RuntimeError(f"the outcome of {PERSON} is {OUTCOME}")


def gone(*_about: Any) -> NoReturn:
    about = {"units": DIGITS, "participant": PERSON}
    words = f'connection to "/nowhere/pg" failed for {OUTCOME}'
    raise sa.exc.OperationalError(f"INSERT {OUTCOME}", about, Exception(words))


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("fault", "status"), [(bug, "500"), (gone, "503")])
def test_nothing_planted_is_found_when_something_breaks(
    searched: Searched, fault: Any, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, path = searched.callers["manager"], "/api/v1/trials/dose"
    said = {"n": 1, "participant": PERSON, "site": "Leeds"}
    (one,) = manager.post(f"{path}/ask", json=said).json()["assignments"]
    for name in [name for name in vars(TrialTables) if not name.startswith("_")]:
        monkeypatch.setattr(TrialTables, name, fault)
    searched.said.clear()
    manager.post(f"{path}/tell", json={"outcomes": {one["id"]: float(OUTCOME)}})
    manager.post(f"{path}/ask", json={"n": 1, "participant": PERSON})
    walk(searched, ("manager",))
    found = [where for where, _ in searched.said if where.endswith(status)]
    assert len(found) > 20
    searched.check("/nowhere", str(searched.service.home.store.dialect.location))
    monkeypatch.undo()


def test_nobody_learns_where_a_file_is_that_is_gone(tmp_path: Path) -> None:
    """Nor who asks for a trial that was open, or for one that was not."""
    file = tmp_path / "trials.db"
    url = f"sqlite:///{file}"
    for name in ("dose", "other"):
        Trial.create(url, name, ["a", "b"], bet_se(0.1, 1.0), 500).close()
    with serving(url) as service, httpx.Client(base_url=service.base_url) as client:
        client.headers.update(service.headers)
        assert client.get("/api/v1/trials/dose").status_code == 200
        for end in ("", "-wal", "-shm"):
            Path(f"{file}{end}").rename(f"{tmp_path}/away{end}")
        for path in ("/trials/other", "/trials", "/trials/dose/audit-trail", "/trials/dose/verify"):
            answer = client.get(f"/api/v1{path}")
            assert answer.status_code == 503, answer.text
            assert answer.json()["detail"].startswith("the database: the file was removed")
        answer = client.get("/t/dose", headers={"Cookie": f"{LOGIN_COOKIE}=x"})
        assert answer.status_code == 503
        assert "the file was removed" in answer.text
        assert str(tmp_path) not in answer.text
        for end in ("", "-wal", "-shm"):
            Path(f"{tmp_path}/away{end}").rename(f"{file}{end}")
        assert client.get("/api/v1/trials/other").status_code == 200
