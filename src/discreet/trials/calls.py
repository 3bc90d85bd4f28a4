"""What callers of a live trial may do: ask, tell, correct, say that an
outcome is missing, operate; for themselves, or as one of the sites.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from discreet.errors import InvalidInputError
from discreet.trials.again import Request, do_once
from discreet.trials.conduct import SET_CLOCK
from discreet.trials.desk import Desk, Outcomes, Task
from discreet.trials.enrol import ask, open_assignments, shown_arm
from discreet.trials.intake import (
    act_of,
    check_amends,
    check_answers,
    check_many,
    check_request,
    check_tells,
    one_id,
    outcome_units,
    read_each,
    response_units,
    wanted_of,
)
from discreet.trials.names import check_place, plain_name
from discreet.trials.outcomes import Response
from discreet.trials.people import Asked, asked_of, person_of
from discreet.trials.protocol import MOST_PEOPLE, Protocol
from discreet.trials.status import Assignment, Batch, OpenAssignment, Told
from discreet.trials.stored import StoredTrial
from discreet.validate import check_whole

Found = TypeVar("Found")


class Calls(ABC):
    """Calls of somebody, who may be bound to a site.

    Every call that changes something takes a `request`, a text of the caller's own. If
    the answer was lost, repeat the call with the same request: it is done only once,
    and always gets the same answer.
    """

    protocol: Protocol
    who: str
    """Who calls, for the journal."""
    site: str | None = None
    """Where the caller is bound to: of people from elsewhere it sees nothing, and can
    tell nothing; None: not bound.
    """

    @abstractmethod
    def _do(self, task: Task[Found]) -> Found:
        """Run a task in a transaction, maybe with tasks of other threads."""

    @abstractmethod
    def _finish_erasing(self) -> None:
        """Make unreadable what any process has erased, if nobody still reads it."""

    # --- ask and tell -----------------------------------------------------------------

    def ask(
        self,
        n: int = 1,
        people: Sequence[str] | None = None,
        site: str | None = None,
        person: str | None = None,
        request: str | None = None,
    ) -> Batch:
        """Up to n assignments of one round: fewer if the round is full before that, and
        none while the trial waits for outcomes or is paused.

        Ask when a person is there: everybody who is assigned is in. `person` is an
        identifier of the person, or `people` those of the next n people; only keyed
        hashes of them are kept. The protocol says what happens if one of them came
        before. `site` is where they come from, which is part of the record.

        In the answer, `assignments` are those who are in, and `left` those of the named
        people who are not: ask for them again later. `request` is a key of your own for
        this call. If the answer is lost, repeat the call exactly, with the people and
        the same `request`: nobody is assigned twice, and the answer is the same. (By
        the key alone the assignments are found, but not whose they are.)

        Before that, late outcomes are counted as the worst, and a round is opened if
        none is open.
        """
        bound = self.site is not None
        wanted = wanted_of(n, people, self._place(site), person, request, bound)
        task = Task(
            lambda desk: ask(desk, wanted),
            self.who,
            self.site,
            request=None if wanted.request is None else wanted.request.encode(),
            participants=wanted.how_many,
            enrols=True,
        )
        return self._do(task)

    def tell(self, id: str, outcome: float, request: str | None = None) -> Told:
        """Tell one outcome. Telling it again changes nothing and looks the same,
        whatever the outcome: the id is then in `before`. `amend` corrects an outcome
        until it is released. `request`, a key of your own, has the same call answered
        as it was the first time.
        """
        check_tells(self.protocol)
        outcome_units(outcome, self.protocol)  # None, as in tell_many, is a mistake here
        return self.tell_many({one_id(id): outcome}, request)

    def tell_many(self, outcomes: Mapping[str, float | None], request: str | None = None) -> Told:
        """Tell many outcomes at once; None says that one will not come. Either all of
        them are accepted or, with an error, none; it says which entry is wrong, by its
        place. Returns how many were new, and which ids were told before or came too
        late. `request` as for `tell`.
        """
        check_tells(self.protocol)
        check_many(outcomes)
        units = read_each(outcomes, lambda one: outcome_units(one, self.protocol))
        return self._take_in(Outcomes(units, None), request)

    def answer(self, id: str, response: Response, request: str | None = None) -> Told:
        """Tell one randomised response, in a trial with local trust."""
        check_answers(self.protocol)
        response_units(response, self.protocol)
        return self.answer_many({one_id(id): response}, request)

    def answer_many(
        self, responses: Mapping[str, Response | None], request: str | None = None
    ) -> Told:
        """Tell many randomised responses at once, as `tell_many` does."""
        check_answers(self.protocol)
        check_many(responses)
        units = read_each(responses, lambda one: response_units(one, self.protocol))
        middles = {id: one.middle for id, one in responses.items() if one is not None}
        return self._take_in(Outcomes(units, middles), request)

    def amend(self, id: str, outcome: float, request: str | None = None) -> None:
        """Correct an outcome that was told (or counts as a failure), until it is
        released.

        What can be seen does not depend on whether it was told or is missing.
        """
        check_amends(self.protocol)
        wanted, units = one_id(id), outcome_units(outcome, self.protocol)
        self._write(
            lambda desk: desk.amend(wanted, units), self._request(request, "amend", id), [wanted]
        )

    def miss(self, id: str, request: str | None = None) -> Told:
        """Say that an outcome will not come. If it was told before, or its deadline has
        passed, nothing changes, and the answer says so, as with `tell`. Everything that
        is kept of the call is what is kept of `tell`: that an outcome is missing may be
        the outcome.
        """
        return self._take_in(Outcomes({one_id(id): None}, None), request)

    def reissue(self, id: str, request: str | None = None) -> Assignment:
        """The same assignment under a new id, if others have seen the old one, which
        then no longer works.
        """
        wanted = one_id(id)
        once = self._request(request, "reissue", wanted)

        def reissue(desk: Desk) -> Assignment:
            row = desk.reissue(wanted)
            return Assignment(row.id, shown_arm(desk, row))

        return self._write(reissue, once, [wanted])

    def expire(self) -> int:
        """Count outcomes past their deadline as the worst, and make the releases that
        are due (as `ask` does). Returns how many numbers were released.
        """
        return self._expire(noted=True)

    def _expire(self, noted: bool) -> int:
        """Do so; what `ask` and a timer do by the way is not noted."""
        if self.protocol.deadline is None:
            self._finish_erasing()
            return 0
        return self._write(lambda desk: desk.expire(noted))

    def operate(
        self,
        action: str,
        reason: str,
        about: str | int | None = None,
        seen: int | None = None,
        request: str | None = None,
    ) -> None:
        """Act as an operator: `pause`, `resume`, `stop`, `raise-maximum` and
        `lower-maximum` (about how many people), `close-site` and `open-site` (about
        which site), `drop-arm` and `add-arm` (about which arm), `set-clock`.

        Every action goes into the public record, with the reason. The docs page "What
        the guarantee means" says what each means for the guarantee. `seen` is the
        number of `acts` in the status on which the decision was based; the action is
        refused if another operator has acted since.
        """
        if self.site is not None:
            raise InvalidInputError(f"you call for {self.site}: ask an operator of the trial")
        act = act_of(action, reason, about)
        acts = None if seen is None else check_whole("seen", seen, least=0)
        once = self._request(request, "operate", act.action, act.about, act.reason)
        self._write(lambda desk: desk.operate(act, acts), once, any_clock=act.action == SET_CLOCK)

    def _take_in(self, outcomes: Outcomes, request: str | None) -> Told:
        if not outcomes.units:
            return Told(0)
        check_many(outcomes.units)
        ids = tuple(outcomes.units)
        once = self._request(request, "tell", *ids)
        return self._write(lambda desk: desk.take_in(outcomes), once, ids)

    def open_assignments(self, site: str | None = None) -> list[OpenAssignment]:
        """The assignments whose outcome is not in, in the order of assignment; of one
        site, or of all.

        For staff only: anyone who has an id can tell its outcome, and nobody else may
        know whether an outcome is in. The journal notes who looked.
        """
        place = self._place(site)
        return self._write(lambda desk: open_assignments(desk, place))

    def person(self, number: int) -> OpenAssignment:
        """The assignment of a person by number, whether the outcome is in or not, for
        staff who look somebody up again. The journal notes who looked.
        """
        wanted = check_whole("number", number, least=1, most=MOST_PEOPLE)
        return self._write(lambda desk: person_of(desk, wanted, self.site))

    def question(self, id: str) -> Asked:
        """What a person may know about their own answer; nothing is changed."""
        wanted = one_id(id)
        return self._write(lambda desk: asked_of(desk, wanted), None, [wanted])

    def unblind(self, id: str, reason: str, request: str | None = None) -> str:
        """The arm of a person in a blinded trial, for somebody who must know it now.
        The public record says that it was asked for, with the reason.
        """
        wanted, why = one_id(id), plain_name("the reason", reason)
        once = self._request(request, "unblind", wanted, why)
        return self._write(lambda desk: desk.unblind(wanted, why), once, [wanted])

    def codes(self) -> dict[str, str]:
        """Return the arm behind the code of each participant of a blinded trial, in the
        order of assignment, for operators and for those who hand out what participants
        are given. The journal notes who looked.
        """
        if self.site is not None:
            raise InvalidInputError(f"you call for {self.site}: ask an operator of the trial")
        return self._write(Desk.codes)

    # --- how --------------------------------------------------------------------------

    def _write(
        self,
        work: Callable[[Desk], Found],
        request: Request | None = None,
        ids: Sequence[str] = (),
        any_clock: bool = False,
    ) -> Found:
        """Do something in a transaction, with the state as it is now: all of it
        happens, and is on disk, or nothing of it.
        """
        task = Task(
            lambda desk: do_once(desk, request, ids, work),
            self.who,
            self.site,
            request=None if request is None else request.text,
            ids=tuple(ids),
            participants=max(len(ids), 1),
            any_clock=any_clock,
        )
        return self._do(task)

    def _request(self, key: Any, kind: str, *about: str | int | None) -> Request | None:
        known = check_request(key)
        return None if known is None else Request(known, kind, about)

    def _place(self, site: Any) -> str | None:
        """Where people come from; whoever is bound to a site speaks of no other."""
        if site is None:
            return self.site
        place = check_place(site)
        if self.site in (None, place):
            return place
        raise InvalidInputError(
            f"you call for {self.site}: leave the site out. Nothing was changed"
        )


@dataclass(eq=False)
class Caller(Calls):
    """A caller of a trial that others use at the same time."""

    trial: StoredTrial
    who: str
    site: str | None

    @property
    def protocol(self) -> Protocol:  # type: ignore[override]
        """What the trial was started with."""
        return self.trial.protocol

    def _do(self, task: Task[Found]) -> Found:
        return self.trial._do(task)

    def _finish_erasing(self) -> None:
        """Make unreadable what any process has erased, if nobody still reads it."""
        self.trial._finish_erasing()
