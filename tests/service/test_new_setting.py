"""A new setting of trials is one field of the table of settings: the HTTP body, the API's
description, the form and the review have it at once.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
FIELD = """    masking: str = _setting(
        "Masking of assessors", "Who assesses.", "none", {"none": "as usual", "full": "apart"}
    )
    script: str"""
PROGRAM = """
import asyncio, httpx, msgspec, sys
from discreet.service import planner
from discreet.service.app import make_app
from discreet.service.openapi import document
from discreet.service.pages.new_trial import describe_protocol
from discreet.service.pages.trial_form import read_form
from discreet.service.state import AppState
from discreet.trials.trial import Trial

planner.warm = lambda: None
home = AppState(sys.argv[1])
secret, token = home.tokens.make("a test", "manager", "a test")
cookies = {"discreet_login": home.tokens.log_in(token)}
body = {"name": "dose", "arms": ["a", "b"], "max_participants": 500, "masking": "full"}
body["strategy"] = {"name": "bet-se", "delta": 0.1, "epsilon": 1.0}

async def call():
    transport = httpx.ASGITransport(make_app(home))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        page = await client.get("/new", cookies=cookies)
        assert "Masking of assessors" in page.text and 'name="masking"' in page.text, page.text
        headers = {"Authorization": f"Bearer {secret}"}
        found = await client.post("/api/v1/trials", json=body, headers=headers)
        assert found.status_code == 200, found.text

asyncio.run(call())
assert home.trial("dose").protocol.masking == "full"
fields = document()["components"]["schemas"]["NewTrial"]["properties"]
assert fields["masking"]["default"] == "none"
form = read_form({"name": "next", "max_participants": "500", "masking": "full"})
assert form.protocol.masking == "full"
assert ("Masking of assessors", "apart") in describe_protocol(form.protocol)
home.close()
"""


@pytest.mark.slow
def test_a_new_setting_is_one_field_of_the_table(tmp_path: Path) -> None:
    package = tmp_path / "discreet"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, package, ignore=ignored)
    table = package / "trials" / "settings.py"
    changed, count = re.subn(r"    script: str", lambda _: FIELD, table.read_text(), count=1)
    assert count == 1
    table.write_text(changed)
    command = [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path}/trials.db"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
