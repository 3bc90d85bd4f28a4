"""Codes in place of arms, for staff who are not to know them.

Each participant has a code of their own, like the kit numbers of a blinded trial. It
follows from the participant's number by the trial's secret, and from nothing else: no
two codes are equal, and neither the codes that appear nor those that no longer appear
tell anything about arms. Only participants who are assigned have a code, because a list
of later ones with their arms would reveal the randomisation.
"""

from collections.abc import Callable

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 signs that nobody takes for another (after Crockford)."""
HALF = 15
"""Bits of half a code: 30 bits are six signs, one code for each possible number."""

Keyed = Callable[[bytes], bytes]
"""A hash with the trial's secret."""


def make_code(keyed: Keyed, participant: int) -> str:
    """Return the code of a participant, given the number, from 1 on: a permutation with
    a key (Feistel's), so that no two are the same and none can be guessed.
    """
    left, right = participant - 1 >> HALF, (participant - 1) % 2**HALF
    for step in range(6):
        mixed = int.from_bytes(keyed(f"code {step} {right}".encode())[:4])
        left, right = right, left ^ mixed % 2**HALF
    bits = left << HALF | right
    return "".join(ALPHABET[bits >> shift & 31] for shift in range(5 * 5, -1, -5))
