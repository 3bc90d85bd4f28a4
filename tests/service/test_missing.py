"""Nobody can tell a missing outcome from one that was entered: not from addresses, log
lines, metrics, the audit trail, answers, or what the database keeps.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from discreet import Trial, ctb_tt, respond
from discreet.trials.store import schema
from tests.support.served import Visit, hidden
from tests.support.service import Service, serving, wait_for
from tests.support.stores import create, database


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    create(url).close()
    create(url, "local", strategy=ctb_tt(1.0, 0.1)).close()
    with serving(url) as made:
        yield made


def read_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return what the log says of calls, without times and the calls' own names."""
    lines = [dict(getattr(record, "about", {})) for record in caplog.records]
    caplog.clear()
    calls = [one for one in lines if one.get("route") != "/healthz"]
    return [{key: one[key] for key in one if key not in ("ms", "request")} for one in calls]


def count_calls(service: Service) -> dict[str, float]:
    found = re.findall(r"(discreet_requests_total{\S*) (\S+)", service.home.metrics.text().decode())
    return {name: float(number) for name, number in found}


def watch(
    service: Service,
    caplog: pytest.LogCaptureFixture,
    trial: str,
    call: Callable[[str], Any],
) -> list[Any]:
    """Enrol a participant, make a call about it, and return all that may be noticed."""
    kept = service.home.trial(trial)
    (one,) = kept.ask(1).assignments
    read_lines(caplog)
    before = count_calls(service)
    answer = call(one.id)
    httpx.get(f"{service.base_url}/healthz")  # a line is written after its answer was sent
    wait_for(lambda: any("/healthz" in str(one.__dict__) for one in caplog.records))
    after = count_calls(service)
    counted = {name: after[name] - before.get(name, 0) for name in after}
    noted = [entry[2:] for entry in kept.audit_trail(1)]
    calls = {name: n for name, n in counted.items() if n and "/healthz" not in name}
    return [answer, read_lines(caplog), calls, noted]


def requests_of(url: str) -> list[str]:
    with database(url) as connection:
        found = connection.execute(schema.requests.select()).all()
    return [json.loads(row.answer)["said"][0] for row in found if '"said"' in row.answer]


def test_a_program_does_the_same_calls(
    url: str, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "discreet.service")
    for name in ("colours", "local"):
        far = Trial.open(f"{service.base_url}/t/{name}", token=service.secret)
        present: Callable[[str], Any] = lambda id: far.tell(id, 1.0)  # noqa: B023,E731
        if name == "local":
            present = lambda id: far.answer(id, respond(1.0, 1.0))  # noqa: B023,E731
        told = watch(service, caplog, name, present)
        missed = watch(service, caplog, name, far.miss)
        assert told == missed
        assert len(told[1]) == 1
        far.close()
    assert "miss" not in requests_of(url)


def test_the_pages_do_the_same_calls(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "discreet.service")
    visit = Visit(service.base_url, service.secret)
    given = {"colours": {"outcome": "1"}, "local": {"response": str(respond(1.0, 1.0))}}
    paths = {"colours": "/t/colours/site/tell", "local": "/t/local/site/answer"}

    def send(name: str, fields: dict[str, str], id: str) -> list[str]:
        page = visit.get(f"/t/{name}/site/{id.split('-', maxsplit=1)[0]}").text
        assert "/miss" not in page
        found = visit.post(paths[name], hidden(page, paths[name]) | fields)
        assert found.status_code == 200
        steps = [*found.history, found]
        shown = re.search(r'role="status"[^>]*>(.*?)</p>', found.text)
        assert shown is not None
        texts = [*(str(one.url) for one in steps), shown.group(1)]
        return [re.sub(r"\d+", "N", text) for text in texts]

    for name, fields in given.items():
        told = watch(service, caplog, name, lambda id: send(name, fields, id))  # noqa: B023
        missed = watch(service, caplog, name, lambda id: send(name, {"sure": "yes"}, id))  # noqa: B023
        assert told == missed


def test_a_missing_outcome_is_null_in_the_body(service: Service) -> None:
    kept = service.home.trial("colours")
    one, two, three = (each.id for each in kept.ask(3).assignments)
    api = f"{service.base_url}/api/v1/trials/colours"
    body = {"outcomes": {one: None, two: 1}}
    headers = service.headers | {"Idempotency-Key": "k"}
    for _ in range(2):
        assert httpx.post(f"{api}/tell", json=body, headers=headers).json()["new"] == 2
    assert httpx.post(f"{api}/miss", json={"id": three}, headers=headers).status_code == 404
    assert kept.status().pending == 1
    with pytest.raises(Exception, match="outcome"):
        kept.tell(three, None)  # type: ignore[arg-type]
    assert kept.status().pending == 1


def test_a_participant_cannot_say_that_nothing_will_come(service: Service) -> None:
    kept = service.home.trial("local")
    (one,) = kept.ask(1).assignments
    api = f"{service.base_url}/api/v1/trials/local"
    link = httpx.post(f"{api}/invite", json={"id": one.id}, headers=service.headers).json()
    secret = re.split(r"[#/]", link["link"])[-1]
    headers = {"Authorization": f"Bearer {secret}"}
    found = httpx.post(f"{api}/answer", json={"answers": {one.id: None}}, headers=headers)
    assert found.status_code == 401
    page = f"{service.base_url}/a/answer"
    assert httpx.post(page, json={"response": None}, headers=headers).status_code == 400
    assert kept.status().pending == 1


def test_the_database_keeps_one_state(url: str) -> None:
    """A state for missing outcomes would tell them, and is never erased."""
    trial = create(url, deadline=3600.0)
    one, two, *_ = (each.id for each in trial.ask(3).assignments)
    trial.tell(one, 1.0)
    trial.miss(two)
    with database(url) as connection:
        rows = connection.execute(schema.assignments.select()).all()
    assert [row.state for row in sorted(rows, key=lambda row: row.number)][:2] == [1, 1]
