"""Keys of rounds with a seed: trials that deal the same every time."""

import numpy as np
import pytest

from discreet.trials import enrol


def seeded_keys(patch: pytest.MonkeyPatch, seed: int = 7) -> None:
    """New rounds have keys of this seed from now on, each its own."""
    rng = np.random.default_rng(seed)
    patch.setattr(enrol, "new_key", lambda: rng.bytes(32))
