"""Live trials with other sampling rules: closed and opened again after every few
people, some of whom wait, and checked by whoever has the transcript.
"""

from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import Strategy, Trial, verify_transcript


@pytest.mark.parametrize(
    "strategy",
    [
        discreet.ttucb(0.1, sampling="track-and-stop", cost="kl"),
        discreet.ttucb(0.1, sampling="ts-tc"),
        discreet.adap_tt(5, 0.1, sampling="track-and-stop"),
    ],
    ids=lambda strategy: f"{strategy.name} {strategy.sampling}",
)
def test_a_trial_goes_on_and_can_be_checked(strategy: Strategy, tmp_path: Path) -> None:
    url, rng = f"sqlite:///{tmp_path / 'trial.db'}", np.random.default_rng(1)
    Trial.create(url, "dose", ["5 mg", "10 mg", "20 mg"], strategy, max_participants=2000).close()
    for _ in range(8):
        trial = Trial.open(url, "dose")
        told = {}
        for one in trial.ask(9).assignments:
            told[one.id] = int(rng.random() < (0.8 if one.arm == "10 mg" else 0.3))
        trial.tell_many(told)
        trial.close()
    trial = Trial.open(url, "dose")
    assert trial.status().participants > 8
    assert verify_transcript(trial.transcript()).intact
    trial.close()
