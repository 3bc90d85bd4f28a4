"""Keys of rounds with a seed: trials that deal the same every time."""

import numpy as np
import pytest

from discreet.trials import enrolment, record


def seeded_keys(patch: pytest.MonkeyPatch, seed: int = 7) -> None:
    """New rounds have keys and events salts of this seed from now on, each its own."""
    rng = np.random.default_rng(seed)
    patch.setattr(enrolment, "draw_key", lambda: rng.bytes(32))
    salts = np.random.default_rng([seed, 1])
    patch.setattr(record, "new_salt", lambda: salts.bytes(16).hex())
