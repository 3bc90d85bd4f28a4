"""Slips: what came of jobs that another process did for callers who gave no key.

Whoever does such jobs writes all of their answers on one slip, in the transaction that
does them. If it dies before it has said what came of them, whoever wanted them looks at
the slip: what stands there is done. A key for each of them would be a place of its own
in the store, for ever.
"""

import json
from collections.abc import Mapping, Sequence
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
    """What came of jobs, by their numbers."""
    return json.dumps({number: job.found() for number, job in jobs.items()}, default=vars)


def read(text: str | bytes) -> dict[int, Answer]:
    """The same, read again."""
    return {int(number): _answer(said) for number, said in json.loads(text).items()}


def look(ledger: Ledger, name: str) -> dict[int, Answer]:
    """What stands on a slip; nothing if there is none."""
    text = ledger.answered(ledger.hash(place_of(name)))
    return {} if text is None else read(text)


def _answer(said: dict[str, Any] | None) -> Answer:
    if said is None:
        return None
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    if "assignments" not in said:
        return Told(**{**said, **lists})
    people = tuple(Assignment(**one) for one in said["assignments"])
    return Batch(**{**said, **lists, "assignments": people})


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
