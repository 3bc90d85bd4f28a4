"""Write the numbers of evidence/*.json into the pages: `python -m evidence.include`.

A page marks a number as `<!--=name place-->value<!--=-->`: `name` is a row of `FIGURES`,
`place` which of its values is meant, counted from 1. A table needs no mark: it is known
by its header. With `--check` nothing is written, and the exit code is 1 if a page differs
from the evidence.
"""

import contextlib
import io
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

from evidence import bernoulli, bet_se_participants, choosing, episodes, numbers, rules
from evidence.figures import (
    BERNOULLI,
    CHOOSING,
    FIGURES,
    OUTCOMES,
    PARTICIPANTS,
    ROOT,
    RULES,
    read_evidence,
)

MARK = re.compile(r"<!--=([\w.]+) (\d+)-->(.*?)<!--=-->", re.DOTALL)
TABLES: dict[str, list[Callable[[], None]]] = {
    "docs/choosing.md": [lambda: choosing.show(CHOOSING)],
    "docs/betting.md": [
        lambda: print(*bet_se_participants.make_table(PARTICIPANTS), sep="\n"),
        lambda: numbers.show(OUTCOMES),
    ],
    "docs/strategies.md": [lambda: rules.show(RULES), lambda: bernoulli.show(BERNOULLI)],
    "docs/theory.md": [lambda: episodes.show(read_evidence("episodes"))],
}
"""What prints the tables of a page."""


def list_pages() -> list[str]:
    """Return the pages that may have marks, relative to the repository's root."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [str(page.relative_to(ROOT)) for page in pages]


def fill_marks(text: str) -> str:
    """Return the page with the current number behind each mark."""

    def fill(mark: re.Match[str]) -> str:
        value = FIGURES[mark[1]]()[int(mark[2]) - 1]
        return f"<!--={mark[1]} {mark[2]}-->{value}<!--=-->"

    return MARK.sub(fill, text)


def find_tables(text: str) -> Iterator[list[str]]:
    """Yield the lines of each table; one may follow another at once."""
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|---") and len(rows) > 1:
            yield rows[:-1]
            rows = rows[-1:]
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            yield rows
            rows = []


def fill_tables(text: str, printers: list[Callable[[], None]]) -> str:
    """Return the page with the tables that these print; of several with one header, in
    their order.
    """
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for show in printers:
            show()
    current: dict[str, list[list[str]]] = defaultdict(list)
    for rows in find_tables(output.getvalue()):
        current[rows[0]].append(rows)
    for rows in find_tables(text):
        if current.get(rows[0]):
            text = text.replace("\n".join(rows), "\n".join(current[rows[0]].pop(0)), 1)
    missing = [header for header, tables in current.items() if tables]
    if missing:
        raise SystemExit(f"no page has the table {missing[0]}")
    return text


def include(page: str) -> str:
    """Return a page with the numbers and tables of the evidence."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return fill_tables(fill_marks(text), TABLES.get(page, []))


def list_outdated() -> list[str]:
    """Return the pages that differ from the evidence."""
    return [page for page in list_pages() if include(page) != (ROOT / page).read_text("utf-8")]


def main() -> None:
    """Write the pages, or with `--check` name those that are out of date."""
    pages = list_outdated()
    if sys.argv[1:] == ["--check"] and pages:
        sys.exit(f"out of date: {', '.join(pages)}; run python -m evidence.include")
    for page in pages:
        (ROOT / page).write_text(include(page), encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
