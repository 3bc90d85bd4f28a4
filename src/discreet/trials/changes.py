"""How many people of each batch are open, told or to be replaced: what a transaction
adds to these counts.
"""

Slot = tuple[int, int]
"""(arm, phase) of the batch in which people are counted."""


class Changes:
    """What is to be added to the counts of batches."""

    def __init__(self) -> None:
        self.by_slot: dict[Slot, tuple[int, int, int]] = {}
        """(open, told, vacant) of each."""

    def count(self, slot: Slot, open: int = 0, told: int = 0, vacant: int = 0) -> None:
        """Add to one of them."""
        now = self.by_slot.get(slot, (0, 0, 0))
        self.by_slot[slot] = (now[0] + open, now[1] + told, now[2] + vacant)
