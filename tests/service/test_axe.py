"""Every page by axe-core: on a phone and a desktop, light and dark."""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from discreet import Trial, bet_se
from discreet.service import planner
from discreet.service.state import link_path
from tests.support import axe
from tests.support.live import serving
from tests.support.visitors import Service, service

LOOKS = (({"width": 1200, "height": 900}, "light"), ({"width": 390, "height": 844}, "dark"))
"""A desktop in light and a phone in the dark: contrast is a matter of light, and what
can be touched and moved one of width.
"""
PAGES = (
    *("/", "/tokens", "/tokens/1/revoke", "/new", "/t/dose", "/t/dose/manage"),
    *("/t/dose/manage/drop-arm", "/t/dose/publish", "/t/dose/audit-trail", "/t/dose/report.html"),
    *("/t/dose/site", "/t/dose/site/1", "/t/dose/site/12", "/t/done/site", "/t/local/site/1"),
    *("/t/blind/manage", "/t/blind/codes", "/t/blind/site/1", "/p/done", "/t/fresh", "/a"),
    *("/api/docs", "/login"),
)


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    if not axe.ENGINE.exists():
        assert axe.REQUIRED not in os.environ, "axe-core is not installed, and it must be there"
        pytest.skip("axe-core is not installed")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("axe")) as made:
        made.trial("dose").manage("pause", "Snow on the roads.")
        made.trial("blind", blinding="codes")
        finish(made.trial("done"))
        local = bet_se(0.1, 1.0, trust="local")
        with closing(
            Trial.create(made.url, "local", ["a", "b"], local, 500, returning="refuse")
        ) as t:
            t.ask(participant="Ada")
        arms = ["a", "b"]
        Trial.create(made.url, "fresh", arms, bet_se(0.1, 1.0), 500, sites=["Leeds"]).close()
        for name in ("dose", "done"):
            made.home.token_table.publish(name, "a test")
        yield made


def finish(trial: Trial) -> None:
    """Until one arm is left."""
    best = trial.protocol.arms[0]
    while not trial.status().stopped:
        trial.ask(100, site="Lyon")
        waiting = trial.open_assignments()
        trial.tell_many({one.id: float(one.arm == best) for one in waiting})
    trial.close()


@pytest.fixture(scope="module")
def address(place: Service) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, serving(place) as found:
        patch.setattr(planner, "warm", lambda: None)
        yield found


def found_in(page: Any) -> list[str]:
    """What is wrong with the page that is shown."""
    axe.load(page)
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    found = list[str]()
    for size, light in LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=light)
        found += [f"{size['width']} {light}: {one}" for one in axe.violations(page)]
    return found


@pytest.mark.slow
def test_no_page_has_violations(place: Service, address: str, page: Any) -> None:
    _, token = place.home.tokens.make("a manager", "manager", "a test")
    code = place.home.tokens.make_code(token)
    page.goto(f"{address}/login#{code}")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{address}/")
    wrong = {}
    for path in PAGES:
        page.goto(f"{address}{path}")
        wrong[path] = found_in(page)
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.slow
def test_a_participant_is_asked_without_violations(place: Service, address: str, page: Any) -> None:
    (one,) = place.home.trial("local").open_assignments()
    secret, _ = place.home.tokens.make("link", "participant", "a test", "local", participant=one.id)
    page.goto(f"{address}{link_path(secret)}")
    page.get_by_label("Yes").first.wait_for()
    assert found_in(page) == []


def test_violations_are_found(address: str, page: Any) -> None:
    page.goto(f"{address}/login")
    page.evaluate("document.querySelectorAll('label').forEach((one) => one.remove())")
    page.evaluate("document.documentElement.lang = ''")
    found = " ".join(found_in(page))
    assert "html-has-lang" in found
    assert "label" in found
