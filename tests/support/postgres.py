"""A PostgreSQL server of our own, for tests and benchmarks: made, started and thrown
away again.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from discreet.trials.store.grants import make_grants

REQUIRED = "DISCREET_REQUIRE_POSTGRES"
"""If this is set in the environment, a missing server is an error."""
ROLES = {kind: f"the-{kind}" for kind in ("owner", "manager", "site", "monitor")}
"""Users of the server by what they may do."""


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += Path("/usr/lib/postgresql").glob("*/bin")
    found = [
        folder
        for folder in folders
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists()
    ]
    return max(found, key=lambda folder: folder.parent.name.zfill(4)) if found else None


class Server:
    """A server that listens on a socket in its own folder. It refuses to be root, so
    root becomes `postgres`. It does not vacuum by itself: what is erased is gone when
    nobody looks at it any more, and nobody knows when it would look.
    """

    def __init__(self, folder: Path, fsync: bool) -> None:
        self.folder, self.fsync = folder, fsync
        self.places = 0
        self.roles_made = False
        folder.chmod(0o755)
        (folder / "data").mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(folder / "data", "postgres")
        self.run(
            "initdb",
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
            self.data,
        )
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def run(self, program: str, *arguments: str) -> None:
        found = programs()
        assert found is not None
        command = [str(found / program), *arguments]
        user: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []}
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **(user if os.getuid() == 0 else {}),
        )
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        settings = (
            f"-c listen_addresses= -c unix_socket_directories={self.folder} -c max_connections=60"
            " -c max_prepared_transactions=2 -c autovacuum=off"
        )
        settings += "" if self.fsync else " -c fsync=off"
        self.run(
            "pg_ctl", "start", "-w", "-D", self.data, "-l", str(self.folder / "log"), "-o", settings
        )

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.data)

    def new_url(self) -> str:
        """The address of an empty place: a schema of its own, made quicker than a
        database.
        """
        name = self._new_name()
        with psycopg.connect(self.url_of("postgres", name), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return self.url_of("postgres", name)

    def granted(self) -> dict[str, str]:
        """The addresses of a new place for its owner and for the roles of each kind,
        with the tables and rights of the script for administrators; nobody of them is a
        superuser.
        """
        if not self.roles_made:
            made = "".join(f'CREATE ROLE "{role}" LOGIN;' for role in ROLES.values())
            owns = f'GRANT CREATE ON DATABASE postgres TO "{ROLES["owner"]}"'
            self.psql("postgres", "-c", made + owns)
            self.roles_made = True
        name, script = self._new_name(), self.folder / "grants.sql"
        managers, sites, monitors = ([ROLES[kind]] for kind in ("manager", "site", "monitor"))
        script.write_text(make_grants(managers, sites, monitors, schema=name))
        script.chmod(0o644)
        self.psql(ROLES["owner"], "-v", "ON_ERROR_STOP=1", "-f", str(script))
        return {kind: self.url_of(role, name) for kind, role in ROLES.items()}

    def psql(self, user: str, *arguments: str) -> None:
        address = ("-h", str(self.folder), "-U", user, "-d", "postgres")
        self.run("psql", *address, "-q", *arguments)

    def url_of(self, user: str, place: str) -> str:
        return f"postgresql://{user}@/postgres?host={self.folder}&options=-csearch_path%3D{place}"

    def _new_name(self) -> str:
        self.places += 1
        return f"place{self.places}"


@contextmanager
def server(fsync: bool = False) -> Iterator[Server]:
    """A running server. Without fsync a power cut could lose data; a killed client can
    not.
    """
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        made = Server(Path(folder), fsync)
        try:
            yield made
        finally:
            made.stop()
