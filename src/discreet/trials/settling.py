"""Releases of a live trial, and its end: the noise is drawn, the record written, the
outcomes erased, all in the transaction that made the round complete.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.errors import DiscreetError
from discreet.strategies.run import Place, Run
from discreet.trials.record import release
from discreet.trials.releases import noise_of, released, spent, totals_of
from discreet.trials.replay import EVERY_ROUND, dealt_in, revealed_through
from discreet.trials.store.schema import Assigned

if TYPE_CHECKING:
    from discreet.trials.desk import Desk


def settle(desk: "Desk", news: Sequence[Assigned], by_clock: bool = False) -> None:
    """Release what is complete now that these outcomes are in, and decide; what is
    released by the clock, only where the moment tells nothing.
    """
    if desk.now.stopped:
        return
    run = desk.now.run
    if run.learns_always:
        _take_answers(desk, run, news)
    while not run.stopped and (due := run.due()) and _ready(desk, due, by_clock):
        _release(desk, due)
        sweep(desk)
    end_if_over(desk)


def _ready(desk: "Desk", due: list[Place], by_clock: bool) -> bool:
    """Whether all outcomes of a round are in and, by the clock, its time has come."""
    if desk.tally().waiting:
        return False
    if not desk.protocol.timed:
        return True
    round, deadline = dealt_in(desk.protocol, due[0].phase), float(desk.protocol.deadline or 0)
    return by_clock and desk.now.conduct.over(round, deadline, int(desk.time))


def _release(desk: "Desk", due: list[Place]) -> None:
    """Draw the noise, publish the sums, erase the outcomes."""
    run, protocol, session = desk.now.run, desk.protocol, desk.session
    sealed = [totals_of(batch, run, protocol.grid, session) for batch in due]
    if [count for _, count in sealed] != [batch.size for batch in due]:
        raise DiscreetError(
            "the outcomes of a batch do not match its assignments: run `discreet trial verify`"
        )
    totals, grid = run.combine([total for total, _ in sealed]), run.due_grid(protocol.grid)
    pairs, cost = run.fine, spent(protocol, run)
    desk.drew = True
    made = release(due, totals, grid, noise_of(protocol, grid), run.release)
    desk.now.releases += sum(one.sum is not None for one in made)
    says = released(made, cost, 1 / grid, pairs, protocol.strategy.level[0])
    if protocol.keyed:
        says["keys"] = session.reveal(revealed_through(protocol, due))
    if protocol.timed:
        says["at"] = int(desk.time)
        desk.now.conduct.released(dealt_in(protocol, due[0].phase), int(desk.time))
    for batch in due:
        session.close_batch(batch.arm, batch.phase)
        _erase(desk, batch.arm, batch.phase)
    session.append("released", says)


def _erase(desk: "Desk", arm: int, phase: int) -> None:
    """Overwrite the outcomes of a batch, unless they are kept for ever."""
    if desk.protocol.retain != "forever":
        desk.session.erase(arm, phase)
        desk.erased = desk.protocol.erases


def sweep(desk: "Desk") -> None:
    """Erase outcomes that nobody will ever release: of arms that were taken off a round
    or dropped.
    """
    for arm, phase in desk.session.batches():
        if not desk.now.run.under_way(arm, phase):
            _erase(desk, arm, phase)


def _take_answers(desk: "Desk", run: Run, news: Sequence[Assigned]) -> None:
    """Take in answers in the order of assignment: the order of arrival may depend on
    the outcomes.
    """
    grid, session, before = desk.protocol.grid, desk.session, desk.now.cursor
    waiting, rows = session.answers(before), {row.number: row for row in news}
    told_before = [number for number, _ in waiting if number not in rows]
    rows |= session.assigned(told_before) if told_before else {}
    taken = []
    for number, units in waiting:
        if run.stopped:
            break
        desk.now.cursor = number
        run.answer(rows[number].arm, units / grid)
        taken.append([number, units])
    if desk.protocol.retain != "forever":
        session.erase_answers(before, desk.now.cursor)
    if taken:
        desk.now.releases += len(taken)
        session.append("answered", {"answers": taken, "unit": 1 / grid})


def end_if_over(desk: "Desk") -> None:
    """Write the end if the rule has stopped, somebody has stopped it, or nobody else
    may be assigned and no release is to come.
    """
    now, run = desk.now, desk.now.run
    if now.stopped:
        return
    full = desk.session.row.people >= now.conduct.maximum
    if run.learns_always:
        exhausted = full and not any(batch.open for batch in desk.session.batches().values())
    else:
        exhausted = not run.due() and (full or run.finished)
    if not (run.stopped or now.conduct.ended or exhausted):
        return
    says = now.end()
    if desk.protocol.keyed:
        says["keys"] = desk.session.reveal(EVERY_ROUND)
    desk.session.append("stopped", says)
    if desk.protocol.retain != "forever":  # nobody will ever release what is left
        desk.session.erase_all()
        desk.erased = desk.protocol.erases
