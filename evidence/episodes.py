"""One global episode, as the docs say it: python -m evidence.episodes [measure]

Measures into episodes.json beside this file when asked to (some minutes), and prints
the table of docs/theory.md: samples and rounds with an episode for each arm, how many
runs one global episode leaves unstopped, and what yielding arms make of it.
"""

import json
import sys
from pathlib import Path
from typing import Any

from discreet import Strategy, adap_tt, adap_tt_star, benchmarks, ttucb_batched
from discreet.simulation.engine import simulate_quietly
from discreet.wording import format_short, format_strategy_name

DATA = Path(__file__).parent / "episodes.json"
SEED, RUNS, CAP, DELTA, EPSILON = 1, 300, 10**9, 0.01, 1.0
INSTANCES = ("mu1", "mu2", "mu4", "mu5", "mu6")
EPISODES = ("arm", "global", "global-yielding")


def strategies(episodes: str) -> list[Strategy]:
    """The phased strategies with these episodes."""
    return [
        adap_tt(EPSILON, DELTA, episodes=episodes),
        adap_tt_star(EPSILON, DELTA, episodes=episodes),
        ttucb_batched(DELTA, episodes=episodes),
    ]


def measure() -> list[dict[str, Any]]:
    """A row for each instance, strategy and kind of episodes."""
    rows = []
    for instance in INSTANCES:
        for episodes in EPISODES:
            for strategy in strategies(episodes):
                found = simulate_quietly(benchmarks[instance], strategy, RUNS, SEED, CAP)
                summary = found.summary()
                rows.append(
                    {
                        "instance": instance,
                        "strategy": strategy.name,
                        "episodes": episodes,
                        "runs": RUNS,
                        "unstopped": found.unstopped,
                        "errors": found.errors,
                        "mean": summary["mean"],
                        "median": summary["median"],
                        "rounds": summary["rounds_mean"],
                    }
                )
    return rows


def row_of(rows: list[dict[str, Any]], instance: str, strategy: str, episodes: str) -> Any:
    """The row of these."""
    key = (instance, strategy, episodes)
    return next(r for r in rows if (r["instance"], r["strategy"], r["episodes"]) == key)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table of the docs."""
    print(
        "| instance | strategy | an episode for each arm: mean, rounds "
        "| one global episode: unstopped | `global-yielding`: mean, rounds, unstopped |",
        "|---" * 5 + "|",
        sep="\n",
    )
    for instance in INSTANCES:
        for strategy in strategies("arm"):
            arm, whole, yields = (
                row_of(rows, instance, strategy.name, episodes) for episodes in EPISODES
            )
            lost = f"{whole['unstopped'] / whole['runs']:.0%}".replace("%", " %")
            cells = (
                instance,
                format_strategy_name(strategy.name).replace("*", r"\*"),
                f"{format_short(arm['mean'])}, {arm['rounds']:.0f}",
                lost,
                f"{format_short(yields['mean'])}, {yields['rounds']:.0f}, {yields['unstopped']}",
            )
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if "measure" in sys.argv:
        DATA.write_text(json.dumps(measure(), indent=1) + "\n")
    show(json.loads(DATA.read_text()))
