"""What can be taken away from a page: the transcript, the report, the arms as a table,
pictures. Each is computed once for a state of the record, however many want it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from discreet.errors import RefusedError
from discreet.frames import cell
from discreet.reports.compared import check_control
from discreet.reports.page import POLICY
from discreet.reports.trial import trial_page, trial_pictures
from discreet.service.blinding import blinded
from discreet.service.home import Computation
from discreet.service.pages.frame import Look
from discreet.service.pictures import without_styles
from discreet.trials.trial import Trial

NO_MEANS = "sites see how the arms did only after the trial has ended"
NOTHING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 1"/>'


def picture_key(said: Mapping[str, Any]) -> str:
    """What the picture of a trial depends on: another one is another picture."""
    return f"{said['releases']}-{len(said['acts'])}-{int(said['stopped'])}"


async def means(looking: Look) -> Response:
    """The private means at each look, drawn."""
    return await _picture(looking, "means")


async def evidence(looking: Look) -> Response:
    """The evidence against each arm, drawn."""
    return await _picture(looking, "evidence")


async def _picture(looking: Look, which: str) -> Response:
    def plan() -> Computation:
        seen = looking.home.seen(looking.name, looking.visitor)
        trial, status = seen.trial, seen.status
        if blinded(trial.protocol, status.stopped, looking.visitor):
            raise RefusedError(NO_MEANS, True)
        key = (looking.name, "pictures", picture_key(seen.said()))
        return Computation(key, lambda: _drawn(trial), lambda found: found.get(which, NOTHING))

    return svg(await looking.home.compute(await looking.run(plan)))


def svg(text: str) -> Response:
    """Return a picture as a response. No browser stores it: it may be a shared one."""
    return Response(text, 200, {"Cache-Control": "no-store"}, "image/svg+xml")


def _drawn(trial: Trial) -> dict[str, str]:
    """All pictures of a trial, in one walk through its record."""
    found = trial_pictures(trial.transcript())
    return {name: without_styles(picture.svg.decode()) for name, picture in found.items()}


async def transcript(looking: Look) -> Response:
    """What may be published."""
    return await _file(looking, "transcript.json", "application/json", transcript_text)


def transcript_text(trial: Trial) -> str:
    """The transcript as it is written to a file."""
    return json.dumps(trial.transcript(), indent=1, ensure_ascii=False) + "\n"


async def report(looking: Look) -> Response:
    """The transcript as a page of its own, with its own styles and no script; arms are
    compared with the one that is asked for.
    """
    control = looking.request.query_params.get("control") or None
    found = await _file(
        looking,
        "report.html",
        "text/html",
        lambda trial: trial_page(trial.transcript(), control),
        control,
    )
    found.headers["Content-Security-Policy"] = POLICY
    return found


async def arms(looking: Look) -> Response:
    """The arms as a table for a spreadsheet."""
    return await _file(looking, "arms.csv", "text/csv", _arms)


def _arms(trial: Trial) -> str:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["arm", "people", "outcomes behind the mean", "private mean", "low", "high"])
    for arm in trial.status().arms:
        ends = arm.interval or ("", "")
        table.writerow(
            [cell(arm.name), arm.pulls, arm.count, "" if arm.mean is None else arm.mean, *ends]
        )
    return text.getvalue()


async def _file(
    looking: Look,
    ending: str,
    media: str,
    make: Callable[[Trial], str],
    control: str | None = None,
) -> Response:
    """A file of a trial, made once for a state of it."""

    def plan() -> Computation:
        seen = looking.home.seen(looking.name, looking.visitor)
        trial, status = seen.trial, seen.status
        check_control(control, [arm.name for arm in status.arms])
        key = (looking.name, status.head, status.pending, status.erasing, ending, control)
        return Computation(key, lambda: make(trial))

    text = await looking.home.compute(await looking.run(plan))
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", looking.name).strip("-")[:60] or "trial"
    shown = "inline" if media == "text/html" else "attachment"
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'{shown}; filename="{plain}-{ending}"',
    }
    return Response(text, 200, headers, media)
