"""A backup in memory, for a service that sends it: if the process is killed, no copy of
the outcomes stays in any folder.
"""

from discreet.errors import InvalidInputError
from discreet.trials.store.database import Store
from discreet.trials.store.ledger import Ledger
from discreet.trials.store.whole import copy_to_memory


def snapshot_trials(home: Store, who: str) -> bytes:
    """Return all trials of a database, as they are at one moment, as an SQLite file."""
    if not (names := home.names()):
        raise InvalidInputError(f"there are no trials in {home.called} to back up")
    note_backup(home, names, who)
    with home.whole() as here:
        return copy_to_memory(here)


def note_backup(home: Store, names: list[str], who: str) -> None:
    """Write into the journal of each trial who makes a backup."""
    for name in names:
        with home.session(name) as session:
            if session.look() is not None:
                ledger = Ledger(session)
                ledger.note(who, "backup", 0, None)
                ledger.write()
