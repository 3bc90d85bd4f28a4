"""Who gets which arm: drawn from a key of the round that nobody knows, committed to
before anybody is dealt, and revealed when it can harm no more.

The key comes from the system's randomness when a round is opened; its hash is public at
once. Person number i gets the arm that HMAC-SHA256 of the key and i says. Without the
key that is as good as a coin; with it, anybody can check every assignment.
"""

import hashlib
import hmac
import secrets
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from discreet.strategies.strategy import Strategy

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 signs that nobody takes for another (after Crockford)."""
HALF_CODE_BITS = 15
"""Bits of half a code: 30 bits are six signs, one code for each possible number."""

SecretHash = Callable[[bytes], bytes]
"""A hash with the trial's secret."""


def make_code(keyed: SecretHash, participant: int) -> str:
    """Return the code of a participant, given the number, from 1 on: a permutation with
    a key (Feistel's), so that no two are the same and none can be guessed.
    """
    left, right = participant - 1 >> HALF_CODE_BITS, (participant - 1) % 2**HALF_CODE_BITS
    for step in range(6):
        mixed = int.from_bytes(keyed(f"code {step} {right}".encode())[:4])
        left, right = right, left ^ mixed % 2**HALF_CODE_BITS
    bits = left << HALF_CODE_BITS | right
    return "".join(ALPHABET[bits >> shift & 31] for shift in range(5 * 5, -1, -5))


KEY_BYTES = 32
"""No other length: HMAC pads shorter keys and hashes longer ones, so that another key
would deal the same, or a public hash.
"""
DRAW_RANGE = 2**128
"""Of the numbers that arms are drawn from, each as likely as any other."""


def default_randomisation(strategy: Strategy) -> str:
    """How people of a strategy are dealt unless somebody wants it otherwise."""
    return strategy.spec.randomisations[0] if isinstance(strategy, Strategy) else ""


def draw_key() -> bytes:
    """The key of a round, from the system's randomness."""
    return secrets.token_bytes(KEY_BYTES)


def commit_to(key: bytes) -> str:
    """What is public about a key from the start."""
    return hashlib.sha256(key).hexdigest()


def draw_arm(key: bytes, number: int, weights: Sequence[int]) -> int:
    """The arm of a person, each as likely as its weight says: a number below the sum of
    all weights, without bias, from the key and the person's number.
    """
    return prepare_draw(key)(number, weights)


def prepare_draw(key: bytes) -> Callable[[int, Sequence[int]], int]:
    """`draw` for many people of one round: half of what a draw takes is to prepare the
    key.
    """
    prepared = hmac.new(key, digestmod="sha256")
    known: Sequence[int] | None = None
    ends: list[int] = []

    def drawn(number: int, weights: Sequence[int]) -> int:
        nonlocal known, ends
        if weights is not known:  # odds stay the same for all people of a round
            known, ends = weights, list(accumulate(weights))
        total, attempt = ends[-1], 0
        while True:
            said = prepared.copy()
            said.update(f"{number}/{attempt}".encode())
            value = int.from_bytes(said.digest()[:16], "big")
            if value < DRAW_RANGE - DRAW_RANGE % total:
                return bisect_right(ends, value % total)
            attempt += 1

    return drawn


class UnrevealedKeys:
    """Rounds whose key is not public yet: what was committed to, and who was dealt."""

    def __init__(self) -> None:
        self.commits: dict[int, str] = {}
        """Of the rounds whose key is not public."""
        self.all_commits: set[str] = set()
        """All that were ever committed to: a key that was revealed predicts."""
        self.draws: dict[int, list[tuple[int, list[int], int]]] = {}
        """(number, weights, arm) of the people of each of these rounds."""

    def open(self, round: int, commit: str) -> bool:
        """A round begins; false if its key was committed to before."""
        if commit in self.all_commits:
            return False
        self.all_commits.add(commit)
        self.commits[round] = commit
        self.draws[round] = []
        return True

    def note(self, round: int, number: int, weights: list[int], arm: int) -> None:
        """A person was dealt this arm."""
        dealt = self.draws[round]
        if dealt and dealt[-1][1] is not weights and dealt[-1][1] == weights:
            weights = dealt[-1][1]
        dealt.append((number, weights, arm))

    def reveal(self, said: list[list[int | str]], through: int) -> str | None:
        """The keys of all rounds up to one are revealed; what is wrong with them, if
        anything.
        """
        rounds = [round for round in self.commits if round <= through]
        if [round for round, _ in said] != rounds:
            return "not the keys that were to be revealed"
        for round, text in said:
            key = bytes.fromhex(str(text))
            whole = key.hex() == text and len(key) == KEY_BYTES
            if not whole or commit_to(key) != self.commits.pop(int(round)):
                return f"the key of round {round} is not the one that was committed to"
            drawn = prepare_draw(key)
            for number, weights, arm in self.draws.pop(int(round)):
                if drawn(number, weights) != arm:
                    return f"person {number} was not dealt by the key of round {round}"
        return None
