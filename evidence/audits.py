"""How small an excess over ε an audit finds: python -m evidence.audits [measure]

Measures into audits.json beside this file when asked to, and prints it: of 40 audits of
a single release at ε = 1, with 10 000 runs each and noise scaled down, how many found a
violation. The bounds are those of an audit of all four parts at its usual level of 95
%.
"""

import json
import sys
from pathlib import Path
from typing import Any

from discreet import Rehearsal, adap_tt, audit_privacy, bet_se
from discreet.audits.privacy import PARTS
from discreet.numerics import divide_error

DATA = Path(__file__).parent / "audits.json"
AUDITS = 40
RUNS = 10_000
LEVEL = 1 - divide_error(0.95, len(PARTS))
"""Of one part, so that all four hold at 95 %."""


def quieter(scale: float) -> type[Rehearsal]:
    """The mechanism with its noise scaled down."""

    class Quieter(Rehearsal):
        def noisy(self, total: int) -> int:
            return self.source.add_laplace_noise(total, self.epsilon / scale, self.grid)

    return Quieter


def measure() -> list[dict[str, Any]]:
    found = []
    for strategy in (bet_se(0.1, 1.0), adap_tt(1.0, 0.1)):
        for scale in (0.8, 0.9, 0.95):
            audits = [
                audit_privacy(
                    strategy,
                    RUNS,
                    LEVEL,
                    noise="numpy",
                    seed=seed,
                    parts=("single",),
                    rehearsal=quieter(scale),
                )
                for seed in range(AUDITS)
            ]
            caught = sum(audit.is_violated for audit in audits)
            row = {"strategy": strategy.name, "scale": scale, "audits": AUDITS, "runs": RUNS}
            found.append({**row, "found": caught})
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        lines = ",\n".join(json.dumps(row) for row in measure())
        DATA.write_text(f"[\n{lines}\n]\n")
    print(DATA.read_text())
