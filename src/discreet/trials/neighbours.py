"""What callers in other processes want who wait for their turn: jobs as letters, and
letters as jobs. Whoever has the turn does them with the own ones.

If whoever has taken a letter dies before it has replied, the caller looks at the slip
of the letter, and does the jobs that are not there, under their keys if they have any:
they are done once. Who takes a letter has the trial's lock, and has done with it before
the caller has the lock. A letter also has the head of the record that its
writer has seen: whoever has an older copy of the file open does nothing for somebody
who would refuse it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from discreet.errors import DiscreetError
from discreet.trials import slips
from discreet.trials.chain import Head
from discreet.trials.jobs import ASK, MOST_PEOPLE, TELL, claim, jobs_of, lent, own_key
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.letters import DONE, WAITING, Taken
from discreet.trials.store.turns import Note, Turn
from discreet.trials.together import LEADS_WITHOUT, Job

EDITION = 4
"""Of what letters say; others are not read."""


def note_of(trial: str, jobs: Sequence[Job[Any, Any]], seen: Head, name: str) -> Note:
    """What to write while these jobs wait, in a letter of this name; nothing if they
    are not for others to do.
    """
    small = sum(job.people for job in jobs) <= MOST_PEOPLE
    kinds = {job.kind for job in jobs}
    kind = kinds.pop() if len(kinds) == 1 and kinds <= {ASK, TELL} else ""
    about = hashlib.sha256(f"{EDITION} {trial}".encode()).hexdigest()[:16]
    return Note(about, kind, (lambda: _written(jobs, seen, name)) if small and kind else None)


def done_by_others(turn: Turn | None, jobs: Sequence[Job[Any, Any]]) -> Head | None:
    """The head of the record in which jobs were done by somebody else while they
    waited; None if they are still to be done, or it is not known.
    """
    if turn is None or turn.own != DONE:
        return None
    said = json.loads(turn.answer)
    _finish(jobs, slips.read(said["found"], dict(enumerate(jobs))))
    return Head(*said["head"])


def is_unsure(turn: Turn | None) -> bool:
    """Whether somebody took our letter, and did not say what came of it."""
    return turn is not None and turn.own not in (WAITING, DONE)


def left_by_others(
    turn: Turn | None, ledger: Ledger, name: str, jobs: Sequence[Job[Any, Any]]
) -> Sequence[Job[Any, Any]]:
    """The jobs that are still to be done, of a letter of this name, now that we have
    the trial's lock: if somebody took it and has gone, those that are not on its slip.
    """
    if not is_unsure(turn):
        return jobs
    _finish(jobs, slips.look(ledger, name, dict(enumerate(jobs))))
    left = [job for job in jobs if not job.done]
    for job in left:
        claim(job)
    return left


def _finish(jobs: Sequence[Job[Any, Any]], answers: Mapping[int, slips.Answer]) -> None:
    """This came of jobs, by their places."""
    for place, found in answers.items():
        jobs[place].finish(found)
        jobs[place].done = True


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
        """Seconds that our last transaction took, without waiting."""
        self._without = 0
        """How many turns are not to wait, since one has waited in vain."""
        self._in_vain = 0
        """How many in a row have waited so: the others may have been late once, or may
        be gone.
        """

    def join(self) -> None:
        """Somebody has done with its own what we want."""
        self._others = max(self._others, 1)

    def expects(self, turn: Turn | None) -> bool:
        """Whether to wait for the others, who came a moment ago."""
        if self._without:
            self._without -= 1
            return False
        return turn is not None and self.on_server and self._others > 0

    def gather(self, turn: Turn) -> float:
        """Wait for the others; for how many seconds."""
        began, here = time.monotonic(), turn.wait_for_letters(0, 0.0)
        came = turn.wait_for_letters(self._others, self._patience) - here
        self._in_vain = self._in_vain + 1 if 2 * came < self._others - here else 0
        self._without = min(2**self._in_vain - 1, LEADS_WITHOUT)
        return time.monotonic() - began

    def part(self, turn: Turn | None, seconds: float) -> None:
        """A transaction is on disk that took so long."""
        self._others = 0 if turn is None else turn.taken
        self._patience = seconds


class Letter(NamedTuple):
    """What somebody wants who waits for the turn that we have."""

    taken: Taken
    name: str
    jobs: list[Job[Any, Any]]


class Neighbours:
    """Who waits for the turn that we have, to write `here` as we do."""

    def __init__(
        self, turn: Turn | None, here: Callable[[], bool], holds: Callable[[Head], bool]
    ) -> None:
        self._turn, self._here, self._holds = turn, here, holds
        self._letters = list[Letter]()

    def want(self) -> list[Job[Any, Any]]:
        """What those want who have come since the last time."""
        taken = [] if self._turn is None else self._turn.take_letters(self._here)
        came = [letter for one in taken for head, letter in _read_letter(one) if self._holds(head)]
        self._letters += came
        return [job for letter in came for job in letter.jobs]

    def tell_them(self, ledger: Ledger, tried: Sequence[Job[Any, Any]], head: Head) -> None:
        """Whose jobs are all done hears so when they are on disk; the others do theirs
        themselves, and hear what is wrong. What is done stands on slips, unless it has
        keys.
        """
        done = {id(job) for job in tried if job.error is None}
        for letter in self._letters:
            ours = {place: job for place, job in enumerate(letter.jobs) if id(job) in done}
            said = slips.written(ours)
            if any(own_key(job) is None for job in ours.values()):
                ledger.keep_answer(slips.place_of(letter.name), said)
            if self._turn is not None and len(ours) == len(letter.jobs):
                answer = {"head": head, "found": said}
                self._turn.reply(letter.taken, json.dumps(answer).encode())
        ledger.write()


def _written(jobs: Sequence[Job[Any, Any]], seen: Head, name: str) -> bytes:
    said = {"head": seen, "name": name, "jobs": [lent(job) for job in jobs]}
    return json.dumps(said).encode()


def _read_letter(taken: Taken) -> list[tuple[Head, Letter]]:
    """What its writer has seen, and wants; nothing, if it cannot be read: then its
    writer hears what is wrong, and nobody else.
    """
    try:
        said = json.loads(taken.text)
        return [(Head(*said["head"]), Letter(taken, str(said["name"]), jobs_of(said["jobs"])))]
    except (ValueError, TypeError, LookupError, DiscreetError):
        return []
