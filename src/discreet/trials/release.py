"""Releases of a live trial, and its end.

The noise is drawn, the record written and the outcomes erased, all in the transaction
that completed the round. This is the one module that reads outcomes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import DiscreetError
from discreet.strategies.run import ArmBatch, Run, Totals
from discreet.strategies.units import compute_sum_noise
from discreet.trials import mechanisms
from discreet.trials.protocol import Protocol
from discreet.trials.record import (
    ALL_ROUNDS,
    Release,
    assignment_round,
    last_revealed_round,
    make_release,
)
from discreet.trials.responses import to_units
from discreet.trials.store.schema import AssignmentRow
from discreet.trials.transaction import TrialTransaction


def release_due(
    tx: TrialTransaction, recorded: Sequence[AssignmentRow], is_scheduled: bool = False
) -> None:
    """Release the rounds that are complete now that these outcomes are recorded, and
    let the strategy decide; with scheduled release only when the schedule says so, as
    another moment could tell something.
    """
    if tx.state.stopped:
        return
    run = tx.state.run
    if run.releases_each_answer:
        _release_answers(tx, run, recorded)
    while not run.stopped and (due := run.list_due()) and _is_ready(tx, due, is_scheduled):
        _release(tx, due)
        erase_unreleasable(tx)
    end_if_over(tx)


def _is_ready(tx: TrialTransaction, due: list[ArmBatch], is_scheduled: bool) -> bool:
    """Return whether all outcomes of a round are in and its scheduled time has come."""
    if tx.count_pending().waiting:
        return False
    if not tx.protocol.has_times:
        return True
    round, deadline = assignment_round(tx.protocol, due[0].phase), float(tx.protocol.deadline or 0)
    return is_scheduled and tx.state.management.is_past_deadline(round, deadline, int(tx.time))


def _release(tx: TrialTransaction, due: list[ArmBatch]) -> None:
    """Draw the noise, publish the sums, erase the outcomes. All checks come before the
    draw.
    """
    run, protocol, tables = tx.state.run, tx.protocol, tx.tables
    grid = run.scale_grid(protocol.grid)
    sums = [_sum_batch(tx, batch, grid) for batch in due]
    if [count for _, count in sums] != [batch.size for batch in due]:
        raise DiscreetError(
            "the outcomes of a batch do not match its assignments: run `discreet trial verify`"
        )
    totals, cost, has_near = (
        run.combine([total for total, _ in sums]),
        compute_cost(protocol, run),
        run.releases_closeness,
    )
    tx.drew = True
    releases = make_release(due, totals, grid, choose_noise(protocol, grid), run.release)
    tx.state.releases += sum(one.sum is not None for one in releases)
    level = protocol.strategy.level[0]
    body = make_release_body(releases, cost, 1 / grid, has_near, level)
    if protocol.has_round_keys:
        body["keys"] = tables.reveal_keys(last_revealed_round(protocol, due))
    if protocol.has_times:
        body["at"] = int(tx.time)
        tx.state.management.note_release(assignment_round(protocol, due[0].phase), int(tx.time))
    for batch in due:
        tables.delete_counts(batch.arm, batch.phase)
        _erase(tx, batch.arm, batch.phase)
    tables.append_event("released", body)


def _sum_batch(tx: TrialTransaction, batch: ArmBatch, grid: int) -> tuple[Totals, int]:
    """Return what is summed of a batch, and the number of its outcomes."""
    run, protocol = tx.state.run, tx.protocol
    if run.releases_only_sums:
        total, count = tx.tables.sum_outcomes(batch.arm, batch.phase)
        return Totals(total), count
    units = tx.tables.read_outcomes(batch.arm, batch.phase)
    if grid != protocol.grid:
        units = [to_units(value / protocol.grid, 1) for value in units]
    return run.add_up(units), len(units)


def choose_noise(protocol: Protocol, grid: int) -> Callable[[Totals], Totals]:
    """Return the function that adds the noise of the protocol to a total in units."""
    epsilon, sigma = float(protocol.strategy.epsilon or 0), compute_sum_noise(protocol.strategy)
    if not protocol.strategy.trust_model.noised:
        return lambda total: total
    if sigma > 0:
        return lambda total: mechanisms.add_gaussian_noise(total, sigma, grid)
    return lambda total: mechanisms.add_laplace_noise(total, epsilon, grid)


def compute_cost(protocol: Protocol, run: Run) -> float | None:
    """Return the ε, or ρ, that the next release states: that of its noise, or of the
    answers it is made of.
    """
    strategy = protocol.strategy
    epsilon, sigma = float(strategy.epsilon or 0), compute_sum_noise(strategy)
    if sigma > 0:
        return mechanisms.compute_gaussian_cost(
            sigma, run.scale_grid(protocol.grid), strategy.gamma
        )
    if strategy.trust_model.noised:
        return mechanisms.compute_sum_epsilon(
            epsilon, run.scale_grid(protocol.grid), run.releases_closeness
        )
    if strategy.trust_model.randomised:
        return mechanisms.compute_response_epsilon(epsilon, strategy.gamma, run.middle_level)
    return None


def make_release_body(
    releases: Sequence[Release], cost: float | None, unit: float, has_near: bool, level: str
) -> dict[str, Any]:
    """Return what the record says about a release, with its cost under the name of the
    `level`. A batch that only enters the difference of another arm has no number and
    costs nothing of its own.
    """
    body: dict[str, Any] = {
        "releases": [
            {
                "arm": one.arm,
                "phase": one.phase,
                "count": one.size,
                "sum": one.sum,
                level: None if one.sum is None else cost,
                **({"near": one.near} if has_near else {}),
            }
            for one in releases
        ],
        "unit": unit,
    }
    if any(one.sum is None for one in releases):
        body["margin"] = next(one.arm for one in releases if one.sum is not None)
    return body


def _erase(tx: TrialTransaction, arm: int, phase: int) -> None:
    """Overwrite the outcomes of a batch, unless they are kept for ever."""
    if tx.protocol.retain != "forever":
        tx.tables.erase_outcomes(arm, phase)
        tx.erased = tx.protocol.erases_outcomes


def erase_unreleasable(tx: TrialTransaction) -> None:
    """Erase outcomes that will never be released: of arms that were taken off a round
    or dropped.
    """
    for arm, phase in tx.tables.counts:
        if not tx.state.run.is_pending(arm, phase):
            _erase(tx, arm, phase)


def _release_answers(tx: TrialTransaction, run: Run, recorded: Sequence[AssignmentRow]) -> None:
    """Publish answers in the order of assignment: the order of arrival may depend on
    the outcomes.
    """
    grid, tables, before = tx.protocol.grid, tx.tables, tx.state.cursor
    answers, rows = tables.read_answers(before), {row.number: row for row in recorded}
    if earlier := [number for number, _ in answers if number not in rows]:
        rows |= tables.find_assignments(earlier)
    published = []
    for number, units in answers:
        if run.stopped:
            break
        tx.state.cursor = number
        run.record_answer(rows[number].arm, units / grid)
        published.append([number, units])
    if tx.protocol.retain != "forever":
        tables.erase_answers(before, tx.state.cursor)
    if published:
        tx.state.releases += len(published)
        tables.append_event("answered", {"answers": published, "unit": 1 / grid})


def end_if_over(tx: TrialTransaction) -> None:
    """End the trial if the strategy or a manager has stopped it, or if nobody else may
    be assigned and no release is to come.
    """
    state, run = tx.state, tx.state.run
    if state.stopped:
        return
    is_full = tx.tables.row.participants >= state.management.maximum
    if run.releases_each_answer:
        is_exhausted = is_full and not any(batch.open for batch in tx.tables.counts.values())
    else:
        is_exhausted = not run.list_due() and (is_full or run.is_finished)
    if not (run.stopped or state.management.ended or is_exhausted):
        return
    body = state.end()
    if tx.protocol.has_round_keys:
        body["keys"] = tx.tables.reveal_keys(ALL_ROUNDS)
    tx.tables.append_event("stopped", body)
    if tx.protocol.retain != "forever":  # nobody will ever release what is left
        tx.tables.erase_all_outcomes()
        tx.erased = tx.protocol.erases_outcomes
