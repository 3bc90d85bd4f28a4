"""Slips: what came of jobs that another process did for callers who gave no key.

Whoever does such jobs writes all of their answers on one slip, in the transaction that
does them. If it dies before it has said what came of them, whoever wanted them looks at
the slip: what stands there is done. A key for each of them would be a place of its own
in the store, for ever.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.trials.status import Assignment, Batch, Told
from discreet.trials.store.ledger import Ledger
from discreet.trials.together import Job

Answer = Batch | Told | None
"""Of an ask (None: it found no open round), or of a tell."""


def place_of(name: str) -> bytes:
    """Under which a slip is kept: apart from the keys of callers, before which there is
    one zero, or none.
    """
    return f"\0\0{name}".encode()


def written(jobs: Mapping[int, Job[Any, Any]]) -> str:
    """What came of jobs, by their numbers; who the people are does not stand there."""
    return json.dumps({number: _unnamed(job) for number, job in jobs.items()}, default=vars)


def read(text: str | bytes, jobs: Mapping[int, Job[Any, Any]]) -> dict[int, Answer]:
    """The same, read again by whoever wanted the jobs, and knows who the people are."""
    said = {int(number): one for number, one in json.loads(text).items()}
    return {number: _answer(one, jobs[number]) for number, one in said.items() if number in jobs}


def look(ledger: Ledger, name: str, jobs: Mapping[int, Job[Any, Any]]) -> dict[int, Answer]:
    """What stands on a slip of these jobs; nothing if there is none."""
    text = ledger.answered(ledger.hash(place_of(name)))
    return {} if text is None else read(text, jobs)


def _unnamed(job: Job[Any, Any]) -> Any:
    """What came of a job: of people who have names, their places among those whom the
    caller named.
    """
    found: Answer = job.found()
    if not isinstance(found, Batch) or job.item.people is None:
        return found
    places = [place for place, who in enumerate(job.item.people) if who in found.left]
    people = [replace(one, person=None) for one in found.assignments]
    return {**vars(found), "assignments": people, "left": places}


def _answer(said: dict[str, Any] | None, job: Job[Any, Any]) -> Answer:
    if said is None:
        return None
    if "assignments" not in said:
        return Told(said["new"], tuple(said["before"]), tuple(said["late"]))
    left, named = set(said["left"]), enumerate(job.item.people or ())
    here = [who for place, who in named if place not in left]
    people = [Assignment(**one) for one in said["assignments"]]
    if here:
        people = [replace(one, person=who) for one, who in zip(people, here, strict=True)]
    rest = tuple(job.item.people[place] for place in said["left"])
    return Batch(**{**said, "assignments": tuple(people), "left": rest})


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
            ledger.replace_answer(ledger.hash(place_of(self._name)), written(done))
