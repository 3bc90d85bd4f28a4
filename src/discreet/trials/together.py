"""Callers in one process who share a transaction: a commit waits for the disk, and what
comes meanwhile waits for the next one together.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.trials.again import Request, check_apart, done_before, keep
from discreet.trials.desk import Desk, known_ids
from discreet.trials.intake import MOST_AT_ONCE, looks_like_id, number_of, unknown_id
from discreet.trials.interrupts import Later
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.schema import Assigned
from discreet.trials.store.session import Session

Found = TypeVar("Found")
Item = TypeVar("Item")
Work = Callable[[Desk, list[Item]], Sequence[Found]]
"""What is done for one caller or for several who want the same: of each item, what came
of it.
"""
Call = Callable[[], None]
Start = Callable[[Call], Any]


class Job(Generic[Item, Found]):
    """What one caller wants to be done in a transaction."""

    def __init__(
        self,
        work: Work[Item, Found],
        item: Item,
        alike: Any = None,
        kind: str = "",
        ids: Sequence[str] = (),
        people: int = 1,
        any_clock: bool = False,
        who: str = "",
        site: str | None = None,
        request: Request | None = None,
    ) -> None:
        self.work = work
        self.item = item
        self.alike = alike
        """Jobs with the same are done at once; None: by itself."""
        self.kind = kind
        """Jobs of one kind are done in one transaction."""
        self.ids = ids
        """Must be known, or it is refused before anything is done."""
        self.people = people
        self.any_clock = any_clock
        """Whether it is done though the clock has gone back."""
        self.who = who
        """Who wants it, for the journal, if it is done by itself."""
        self.site = site
        """Where its ids must come from, if the caller is bound to a site."""
        self.request = request
        """Under which it is done once, and its answer given again."""
        self.key = ""
        """Of a request that it becomes if another process may have done it; none if it
        has not left this one.
        """
        self.unsure = False
        """Whether another process may have done it under its key, and has gone."""
        self.done = False
        self._call: Call | None = None
        self.error: BaseException | None = None
        self._found: list[Found] = []

    def when_called(self, work: Call) -> None:
        """What calls whoever wants it when it is done, or to see to all that wait."""
        self._call = work

    def call(self) -> None:
        """Call whoever wants it."""
        if self._call is not None:
            self._call()

    def finish(self, found: Found) -> None:
        """What came of it; `done` is said when it is on disk."""
        self._found = [found]

    def fail(self, error: BaseException) -> None:
        """It is done, in vain."""
        self.error, self.done = error, True

    def found(self) -> Found:
        """What came of it."""
        if self.error is not None:
            raise self._own_error()
        return self._found[0]

    def _own_error(self) -> BaseException:
        """An error that several callers hear, for each of them anew."""
        error = self.error
        assert error is not None
        return type(error)(*error.args) if isinstance(error, DiscreetError) else error


def again(ledger: Ledger, job: Job[Any, Found]) -> list[Found]:
    """The answer that a job has had, if its request was made before."""
    return [] if job.request is None else done_before(ledger, job.request)


Serve = Callable[[list[Job[Any, Any]]], None]
"""What does the jobs of several callers."""


def do_all(jobs: list[Job[Any, Any]], serve: Serve) -> None:
    """Do the jobs of several callers; whatever goes wrong is each one's error whose job
    is not done.
    """
    try:
        serve(jobs)
    except BaseException as error:
        for one in jobs:
            if not one.done:
                one.fail(error)


def allowed(session: Session, ledger: Ledger, jobs: Sequence[Job[Any, Any]]) -> list[Job[Any, Any]]:
    """The jobs whose ids are known, and of their callers' sites. The others are refused
    before anything is done, so that the rest need not be done one by one. (An id that
    was reissued is unknown, and the request that did it may come again.)
    """
    ids = [id for job in jobs for id in job.ids]
    known = known_ids(session, ids) if ids else {}
    for job in jobs:
        wrong = [id for id in job.ids if not _may_tell(job, known.get(id))]
        if wrong:
            try:
                job.finish(_before(session, ledger, job, wrong[0]))
                job.done = True
            except DiscreetError as error:
                job.fail(error)
    return [job for job in jobs if not job.done]


def _before(session: Session, ledger: Ledger, job: Job[Any, Found], wrong: str) -> Found:
    """The answer that a job had before a wrong id of it was reissued, or what is wrong
    with it; no more for whoever is bound to another site than its people, which they
    never change.
    """
    numbers = sorted({number_of(id) if looks_like_id(id) else -1 for id in job.ids})
    rows = session.assigned(numbers)
    theirs = all(_may_tell(job, rows.get(number)) for number in numbers)
    for found in again(ledger, job) if theirs else []:
        return found
    raise unknown_id(wrong, job.ids)


def _may_tell(job: Job[Any, Any], row: Assigned | None) -> bool:
    """Whether an id is known, to this caller."""
    return row is not None and job.site in (None, row.site)


def run_alike(desk: Desk, jobs: Sequence[Job[Any, Any]]) -> None:
    """Do jobs that are alike, at once; of those that were done before, find the
    answer.
    """
    new, requests = [], [job.request for job in jobs if job.request is not None]
    check_apart(requests)
    desk.ledger.look_up([desk.ledger.hash(request.text) for request in requests])
    for job in jobs:
        if before := again(desk.ledger, job):
            job.finish(before[0])
        else:
            new.append(job)
    found = new[0].work(desk, [job.item for job in new]) if new else []
    for job, one in zip(new, found, strict=True):
        job.finish(one)
        if job.request is not None:
            keep(desk.ledger, job.request, one)


def grouped(jobs: Sequence[Job[Any, Any]]) -> list[list[Job[Any, Any]]]:
    """Jobs that are alike together. They were all waiting at the same time, so that any
    order is as good.
    """
    groups: dict[Any, list[Job[Any, Any]]] = {}
    for job in jobs:
        groups.setdefault(id(job) if job.alike is None else job.alike, []).append(job)
    return list(groups.values())


def do_until_drawn(
    groups: list[list[Job[Any, Any]]],
    do: Callable[[list[Job[Any, Any]]], bool | None],
    tried: list[Job[Any, Any]],
) -> bool:
    """Do groups up to one that draws, noting which were tried; whether one drew."""
    drew = False
    while groups and not drew:
        group = groups.pop(0)
        tried += group
        if (found := do(group)) is None:
            groups = [[job] for job in group] + groups
            del tried[-len(group) :]
        else:
            drew = found
    return drew


def at_once(jobs: list[Job[Any, Any]]) -> list[Job[Any, Any]]:
    """As many of them, but one at least, as nobody waits long for."""
    people = accumulate(job.people for job in jobs)
    return [job for job, sum in zip(jobs, people, strict=True) if sum <= MOST_AT_ONCE] or jobs[:1]


_RENEWING = threading.Lock()
"""Held by the first thread of a forked process that comes: nobody of its line is
left.
"""


LEADS_WITHOUT = 10
"""How many who lead take what there is, after one has waited in vain."""
MOST_PATIENCE = 1.0
"""Seconds for which one who leads waits for others at the most: a transaction that
waited for a store in use may have taken a minute.
"""


class Together:
    """A line of jobs. Whoever finds nobody at work does all of one kind that wait, and
    the others find theirs done.

    Callers who have had their answer often call again at once. So whoever leads waits
    for as many as there were, for as long as the last transaction took at the most: a
    larger crowd shares what a transaction costs. One kind at a time brings those who
    ask and those who tell into step.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._line = threading.Lock()
        self._jobs: list[Job[Any, Any]] = []
        self._busy = False
        self._pid = os.getpid()
        self._crowd = 1
        """How many callers there were a moment ago."""
        self._gathered = threading.Event()
        """So many wait."""
        self._came = threading.Event()
        """Somebody waits."""
        self._patience = 0.0
        """Seconds that the last transaction took, if it was no longer than usual."""
        self._without = 0
        """How many are to lead without waiting for more."""

    def do(self, job: Job[Any, Found], serve: Serve) -> Found:
        """Have a job done, with others or by itself: by us, with `serve`, or by whoever
        is at work already.
        """
        with Later():
            called = threading.Event()
            job.when_called(called.set)
            if not self._enter(job):
                called.wait()
            if not job.done:
                self._lead(serve)
        return job.found()

    def put(self, job: Job[Any, Any], serve: Serve, start: Start, call: Call) -> None:
        """The same without waiting: `start` has something done in a thread of its own,
        and `call` is called from such a thread when the job is done.
        """

        def called() -> None:
            if job.done:
                call()
            else:
                start(lambda: self._lead_on(serve))

        job.when_called(called)
        if self._enter(job):
            called()

    def _enter(self, job: Job[Any, Any]) -> bool:
        """Put a job into the line; whether nobody is at work."""
        if self._pid != os.getpid():
            with _RENEWING:
                if self._pid != os.getpid():
                    self._begin()
        with self._line:
            self._jobs.append(job)
            leads, self._busy = not self._busy, True
            if len(self._jobs) == 1:
                self._came.set()
            if len(self._jobs) >= self._crowd:
                self._gathered.set()
        return leads

    def _lead_on(self, serve: Serve) -> None:
        """Do what waits, and what comes soon after it: a thread that has nobody else
        to wait for hands on to no other.
        """
        goes_on = True
        while goes_on:
            self._lead(serve, stays=True)
            with self._line:
                comes = bool(self._jobs)
                self._came.clear()
            if not comes:
                self._came.wait(self._patience)
            with self._line:
                goes_on = self._busy = bool(self._jobs)

    def _lead(self, serve: Serve, stays: bool = False) -> None:
        """Do all of one kind that wait."""
        jobs = self._gather()
        began = time.monotonic()
        try:
            do_all(jobs, serve)
        finally:
            self._hand_on(jobs, time.monotonic() - began, stays)

    def _gather(self) -> list[Job[Any, Any]]:
        """Those of the first one's kind, once the crowd is here."""
        with self._line:
            here = len(self._jobs)
            waits = here < self._crowd and not self._without
            self._without = max(self._without - 1, 0)
            self._gathered.clear()
        if waits:
            self._gathered.wait(self._patience)
        with self._line:
            if waits and 2 * (len(self._jobs) - here) < self._crowd - here:
                self._without = LEADS_WITHOUT
            kind = self._jobs[0].kind
            jobs = [job for job in self._jobs if job.kind == kind]
            self._jobs = [job for job in self._jobs if job.kind != kind]
        return jobs

    def _hand_on(self, jobs: list[Job[Any, Any]], took: float, stays: bool) -> None:
        """Call those whose jobs are done, and the first of those who came meanwhile,
        unless whoever leads stays.
        """
        with self._line:
            next_one = [] if stays else self._jobs[:1]
            self._busy = stays or bool(next_one)
            self._crowd = len(jobs) + len(self._jobs)
            self._patience = min(took, MOST_PATIENCE)
        for one in jobs + next_one:
            one.call()
