"""Who gets which arm, where the strategy leaves it to chance: by the system's
randomness, never by a seed.
"""

import secrets
from collections.abc import Sequence
from itertools import accumulate


def deal(left: Sequence[int]) -> int:
    """The arm of one of the places that are left, each as likely as any other, by the
    system's randomness.
    """
    place = secrets.randbelow(sum(left))
    return next(arm for arm, end in enumerate(accumulate(left)) if place < end)
