"""What a report says of past data: means in the experimenter's units and how many
people there are, never a single outcome.
"""

import math

from discreet.instances import Instance
from discreet.past_data import Sampled
from discreet.scale import Scale
from discreet.wording import closed, counted, listed

FEW = 5
"""Past outcomes of an arm below which a plan hardly knows it."""
NOT_PRIVATE = (
    "These averages and counts are those of the data, without noise: they are not private, and "
    "neither is what is simulated from the data"
)


def past_words(arms: Instance) -> str | None:
    """The means of data in its units, with its range and direction, so that a mistake
    in them is seen; None where these are not known.
    """
    scale = units_of(arms)
    if scale is None:
        return None
    means = zip(arms.names, arms.means, strict=True)
    return (
        f"{listed([f'{closed(name)} {in_units(mean, scale)}' for name, mean in means])} on average"
        f"{past_people(arms)}, range {scale.low:.12g} to {scale.high:.12g}, "
        f"{'more' if scale.direction == 'max' else 'less'} is better"
    )


def units_of(arms: Instance) -> Scale | None:
    """In which units the outcomes are, if they are known by data."""
    return arms.scale if isinstance(arms, Sampled) else None


def past_people(arms: Instance) -> str:
    """How many people there are in the data of each arm, in brackets; empty without
    data.
    """
    if not isinstance(arms, Sampled):
        return ""
    if len(set(arms.counts)) == 1:
        return f" ({counted(arms.counts[0], 'person', 'people')} each)"
    return f" ({listed([str(count) for count in arms.counts])} people)"


def past_notes(arms: Instance) -> list[str]:
    """What else to know of data, in sentences."""
    if not isinstance(arms, Sampled):
        return []
    notes = [NOT_PRIVATE]
    if arms.clipped:
        every = len(arms.flat)
        lie, count_as = ("lies", "counts") if arms.clipped == 1 else ("lie", "count")
        notes.append(
            f"{arms.clipped} of {every} past outcomes ({arms.clipped / every:.1%}) {lie} outside "
            f"the range and {count_as} as the nearer end"
        )
    few = [name for name, count in zip(arms.names, arms.counts, strict=True) if count < FEW]
    if few:
        have = "has" if len(few) == 1 else "have"
        notes.append(
            f"{listed(few)} {have} fewer than {FEW} past outcomes, which are drawn again and "
            "again: this plan is hardly more than a guess"
        )
    return notes


def in_units(mean: float, scale: Scale) -> str:
    """A mean in the experimenter's units, to a few thousandths of the range."""
    digits = max(0, 3 - math.floor(math.log10(scale.high - scale.low)))
    return f"{round(scale.shown(mean), digits):.12g}"
