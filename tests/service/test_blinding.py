"""What each role sees of a blinded trial."""

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from discreet import bet_se
from discreet.service.access import OPERATOR, SITE, VIEWER, Visitor
from discreet.service.blinding import blinded, shown
from discreet.trials.store.doors import Token
from tests.support.remote import far_away
from tests.support.served import Visit, hidden
from tests.support.stores import ARMS, create


def visitor(role: str) -> Visitor:
    site = "Leeds" if role == SITE else None
    return Visitor(Token(1, "me", role, None, site, None, 0, "them", None, None, None))


@pytest.mark.parametrize("blinding", ["none", "codes"])
@pytest.mark.parametrize("role", [OPERATOR, SITE, VIEWER])
@pytest.mark.parametrize("stopped", [False, True])
def test_only_sites_are_blinded_and_only_before_the_end(
    blinding: str, role: str, stopped: bool, tmp_path: Path
) -> None:
    trial = create(f"sqlite:///{tmp_path}/t.db", strategy=bet_se(0.05, 1.0), blinding=blinding)
    trial.operate("add-arm", "it came late", "pink")
    whole = replace(trial.status(), stopped=stopped, recommendation="red", smallest_delta=0.2)
    hidden = (blinding, role, stopped) == ("codes", SITE, False)
    assert blinded(trial.protocol, stopped, visitor(role)) is hidden
    found = shown(whole, trial.protocol, visitor(role))
    assert (found != whole) is hidden
    assert any(arm in str(found) for arm in (*ARMS, "pink")) is not hidden
    assert found.error_rate == (None if hidden else 0.1)


def test_a_blinded_trial_is_published_after_its_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    trial = create(url, strategy=bet_se(0.05, 1.0), blinding="codes")
    with far_away(url) as far:
        path = f"{far.base}/api/v1/trials/colours/publish"
        headers = {"Authorization": f"Bearer {far.secret}"}
        early = httpx.post(path, headers=headers)
        assert (early.status_code, "after its end" in early.json()["detail"]) == (422, True)
        visit, publish = Visit(far.base, far.secret), "/t/colours/publish"
        page = visit.get(publish).text
        assert "can be published after its end" in page
        assert "Publish it" not in page
        key = hidden(visit.get("/tokens").text, "/tokens")["key"]
        refused = visit.post(publish, {"key": key, "published": "yes"})
        assert (refused.status_code, "after its end" in refused.text) == (422, True)
        assert httpx.get(f"{far.base}/p/colours").status_code != 200
        trial.operate("stop", "enough")
        assert httpx.post(path, headers=headers).json() == {"published": True}
        assert httpx.get(f"{far.base}/p/colours").status_code == 200
