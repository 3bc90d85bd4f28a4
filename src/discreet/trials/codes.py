"""Codes in place of arms, for staff who are not to know them.

Every arm has several codes, so that whoever learns one arm has not learned all people
of it. They follow from the trial's secret; the operator has the list, for whoever packs
what people get.
"""

from collections.abc import Callable

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 signs that nobody takes for another (after Crockford)."""
CODES = 8
"""Codes of an arm."""
HALF = 10
"""Bits of half a code: 20 bits are four signs."""
MOST_ARMS = 2 ** (2 * HALF) // CODES

Keyed = Callable[[bytes], bytes]
"""A hash with the trial's secret."""


def code_of(keyed: Keyed, arm: int, person: int) -> str:
    """What is shown in place of a person's arm."""
    place = keyed(f"kit {person}".encode())[0] % CODES
    return _code(keyed, arm * CODES + place)


def codes_of(keyed: Keyed, arm: int) -> list[str]:
    """All codes of an arm."""
    return [_code(keyed, arm * CODES + place) for place in range(CODES)]


def _code(keyed: Keyed, number: int) -> str:
    """A number below 2^20 as four signs: a permutation with a key (Feistel's), so that
    no two are the same and none tells which arm it is of.
    """
    left, right = number >> HALF, number % 2**HALF
    for step in range(6):
        mixed = int.from_bytes(keyed(f"code {step} {right}".encode())[:4])
        left, right = right, left ^ mixed % 2**HALF
    bits = left << HALF | right
    return "".join(ALPHABET[bits >> shift & 31] for shift in (15, 10, 5, 0))
