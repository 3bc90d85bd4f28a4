"""Jobs that another process can do for its caller: made, written down, and read there.

Whoever does a job for others keeps its answer, in the same transaction: under the key
of the job, or on a slip with those of other jobs (`slips`). If it is not known whether
it was done, since that process has died, that is where it is seen: it is done once.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from discreet.trials.again import Request
from discreet.trials.desk import Desk, Outcomes
from discreet.trials.enrol import ask, open_round
from discreet.trials.intake import Wanted, identifiers
from discreet.trials.status import Batch, Told
from discreet.trials.together import Job, Work

ASK, TELL, EXPIRE, OPEN = "ask", "tell", "expire", "open"
MOST_PEOPLE = 64
"""Of what another process does: nobody there is held up long."""


def ask_job(wanted: Wanted) -> Job[Wanted, Batch | None]:
    """Let people in; None comes of it if a round must be opened first."""
    return Job(ask, wanted, wanted.alike, ASK, people=wanted.how_many)


def tell_job(told: Outcomes, site: str | None, request: Request | None) -> Job[Outcomes, Told]:
    """Take in outcomes."""
    ids = tuple(told.units)
    about: dict[str, Any] = {"ids": ids, "site": site, "request": request}
    return Job(Desk.take_in, told, TELL, TELL, people=len(ids), **about)


def expire_job() -> Job[None, int]:
    """Give up what is late. Whoever does it again finds nothing left to do."""
    return Job(_once(lambda desk: desk.expire(False)), None, EXPIRE, EXPIRE)


def open_job() -> Job[None, None]:
    """Open a round. Whoever does it again finds it open."""
    return Job(_once(open_round), None, OPEN, OPEN)


def _once(work: Callable[[Desk], Any]) -> Work[None, Any]:
    """Done once for all who want it."""
    return lambda desk, callers: [work(desk)] * len(callers)


def tell_request(key: str, ids: Iterable[str]) -> Request:
    """What a caller who tells outcomes wants to be done once."""
    return Request(key, TELL, tuple(ids))


def may_leave(job: Job[Any, Any]) -> bool:
    """Whether another process can do a job."""
    return job.kind in (ASK, TELL, EXPIRE, OPEN) and job.people <= MOST_PEOPLE


def plain(job: Job[Any, Any]) -> dict[str, Any]:
    """A job as it is written down, with the key that its caller gave it, if any."""
    about: dict[str, Any]
    if job.kind == ASK:
        asked: Wanted = job.item
        about = {"n": asked.how_many, "people": asked.people, "site": asked.site}
        about |= {"alone": asked.alone, "bound": asked.bound}
    elif job.kind == TELL:
        told: Outcomes = job.item
        about = {"units": told.units, "middles": told.middles, "site": job.site}
    else:
        return {"kind": job.kind}
    return {"kind": job.kind, "who": job.item.who, "key": own_key(job), **about}


def own_key(job: Job[Any, Any]) -> str | None:
    """The key that its caller gave a job."""
    if job.kind == ASK:
        asked: Wanted = job.item
        return asked.request
    return None if job.request is None else job.request.key


def lend(job: Job[Any, Any], key: str) -> None:
    """Give a job a key, unless its caller gave it one, or it may be done twice."""
    if job.kind in (ASK, TELL) and own_key(job) is None:
        job.key = key


def lent(job: Job[Any, Any]) -> dict[str, Any]:
    """A job as it is written down for somebody who keeps its answer under its key, if
    it has one.
    """
    said = plain(job)
    return said | {"key": job.key} if job.key else said


def claim(job: Job[Any, Any], gone: bool = True) -> None:
    """Make a request of a job that another process may have done. If that has `gone`,
    what it did under a key is not known before the job is done again.
    """
    if job.key and job.kind == ASK:
        job.item = job.item._replace(request=job.key)
    elif job.key:
        job.request = tell_request(job.key, job.ids)
    job.unsure = gone and own_key(job) is not None


def jobs_of(written: Sequence[dict[str, Any]]) -> list[Job[Any, Any]]:
    """Jobs that were written down."""
    return [_READ[said["kind"]](said) for said in written]


def _asking(said: dict[str, Any]) -> Job[Any, Any]:
    people = said["people"]
    called = None if people is None else tuple(people)
    names = None if people is None else tuple(identifiers(people))
    about = (said["n"], called, names, said["site"], said["key"], said["who"])
    return ask_job(Wanted(*about, said.get("alone", False), said.get("bound", False)))


def _telling(said: dict[str, Any]) -> Job[Any, Any]:
    told = Outcomes(said["units"], said["middles"], said["who"])
    once = None if said["key"] is None else tell_request(said["key"], told.units)
    return tell_job(told, said["site"], once)


_READ: dict[str, Callable[[dict[str, Any]], Job[Any, Any]]] = {
    ASK: _asking,
    TELL: _telling,
    EXPIRE: lambda _: expire_job(),
    OPEN: lambda _: open_job(),
}
