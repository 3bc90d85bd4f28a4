"""A trial that is driven by `discreet trial …`, with the methods of `Trial`."""

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from click.testing import CliRunner

from discreet.cli import main
from discreet.errors import InvalidInputError
from discreet.trials.status import AskResult, Assignment, OpenAssignment, TellResult


class CommandTrial:
    """A trial whose every call is one command with --json."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name

    @classmethod
    def create(cls, url: str, name: str, arms: Sequence[str], **settings: Any) -> "CommandTrial":
        """Create a trial by `discreet trial create`; settings are its options."""
        trial = cls(url, name)
        words = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
        trial._run("create", f"--arms={','.join(arms)}", *words)
        return trial

    def _run(self, command: str, *words: str, input: str | None = None) -> Any:
        arguments = ["trial", command, self.name, f"--url={self.url}", "--json", *words]
        result = CliRunner().invoke(main, arguments, input=input)
        if result.exit_code != 0:
            raise InvalidInputError(result.stderr or repr(result.exception))
        return json.loads(result.stdout)

    def ask(
        self,
        n: int | None = None,
        participants: Sequence[str] | None = None,
        site: str | None = None,
        key: str | None = None,
    ) -> AskResult:
        words = [] if n is None else [f"--count={n}"]
        words += [] if participants is None else ["--participants=-"]
        words += [] if site is None else [f"--site={site}"]
        words += [] if key is None else [f"--key={key}"]
        found = self._run(
            "ask", *words, input=None if participants is None else "\n".join(participants)
        )
        rows = tuple(Assignment(**row) for row in found["assignments"])
        flags = {key: found[key] for key in ("waiting", "stopped", "middle_level", "paused")}
        return AskResult(rows, not_assigned=tuple(found["not_assigned"]), **flags)

    def tell(self, id: str, outcome: float) -> TellResult:
        return _told(self._run("tell", id, str(outcome)))

    def tell_many(self, outcomes: Mapping[str, float]) -> TellResult:
        lines = "\n".join(f"{id},{outcome}" for id, outcome in outcomes.items())
        return _told(self._run("tell", "--csv=-", input=lines))

    def amend(self, id: str, outcome: float) -> None:
        self._run("amend", id, str(outcome))

    def miss(self, id: str) -> TellResult:
        return _told(self._run("miss", id))

    def reissue(self, id: str) -> Assignment:
        return Assignment(**self._run("reissue", id))

    def open_assignments(self, site: str | None = None) -> list[OpenAssignment]:
        words = [] if site is None else [f"--site={site}"]
        return [OpenAssignment(**row) for row in self._run("open", *words)["open"]]

    def manage(self, action: str, reason: str, about: str | int | None = None) -> None:
        words = [] if about is None else [str(about)]
        self._run("manage", action, *words, f"--reason={reason}", "--yes")

    def expire(self) -> int:
        return int(self._run("expire")["released"])

    def status(self) -> Any:
        return _as_object(self._run("status"))

    def transcript(self) -> Any:
        return self._run("transcript")

    def verify(self, head: str | None = None) -> Any:
        words = [] if head is None else [f"--head={head}"]
        return _as_object(self._run("verify", *words))

    def audit_trail(self) -> list[Any]:
        return [_as_object(row) for row in self._run("audit-trail")["audit_trail"]]

    def unblind(self, id: str, reason: str) -> str:
        return str(self._run("unblind", id, f"--reason={reason}")["arm"])

    def list_codes(self) -> Any:
        return self._run("codes")["codes"]

    def close(self) -> None:
        pass


def _told(found: dict[str, Any]) -> TellResult:
    return TellResult(found["accepted"], tuple(found["already_told"]), tuple(found["late"]))


def _as_object(document: Any) -> Any:
    """Turn a JSON document into objects with attributes."""
    if isinstance(document, dict):
        return SimpleNamespace(**{key: _as_object(value) for key, value in document.items()})
    return [_as_object(one) for one in document] if isinstance(document, list) else document
