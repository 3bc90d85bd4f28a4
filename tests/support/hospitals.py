"""Trials in the field that are watched, some of them dealt as they should not be; and
somebody who guesses the next arm from all that is public.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256

from discreet.audits.correctness import FieldTrial, find_lagging_arm
from discreet.audits.rehearsal import AnnouncedRound, KeySource, RehearsalTranscript
from discreet.numerics import bound_one_sided
from discreet.strategies.betting.run import BettingRun
from discreet.trials.randomisation import commit_to, draw_arm

# --- dealt as they should not be ------------------------------------------------------


class Watched(FieldTrial):
    """Notes whether arm 0 was ever out."""

    lost = False

    def decide(self, released: list[float], raw: list[float]) -> None:
        super().decide(released, raw)
        assert isinstance(self.live, BettingRun)
        self.lost |= bool(self.live.book.eliminated[0])


class Cycle(Watched):
    """One arm after the other, as often as the odds say."""

    def draw_arm(self, number: int, weights: list[int]) -> int:
        return in_cycle(number - self.record.openings[-1].first, weights)


class Blocks(Watched):
    """Permuted blocks as short as the odds allow, of two people for two arms; no bet
    pays for them.
    """

    def block(self, weights: list[int]) -> int:
        return sum(weights)

    def draw_arm(self, number: int, weights: list[int]) -> int:
        size = self.block(weights)
        place = (number - self.record.openings[-1].first) % size
        dealt = self.record.arms[len(self.record.arms) - place :]
        share = size // sum(weights)
        left = [share * weight - dealt.count(arm) for arm, weight in enumerate(weights)]
        return draw_arm(self.hidden[-1][1], number, left)


class WholeRounds(Blocks):
    """All places of a round in random order."""

    def block(self, weights: list[int]) -> int:
        return self.record.openings[-1].people


def in_cycle(place: int, weights: list[int]) -> int:
    """The arm of a place."""
    arms = [arm for arm, weight in enumerate(weights) for _ in range(weight)]
    return arms[place % len(arms)]


# --- guesses --------------------------------------------------------------------------

Guess = Callable[[RehearsalTranscript], int]
"""The next arm, from what is public before the person comes."""


def _odds(record: RehearsalTranscript) -> dict[int, int]:
    return {arm: weight for arm, weight in record.openings[-1].odds}


def _weights(record: RehearsalTranscript) -> list[int]:
    odds = _odds(record)
    return [odds.get(arm, 0) for arm in range(max(odds) + 1)]


def repeated(record: RehearsalTranscript) -> int:
    """The last arm again."""
    odds = _odds(record)
    return record.arms[-1] if record.arms and record.arms[-1] in odds else min(odds)


def likeliest(record: RehearsalTranscript) -> int:
    """The arm with the largest odds."""
    return max(record.openings[-1].odds, key=lambda one: one[1])[0]


def by_commitment(record: RehearsalTranscript) -> int:
    """As if the commitment were the key."""
    key = bytes.fromhex(record.openings[-1].commit)
    return draw_arm(key, len(record.arms) + 1, _weights(record))


def by_last_key(record: RehearsalTranscript) -> int:
    """As if the key that was revealed last were in use again."""
    if not record.keys:
        return find_lagging_arm(record)
    return draw_arm(bytes.fromhex(record.keys[-1][1]), len(record.arms) + 1, _weights(record))


def by_known_keys(record: RehearsalTranscript) -> int:
    """Tries keys that somebody might take in place of random ones."""
    opened = record.openings[-1]
    for key in _likely_keys(opened.round):
        if commit_to(key) == opened.commit:
            return draw_arm(key, len(record.arms) + 1, _weights(record))
    return find_lagging_arm(record)


def _likely_keys(round: int) -> Iterable[bytes]:
    yield bytes(32)
    yield round.to_bytes(32, "big")
    yield sha256(str(round).encode()).digest()
    yield sha256(f"round {round}".encode()).digest()


def by_habit(record: RehearsalTranscript) -> int:
    """What came most often after the last two arms."""
    arms, last = record.arms[-300:], tuple(record.arms[-2:])
    odds = _odds(record)
    after = Counter(
        arms[i] for i in range(2, len(arms)) if tuple(arms[i - 2 : i]) == last and arms[i] in odds
    )
    return after.most_common(1)[0][0] if after else find_lagging_arm(record)


def by_hospital(record: RehearsalTranscript) -> int:
    """What the next person's hospital had most often, if two send people in turn."""
    odds = _odds(record)
    mine = Counter(arm for arm in record.arms[-2:-300:-2] if arm in odds)
    return mine.most_common(1)[0][0] if mine else find_lagging_arm(record)


GUESSES: list[Guess] = [
    find_lagging_arm,
    repeated,
    likeliest,
    by_commitment,
    by_last_key,
    by_known_keys,
    by_habit,
    by_hospital,
]
ENOUGH = 300
"""Guesses of one chance that are counted: the first so many. Whether a guess counts is
then known before the arm is, and so the hits of fair coins are exactly binomial.
"""


class Attack:
    """How often each way to guess was right, by the chance that the odds give it."""

    def __init__(self) -> None:
        self.tried: Counter[tuple[Guess, float]] = Counter()
        self.right: Counter[tuple[Guess, float]] = Counter()

    def note(self, record: RehearsalTranscript, arm: int) -> None:
        """Guess, and then see the arm."""
        odds = _odds(record)
        for guess in GUESSES:
            said = guess(record)
            cell = guess, odds.get(said, 0) / sum(odds.values())
            if self.tried[cell] < ENOUGH:
                self.tried[cell] += 1
                self.right[cell] += said == arm

    def better(self, level: float) -> list[str]:
        """Ways to guess that beat the odds; with fair coins there is none with
        probability `level`.
        """
        tail = (1 - level) / len(self.tried)
        found = [
            guess.__name__
            for (guess, chance), tried in self.tried.items()
            if bound_one_sided(self.right[guess, chance], tried, tail)[0] > chance
        ]
        return sorted(set(found))


def attack_rounds(
    keys: KeySource,
    odds: Iterable[list[int]],
    people: int,
    deal: Callable[[bytes, int, list[int]], int] = draw_arm,
    leaked: bool = False,
) -> Attack:
    """Somebody guesses in rounds of these odds; each key is public after its round."""
    record, attack = RehearsalTranscript(), Attack()
    for round, weights in enumerate(odds, start=1):
        key, first = keys(round), len(record.arms) + 1
        said = [[arm, weight] for arm, weight in enumerate(weights)]
        record.openings.append(AnnouncedRound(round, said, people, commit_to(key), first))
        if leaked:
            record.keys.append((round, key.hex()))
        for number in range(first, first + people):
            arm = deal(key, number, weights)
            attack.note(record, arm)
            record.arms.append(arm)
        record.keys.append((round, key.hex()))
    return attack
