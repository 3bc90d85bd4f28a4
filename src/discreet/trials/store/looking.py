"""Looks at parts of a public record, for whoever reads it and does not follow it."""

import sqlalchemy as sa

from discreet.trials.chain import Event
from discreet.trials.store.schema import events
from discreet.trials.store.session import Session, at

_columns = [events.c[name] for name in Event._fields]
_latest = (
    sa.select(*_columns)
    .where(at(events), events.c.seq < sa.bindparam("before"))
    .order_by(events.c.seq.desc())
    .limit(sa.bindparam("most"))
)
_answered_at = (
    sa.select(events.c.seq, events.c.hash)
    .where(at(events), events.c.kind == "answered", events.c.body.like(sa.bindparam("answer")))
    .order_by(events.c.seq)
)


def latest(session: Session, before: int, most: int) -> list[Event]:
    """The last events before a place, the newest first."""
    return [Event(*row) for row in session.run(_latest, before=before, most=most)]


def answered_at(session: Session, number: int) -> tuple[int, str] | None:
    """Number and hash of the event that tells a person's answer, if one does."""
    found = session.run(_answered_at, answer=f"%[{number},%").first()
    return None if found is None else (found.seq, found.hash)
