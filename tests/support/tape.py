"""A Generator that plays back what a live run was given."""


class Tape:
    """Draws of a Generator, played back: what the live run was given, in the order the
    simulator asks for it.
    """

    def __init__(self) -> None:
        self.sums: list[tuple[int, float]] = []
        self.noise: list[float] = []
        self.bits: list[float] = []
        self.jumps: list[int] = []

    def dealt(self, sizes: list[int], totals: list[float]) -> None:
        """A round of bet-se: how many people each arm was dealt, the last what was
        left, and the sum of their bits.
        """
        left, last = sum(sizes), len(sizes) - 1
        for place, (size, total) in enumerate(zip(sizes, totals, strict=True)):
            if place < last:
                self.sums.append((left, float(size)))
            self.sums.append((size, float(total)))
            left -= size

    def binomial(self, count: int, _mean: float) -> float:
        wanted, total = self.sums.pop(0)
        assert wanted == count
        return total

    def laplace(self, _location: float, _scale: float) -> float:
        return self.noise.pop(0)

    def random(self) -> float:
        return 0.0 if self.bits.pop(0) else 1.0 - 1e-16

    def standard_normal(self) -> float:
        return self.noise.pop(0)

    def geometric(self, _p: float) -> int:
        return self.jumps.pop(0)
