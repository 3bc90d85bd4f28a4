"""A disk that takes longer to flush: every commit waits before it. Run as a module with
the seconds and a command of `discreet`, it is the command on such a disk; its clerk
works on the same disk.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from discreet.cli import main
from discreet.service import clerk, clerking
from discreet.trials.store.database import Store

CLERK = "clerk"


@contextmanager
def slow_disk(seconds: float) -> Iterator[None]:
    """Every commit of this process waits so long, until the block ends."""
    commit = Store._commit

    def late(store: Store, connection: Any) -> None:
        time.sleep(seconds)
        commit(store, connection)

    with patch.object(Store, "_commit", late if seconds else commit):
        yield


if __name__ == "__main__":
    seconds = sys.argv.pop(1)
    with slow_disk(float(seconds)):
        if sys.argv[1] == CLERK:
            sys.argv.pop(1)
            clerking.main()
        else:
            clerk.COMMAND = ("-m", "benchmarks.slow_disk", seconds, CLERK)
            main(prog_name="discreet")
