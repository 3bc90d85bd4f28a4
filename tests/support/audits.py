"""Audits of ε with a seed, and what the docs say that they find."""

from pathlib import Path

from discreet import PrivacyAudit, Rehearsal, Strategy, audit_privacy

SURE = 1 - 1e-6


def audited(strategy: Strategy, mistake: type[Rehearsal], part: str, runs: int) -> PrivacyAudit:
    return audit_privacy(strategy, runs, SURE, "numpy", seed=1, parts=(part,), rehearsal=mistake)


def said_in_the_docs(mistake: str) -> tuple[str, int, str]:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {mistake}")]
    _, _, part, _, runs, low, _ = (cell.strip() for cell in row.split("|"))
    return part.strip("`"), int(runs.partition("(")[0].replace(" ", "")), low
