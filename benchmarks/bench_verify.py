"""What it takes to verify a long record: processor seconds for 200 000 people who came
and answered one by one, so that each is two events. It should be well below 10.

The records are written straight into the tables, as the strategy would have gone on.
"""

import json
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from discreet import Strategy, ctb_tt, gauss_tt, ttucb, verify_transcript
from discreet.trials.record import new_state, next_event
from discreet.trials.status import Verification
from discreet.trials.store import schema
from discreet.trials.trial import Trial

PEOPLE = 200_000
ARMS = ("red", "green", "blue")
STRATEGIES = (
    ttucb(delta=1e-9),
    ctb_tt(delta=1e-9, epsilon=1.0),
    gauss_tt(delta=1e-9, epsilon=1.0, gamma=1e-6),
)


def long_trial(url: str, strategy: Strategy) -> Trial:
    """A trial of arms that are alike."""
    trial, rng = Trial.create(url, strategy.name, ARMS, strategy, 2**30), random.Random(0)
    with trial._database.transaction(strategy.name) as tables:
        tables.lock()
        first = tables.first_event()
    assert first is not None
    now, written = new_state(trial.protocol), [first]
    seats = list[schema.AssignmentRow]()

    def append(kind: str, **says: object) -> None:
        last = written[-1]
        written.append(next_event(last.hash, last.seq + 1, kind, says))

    unit = 1 / trial.protocol.grid
    for number in range(1, PEOPLE + 1):
        place, units = now.run.assign_next(), rng.randrange(2) * trial.protocol.grid
        assert place is not None, "the trial has ended"
        append("assigned", first=number, arms=[place.arm])
        append("answered", answers=[[number, units]], unit=unit)
        now.run.record_answer(place.arm, units * unit)
        seats.append(
            schema.AssignmentRow(number, "", place.arm, number, schema.RECORDED, None, None, 0.0)
        )
    now.releases, now.cursor = PEOPLE, PEOPLE
    with trial._database.transaction(strategy.name) as tables:
        tables.lock()
        row = tables.row
        tables._insert(schema.events, written[row.seq :])
        tables._insert(schema.assignments, seats)
        tables._row = row._replace(seq=written[-1].seq, head=written[-1].hash, participants=PEOPLE)
        tables.save_state(now.dump())
    return trial


def seconds(verify: Callable[[], Verification]) -> float:
    """Of the processor, the best of two."""
    takes = list[float]()
    for _ in range(2):
        began = time.process_time()
        assert verify().intact
        takes.append(time.process_time() - began)
    return min(takes)


def run() -> None:
    print(f"\nVerifying {PEOPLE} people, s of the processor    trial    transcript")
    for strategy in STRATEGIES:
        with tempfile.TemporaryDirectory() as folder:
            trial = long_trial(f"sqlite:///{folder}/long.db", strategy)
            file = Path(folder, "long.json")
            file.write_text(json.dumps(trial.transcript()))
            takes = seconds(trial.verify), seconds(partial(verify_transcript, file))
            trial.close()
        print(f"{strategy.name:46}{takes[0]:6.1f}{takes[1]:14.1f}")


if __name__ == "__main__":
    run()
