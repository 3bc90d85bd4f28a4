"""A disk that takes longer to flush: every commit waits before it. Run as a module with
the seconds and a command of `discreet`, it is the command on such a disk.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from discreet.cli import main
from discreet.trials.store.database import Database


@contextmanager
def slow_disk(seconds: float) -> Iterator[None]:
    """Every commit of this process waits so long, until the block ends."""
    commit = Database._commit

    def late(store: Database, connection: Any) -> None:
        time.sleep(seconds)
        commit(store, connection)

    with patch.object(Database, "_commit", late if seconds else commit):
        yield


if __name__ == "__main__":
    with slow_disk(float(sys.argv.pop(1))):
        main(prog_name="discreet")
