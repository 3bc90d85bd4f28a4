"""A clerk's slip: what came of the last jobs that it did for callers who gave no key.

It is written in the transaction that does them, over what stood there before. If the
clerk dies before it has said what came of them, the service reads the slip: what stands
there is done. So these callers cost no key each, which is a place of its own in the
store for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from discreet.trials.kept import Kept
from discreet.trials.store.ledger import Ledger
from discreet.trials.together import Job


class Slip:
    """What one clerk, of this name, keeps of jobs that it does at once."""

    def __init__(self, clerk: str, jobs: Mapping[int, Job[Any, Any]]) -> None:
        self._clerk = clerk
        self._jobs = jobs
        """By the service's numbers."""
        self._answers: dict[int, bytes] = {}

    def keep(self, ledger: Ledger, tried: Sequence[Job[Any, Any]]) -> None:
        """Write down what is done on disk, and with this transaction."""
        now = {id(job) for job in tried}
        self._answers = {
            number: msgspec.json.encode(job.found())
            for number, job in self._jobs.items()
            if job.error is None and (job.done or id(job) in now)
        }
        unkeyed = [number for number in self._answers if self._jobs[number].key]
        if unkeyed:
            said = (b'"%d":%b' % (number, self._answers[number]) for number in unkeyed)
            text = (b"{%b}" % b",".join(said)).decode()
            ledger.replace_answer(ledger.hash(_place(self._clerk)), text)

    def answer(self, number: int) -> bytes:
        """What came of a job that is done."""
        found = self._answers.get(number)
        return msgspec.json.encode(self._jobs[number].found()) if found is None else found


def read_slip(trial: Kept, clerk: str) -> dict[int, msgspec.Raw]:
    """The answers of what a clerk did last, by the service's numbers."""
    text = trial.kept_under(_place(clerk))
    return {} if text is None else msgspec.json.decode(text, type=dict[int, msgspec.Raw])


def key_of(clerk: str, number: int) -> str:
    """The key of a job that a clerk hands on to others."""
    return f"{clerk}/{number}"


def _place(clerk: str) -> bytes:
    """Apart from what keys of callers are kept under: those begin with one zero, or
    none.
    """
    return f"\0\0{clerk}".encode()
