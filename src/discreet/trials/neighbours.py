"""What callers in other processes want who wait for their turn: jobs as letters, and
letters as jobs. Whoever has the turn does them with the own ones.

If whoever has taken a letter dies before it has replied, the caller does the jobs again
under their keys: they are done once. A letter also has the head of the record that its
writer has seen: whoever has an older copy of the file open does nothing for somebody
who would refuse it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import DiscreetError
from discreet.trials.chain import Head
from discreet.trials.jobs import ASK, MOST_PEOPLE, TELL, claim, jobs_of, lent
from discreet.trials.status import Assignment, Batch, Told
from discreet.trials.store.letters import DONE, WAITING, Taken
from discreet.trials.store.turns import Note, Turn
from discreet.trials.together import LEADS_WITHOUT, Job

EDITION = 2
"""Of what letters say; others are not read."""


def note_of(trial: str, jobs: Sequence[Job[Any, Any]], seen: Head) -> Note:
    """What to write while these jobs wait; nothing if they are not for others to do."""
    small = sum(job.people for job in jobs) <= MOST_PEOPLE
    kinds = {job.kind for job in jobs}
    kind = kinds.pop() if len(kinds) == 1 and kinds <= {ASK, TELL} else ""
    about = hashlib.sha256(f"{EDITION} {trial}".encode()).hexdigest()[:16]
    return Note(about, kind, (lambda: _written(jobs, seen)) if small and kind else None)


def done_by_others(turn: Turn | None, jobs: Sequence[Job[Any, Any]]) -> Head | None:
    """The head of the record in which jobs were done by somebody else while they
    waited; None if they are still to be done. If that is not known, as somebody took
    them and died, they are requests from now on.
    """
    if turn is None or turn.own == WAITING:
        return None
    if turn.own == DONE:
        said = json.loads(turn.answer)
        for job, found in zip(jobs, said["found"], strict=True):
            job.finish(_read_answer(found))
            job.done = True
        return Head(*said["head"])
    for job in jobs:
        claim(job)
    return None


def _read_answer(said: dict[str, Any] | None) -> Batch | Told | None:
    """What came of a job: of a tell, of an ask, or of one that finds no open round."""
    if said is None:
        return None
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    if "assignments" not in said:
        return Told(**{**said, **lists})
    people = tuple(Assignment(**one) for one in said["assignments"])
    return Batch(**{**said, **lists, "assignments": people})


class Company:
    """How many others wrote in one transaction with us a moment ago.

    They often come again at once, as callers in one process do (see `Together`), a
    little after us or before. So whoever has the turn waits for as many, for as long as
    the last transaction took at the most: what is wanted by all of them at the same
    time costs little more than what one wants, on a server.
    """

    def __init__(self, on_server: bool) -> None:
        self.on_server = on_server
        """In a file of SQLite a transaction takes so little that two processes are
        quicker if one prepares while the other writes; and those would be held up who
        write its other trials.
        """
        self._others = 0
        self._patience = 0.0
        """Seconds that our last transaction took."""
        self._without = 0
        """How many turns are not to wait, since one has waited in vain."""

    def join(self) -> None:
        """Somebody has done with its own what we want."""
        self._others = max(self._others, 1)

    def gather(self, turn: Turn | None) -> None:
        """Wait for the others, if they came a moment ago."""
        if self._without:
            self._without -= 1
        elif turn is not None and self.on_server and self._others:
            here = turn.wait_for_letters(0, 0.0)
            came = turn.wait_for_letters(self._others, self._patience) - here
            if 2 * came < self._others - here:
                self._without = LEADS_WITHOUT

    def part(self, turn: Turn | None, seconds: float) -> None:
        """A transaction is on disk that took so long."""
        self._others = 0 if turn is None else turn.taken
        self._patience = seconds


class Neighbours:
    """Who waits for the turn that we have, to write `here` as we do."""

    def __init__(
        self, turn: Turn | None, here: Callable[[], bool], holds: Callable[[Head], bool]
    ) -> None:
        self._turn, self._here, self._holds = turn, here, holds
        self._letters = list[tuple[Taken, list[Job[Any, Any]]]]()

    def want(self) -> list[Job[Any, Any]]:
        """What those want who have come since the last time."""
        taken = [] if self._turn is None else self._turn.take_letters(self._here)
        came = [
            (letter, jobs)
            for letter in taken
            for head, jobs in _read_letter(letter.text)
            if self._holds(head)
        ]
        self._letters += came
        return [job for _, jobs in came for job in jobs]

    def tell_them(self, tried: Sequence[Job[Any, Any]], head: Head) -> None:
        """Whose jobs are all done hears so when they are on disk; the others do theirs
        themselves, and hear what is wrong.
        """
        done = {id(job) for job in tried if job.error is None}
        for letter, jobs in self._letters:
            if self._turn and all(id(job) in done for job in jobs):
                answer = {"head": head, "found": [job.found() for job in jobs]}
                self._turn.reply(letter, json.dumps(answer, default=vars).encode())


def _written(jobs: Sequence[Job[Any, Any]], seen: Head) -> bytes:
    return json.dumps({"head": seen, "jobs": [lent(job) for job in jobs]}).encode()


def _read_letter(text: bytes) -> list[tuple[Head, list[Job[Any, Any]]]]:
    """What its writer has seen, and wants; nothing, if it cannot be read: then its
    writer hears what is wrong, and nobody else.
    """
    try:
        said = json.loads(text)
        return [(Head(*said["head"]), jobs_of(said["jobs"]))]
    except (ValueError, TypeError, LookupError, DiscreetError):
        return []
