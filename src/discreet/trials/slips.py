"""Slips: what came of jobs that another process did for callers who gave no key.

Whoever does such jobs writes all of their answers on one slip, in the transaction that
does them. If it dies before it has said what came of them, whoever wanted them looks at
the slip: what stands there is done. A key for each of them would be a place of its own
in the store, for ever.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.trials.jobs import TELL
from discreet.trials.status import Assignment, Batch, Told
from discreet.trials.store.ledger import Ledger
from discreet.trials.together import Job

Answer = Batch | Told | None
"""Of an ask (None: it found no open round), or of a tell."""


def place_of(name: str) -> bytes:
    """Under which a slip is kept, among the keys of callers. Its name is random, and
    only those know it who need it: so its hash is no trace of anybody, and takes no
    secret of the trial, which would have to be read each time.
    """
    return hashlib.sha256(f"slip {name}".encode()).digest()


def written(jobs: Mapping[int, Job[Any, Any]]) -> str:
    """What came of jobs, by their numbers; who the people are does not stand there. It
    is as short as can be, since whoever waits for the transaction waits for it.
    """
    return json.dumps({number: _short(job) for number, job in jobs.items()}, separators=(",", ":"))


def read(text: str | bytes, jobs: Mapping[int, Job[Any, Any]]) -> dict[int, Answer]:
    """The same, read again by whoever wanted the jobs, and knows who the people are."""
    said = {int(number): one for number, one in json.loads(text).items()}
    return {number: _answer(one, jobs[number]) for number, one in said.items() if number in jobs}


def look(ledger: Ledger, name: str, jobs: Mapping[int, Job[Any, Any]]) -> dict[int, Answer]:
    """What stands on a slip of these jobs; nothing if there is none."""
    text = ledger.answered(place_of(name))
    return {} if text is None else read(text, jobs)


def _short(job: Job[Any, Any]) -> list[Any] | None:
    """What came of a job; of people who have names, who got no place, by the place
    among those whom the caller named.
    """
    found: Answer = job.found()
    if found is None:
        return None
    if isinstance(found, Told):
        return [found.new, found.before, found.late]
    left = [place for place, who in enumerate(job.item.people or ()) if who in found.left]
    people = [(one.id, one.arm) for one in found.assignments]
    return [people, left, found.waiting, found.stopped, found.middle, found.paused]


def _answer(said: list[Any] | None, job: Job[Any, Any]) -> Answer:
    if said is None:
        return None
    if job.kind == TELL:
        new, before, late = said
        return Told(new, tuple(before), tuple(late))
    people, left, waiting, stopped, middle, paused = said
    named = enumerate(job.item.people or [None] * len(people))
    here = [who for place, who in named if place not in left]
    assigned = (Assignment(id, arm, who) for (id, arm), who in zip(people, here, strict=True))
    rest = tuple(job.item.people[place] for place in left)
    return Batch(tuple(assigned), waiting, stopped, middle, paused, rest)


class Slip:
    """The slip of one who does jobs for others again and again, such as a clerk: each
    time over what stood there before.
    """

    def __init__(self, name: str, jobs: Mapping[int, Job[Any, Any]]) -> None:
        self._name = name
        self._jobs = jobs

    def keep(self, ledger: Ledger, tried: Sequence[Job[Any, Any]]) -> None:
        """Write down what is on disk, and what is with this transaction."""
        now = {id(job) for job in tried}
        done = {
            number: job
            for number, job in self._jobs.items()
            if job.error is None and (job.done or id(job) in now)
        }
        if done:
            ledger.replace_answer(place_of(self._name), written(done))
