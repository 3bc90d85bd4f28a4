"""What is wrong with a database, and what to do about it."""

BUSY = "somebody else is using it: try again"
READ_ONLY = "it is read-only: check the permissions of the file and its folder"
NOT_OPENED = "it cannot be opened: check that the folder exists and may be written to"
FULL = "the disk is full: make room and try again"
NOT_WRITTEN = "the disk cannot be written: check it (its quota, too) and try again"
FOREIGN = "it is not a database of trials: give another file"
DAMAGED = "it is damaged: restore a backup, and open it with the last head that you noted"
REFUSED_USER = "the server refused the user: check its name, password and rights"
CAME_BETWEEN = "another transaction came in between: try again"
OVERLOADED = "the server is out of connections or memory: try again later"
ENDED = "the server ended the connection: check that it is running, and try again"
NO_TRIALS = "there are no trials in {}: check the url, or create one there first"
OTHER_VERSION = (
    "its tables are of version {}, and this version of discreet works with version {} only: use "
    "the discreet that made them, or another database"
)
GONE = (
    "the file was removed or renamed while the trial was open; nothing was changed. Put it "
    "back, or restore a backup and open it with the last head that you noted"
)
REPLACED = (
    "another file was put in its place while this was being written, and it is not known "
    "whether this was done: look at the status, with the last head that you noted"
)
EMPTY = (
    "the file is empty: if somebody copies it there, wait until that is done; otherwise restore a "
    "backup and open it with the head that you know"
)
FOREIGN_LOG = (
    "another file was put in its place, but the log beside it, whose name ends with -wal, is "
    "still that of the one before: put that one back, or remove the log too, and open the trial "
    "with the last head that you noted"
)
UNREACHABLE = (
    "the server cannot be reached, or refuses connections: check that it is running, and check "
    "the address, user and password"
)
UNSURE = (
    "it is not known whether this was done: tell outcomes again (that is safe), and repeat an ask "
    "with its request key"
)
