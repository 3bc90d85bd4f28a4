"""What the callers of a live trial get to see: assignments, status, and what a
verification found.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from discreet.scale import OUT_OF_RANGE, REFUSE, Scale
from discreet.strategies.run import ArmView, Lead
from discreet.tabular import Tabular
from discreet.trials.operations import RECORDED_MEANINGS, RESTORED, RESTORED_WORDS
from discreet.trials.record import Head, PublicState, assignment_round
from discreet.trials.settings import (
    ANONYMOUS,
    CONTINUOUS,
    ENROLMENT,
    RANDOMISATION,
    RELEASE,
    RETAIN,
    RETURNING,
)

ERASING_WORDS = (
    "outcomes that were erased may still be readable in the files of the database: somebody reads "
    "an old state of it, such as a dump or a backup that runs, or nobody who may tidy it up has "
    "called since. It is tried again with the next calls; discreet trial expire tries it now"
)
"""What a status says while that is so."""


@dataclass(frozen=True)
class Assignment:
    """A participant's assignment: give them this arm, and record the outcome under this
    id.
    """

    id: str
    arm: str
    participant: str | None = None
    """The identifier that the caller gave."""


@dataclass(frozen=True)
class OpenAssignment:
    """An assignment whose outcome is not in. For staff: the ids are secrets."""

    id: str
    arm: str
    site: str | None
    age: float
    """Seconds since the person was assigned."""
    deadline: float | None
    """When the outcome counts as missing, in seconds since 1970."""


@dataclass(frozen=True)
class AskResult:
    """What `ask` returns: `assignments` (maybe none), for how many outcomes the next
    release is `waiting`, and whether the trial is over (`stopped`).
    """

    assignments: tuple[Assignment, ...]
    waiting: int
    stopped: bool
    middle_level: float | None = None
    """The middle one of three levels, for `respond`, if participants send one of them.
    """
    paused: bool = False
    """Whether a manager has paused the trial."""
    not_assigned: tuple[str, ...] = ()
    """Named participants who are not assigned: the round is full, or nobody is enrolled
    now.
    """


@dataclass(frozen=True)
class TellResult:
    """What `tell` did. It depends on ids and times alone, never on an outcome."""

    new: int
    """Number of outcomes that were recorded."""
    already_told: tuple[str, ...] = ()
    """Ids that were recorded before, or are declared missing: nothing changed. `amend`
    corrects an outcome until it is released.
    """
    late: tuple[str, ...] = ()
    """Ids whose deadline has passed: what was recorded by then counts, and nothing
    else.
    """


@dataclass(frozen=True)
class ParticipantView:
    """What a participant who is to answer may know of the own answer."""

    number: int
    """The participant's number in the record."""
    state: str
    """`open`; `answered`, by the participant or because it was said to be missing;
    `late`, past the deadline; `ended`, the trial needs no answer any more.
    """
    middle_level: float | None
    """The middle one of three levels, if one of them is sent."""
    is_published: bool
    """Whether the record has every answer by itself, and not only sums."""
    event: tuple[int, str] | None
    """Number and hash of the event with the answer, if there is one."""


@dataclass(frozen=True)
class ArmStatus:
    """What is public about an arm, in the experimenter's units."""

    name: str
    assigned: int
    """People assigned to it."""
    count: int
    """Outcomes behind the mean."""
    mean: float | None
    """The released mean: private, hence noisy, and not confined to the range of
    outcomes.
    """
    interval: tuple[float, float] | None
    """Holds the true mean at all times with probability 1 - δ, where the strategy gives
    one.
    """


@dataclass(frozen=True)
class LeadStatus:
    """How much better an arm did than the best of others, released with noise in place
    of means.
    """

    name: str
    over: tuple[str, ...]
    participants: int
    """Of each of these arms."""
    better_by: float
    """On average, in the experimenter's units; below 0 if it did worse."""


@dataclass(frozen=True)
class SiteStatus:
    """The flow of people at a site."""

    name: str
    participants: int
    closed: bool


@dataclass(frozen=True)
class ActionStatus:
    """What a manager did, why, and what it means for the guarantee."""

    action: str
    about: str | int | None
    reason: str
    meaning: str


@dataclass(frozen=True)
class Status(
    Tabular,
    rows="arms",
    called=("arm", "trial"),
    shown="arm assigned count mean interval_low interval_high "
    "trial participants stopped conclusive recommendation correctness privacy",
    numbers="mean interval_low interval_high smallest_delta epsilon gamma middle_level deadline",
):
    """The trial as anyone may see it."""

    name: str
    strategy: str
    stopped: bool
    conclusive: bool
    """Whether it stopped by the strategy's rule, so that the error rate δ holds."""
    recommendation: str | None
    smallest_delta: float | None
    """Of an inconclusive end: the smallest δ at which these releases would have been
    enough, if any.
    """
    participants: int
    max_participants: int
    pending: int
    """People assigned whose outcome is not in."""
    waiting: int
    """Outcomes that the next release waits for; then `ask` assigns nobody, unless
    enrolment is continuous.
    """
    releases: int
    epsilon: float | None
    gamma: float | None
    delta: float
    privacy: str
    correctness: str
    retain: str
    arms: tuple[ArmStatus, ...]
    head: str
    """Length and hash of the public record: note it, and give it to `Trial.open` after
    a restore.
    """
    protocol_hash: str
    leads: tuple["LeadStatus", ...]
    """What was released in place of means."""
    randomisation: str
    """How people are dealt to arms, and what the error rate then rests on."""
    out_of_range: str
    """What outcomes outside the range count as; empty if they are refused. Whether
    there were any is nowhere said.
    """
    middle_level: float | None
    """Where people send one of three levels: the middle one of those who are in now."""
    guarantee: str
    """What is guaranteed of the answer, with its condition."""
    release: str
    """When rounds are released, and what that tells; empty where every answer is
    released by itself.
    """
    deadline: float | None
    """Seconds from assignment within which an outcome counts."""
    enrolment: str
    """Whether people are enrolled while rounds wait for outcomes, if they are."""
    paused: bool
    sites: tuple[SiteStatus, ...]
    actions: tuple[ActionStatus, ...]
    """What managers did."""
    next_release: int | None
    """When the round that is full is released by the clock, in seconds since 1970."""
    past_deadline: int | None
    """People whose deadline has passed, told or not: how many were missing is an
    outcome, and nowhere said.
    """
    returning: str
    """What it means if somebody comes a second time; empty where nobody needs to say
    who comes.
    """
    erasing: str
    """Whether erased outcomes may still be readable in the database; empty if not."""
    error_rate: float | None
    """Over the whole trial: δ, and once more for each arm that was dropped or added;
    none without a proof.
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Verification:
    """What `verify` found."""

    events: int
    head: str
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether the record is what was written, and the present state follows from
        it.
        """
        return not self.problems


class ReleasedFigures(NamedTuple):
    """The part of a status that takes long: computed when somebody asks, and kept as
    long as the head is.
    """

    arms: tuple[ArmStatus, ...]
    smallest_delta: float | None


class PendingCounts(NamedTuple):
    """How many outcomes are not in: the part of a status that is not in the record."""

    pending: int
    waiting: int


class PrivateNotes(NamedTuple):
    """What else of a status is not in the record."""

    past_deadline: int | None
    erasing: str


def summarize_releases(now: PublicState) -> ReleasedFigures:
    """What is public about each arm, and the smallest δ of an inconclusive end."""
    table = zip(now.management.arms, now.run.view_arms(), strict=True)
    arms = tuple(_make_arm_status(name, arm, now.protocol.scale) for name, arm in table)
    if not now.stopped or now.conclusive:
        return ReleasedFigures(arms, None)
    smallest = now.run.find_smallest_delta()
    return ReleasedFigures(
        arms, now.protocol.compute_shown_delta(smallest, now.management.arm_changes)
    )


def _make_arm_status(name: str, arm: ArmView, scale: Scale) -> ArmStatus:
    mean = None if arm.mean is None else scale.convert_to_outcome(arm.mean)
    if arm.interval is None:
        return ArmStatus(name, arm.pulls, arm.count, mean, None)
    low, high = sorted(scale.convert_to_outcome(end) for end in arm.interval)
    return ArmStatus(name, arm.pulls, arm.count, mean, (low, high))


def _make_lead_status(lead: Lead, now: PublicState) -> LeadStatus:
    names, scale = now.management.arms, now.protocol.scale
    over = tuple(names[arm] for arm in lead.over)
    return LeadStatus(
        names[lead.arm], over, lead.participants, lead.value * (scale.high - scale.low)
    )


def _make_site_statuses(now: PublicState) -> tuple[SiteStatus, ...]:
    """The sites of the protocol, then those that people came from."""
    management = now.management
    known = management.list_sites(now.protocol) or []
    names = dict.fromkeys([*known, *management.sites, *management.closed_sites])
    return tuple(
        SiteStatus(name, management.sites.get(name, 0), name in management.closed_sites)
        for name in names
    )


def _find_next_release(now: PublicState) -> int | None:
    """Known where the clock releases and a round is full."""
    deadline, due = now.protocol.deadline, now.run.list_due()
    if not now.protocol.has_times or deadline is None or not due or now.stopped:
        return None
    return now.management.compute_release_time(
        assignment_round(now.protocol, due[0].phase), deadline
    )


def _compute_error_rate(now: PublicState) -> float | None:
    """Over the whole trial."""
    strategy = now.protocol.strategy
    if not strategy.is_proved:
        return None
    return min((1 + now.management.arm_changes) * strategy.delta, 1.0)


def _describe_privacy(now: PublicState) -> str:
    """What is promised, and what a restore has left of it."""
    words = now.protocol.strategy.privacy
    if not any(act.action == RESTORED for act in now.management.actions):
        return words
    return f"{words}. {RESTORED_WORDS}"


def make_status(
    protocol_hash: str,
    now: PublicState,
    figures: ReleasedFigures,
    tally: PendingCounts,
    aside: PrivateNotes,
    people: int,
    head: Head,
) -> Status:
    """The status that follows from the public state, and how many outcomes are not
    in.
    """
    protocol, management = now.protocol, now.management
    strategy = protocol.strategy
    best = now.run.recommendation
    return Status(
        name=protocol.name,
        strategy=strategy.name,
        stopped=now.stopped,
        conclusive=now.conclusive,
        recommendation=None if best is None else management.arms[best],
        smallest_delta=figures.smallest_delta,
        participants=people,
        max_participants=management.maximum,
        pending=tally.pending,
        waiting=tally.waiting,
        releases=now.releases,
        epsilon=strategy.epsilon,
        gamma=strategy.gamma,
        delta=strategy.delta,
        privacy=_describe_privacy(now),
        correctness=strategy.correctness,
        retain=RETAIN[protocol.retain],
        arms=figures.arms,
        head=str(head),
        protocol_hash=protocol_hash,
        leads=tuple(_make_lead_status(lead, now) for lead in now.run.list_leads()),
        randomisation=RANDOMISATION[protocol.randomisation],
        middle_level=None if now.stopped else now.run.middle_level,
        out_of_range="" if protocol.out_of_range == REFUSE else OUT_OF_RANGE[protocol.out_of_range],
        guarantee=protocol.describe_guarantee(
            _compute_error_rate(now), " among the remaining arms" if management.dropped_arms else ""
        ),
        release="" if strategy.spec.each_answer else RELEASE[protocol.release],
        deadline=protocol.deadline,
        enrolment=ENROLMENT[CONTINUOUS] if protocol.enrolment == CONTINUOUS else "",
        paused=management.paused,
        sites=_make_site_statuses(now),
        actions=tuple(
            ActionStatus(*act, RECORDED_MEANINGS[act.action]) for act in management.actions
        ),
        next_release=_find_next_release(now),
        past_deadline=aside.past_deadline,
        returning="" if protocol.returning == ANONYMOUS else RETURNING[protocol.returning],
        erasing=aside.erasing,
        error_rate=_compute_error_rate(now),
    )
