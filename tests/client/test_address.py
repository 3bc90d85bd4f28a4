"""Addresses of services, tokens, and what is loaded for them."""

import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet import InvalidInputError, RemoteTrial, StoreError, Trial, bet_se
from discreet.client.address import (
    ServiceAddress,
    is_remote,
    locate_trial,
    parse_address,
    read_token,
)
from discreet.client.http import ApiRequest, HttpClient, _lost, _options
from discreet.trials.names import quote_name
from tests.support.remote import far_away

HOST = "https://trial.example.org"
TOKEN = "discreet_AbC-123_xyz"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (HOST, (HOST, None)),
        (f"{HOST}/", (HOST, None)),
        (f"{HOST}:8443/t/dose", (f"{HOST}:8443", "dose")),
        (f"{HOST}/trials/t/a%2Fb%20c", (f"{HOST}/trials", "a/b c")),
        ("http://localhost:8000/t/dose", ("http://localhost:8000", "dose")),
        ("http://127.0.0.2/x/", ("http://127.0.0.2/x", None)),
        ("http://[::1]:80", ("http://[::1]:80", None)),
    ],
)
def test_addresses(url: str, found: tuple[str, str | None]) -> None:
    assert is_remote(url)
    assert parse_address(url) == found


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://trial.example.org", "unencrypted"),
        ("http://192.168.0.7:80/t/dose", "unencrypted"),
        ("http://localhost.example.org", "unencrypted"),
        ("https://me:secret@trial.example.org", "not a name or password"),
        (f"https://{TOKEN}@trial.example.org", "not a name or password"),
        ("https://", "no address of a service"),
        ("https://host:port", "no address of a service"),
        ("https://[::1", "no address of a service"),
        (f"{HOST}?token=secret", "no address of a service"),
        (f"{HOST}#secret", "no address of a service"),
    ],
)
def test_addresses_that_are_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as found:
        Trial.open(url, "dose", token=TOKEN)
    assert "secret" not in str(found.value)
    assert TOKEN not in str(found.value)


def test_names_beside_addresses() -> None:
    assert locate_trial(f"{HOST}/t/dose", None)[1] == "dose"
    assert locate_trial(f"{HOST}/t/dose", "dose")[1] == "dose"
    for url, name in ((f"{HOST}/t/dose", "other"), (HOST, None), (HOST, 5), (f"{HOST}/t/", None)):
        with pytest.raises(InvalidInputError):
            locate_trial(url, name)
    for name in ("a/b", "..", ".", "%2F", "ü ?#"):
        assert parse_address(f"{HOST}/t/{quote_name(name)}") == (HOST, name)
        assert not set(quote_name(name)) & set("/?#")


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISCREET_TOKEN", "DISCREET_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert read_token() is None
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("DISCREET_TOKEN_FILE", str(file))
    assert read_token() == TOKEN
    monkeypatch.setenv("DISCREET_TOKEN", "other")
    assert (read_token(), read_token(f" {TOKEN} ")) == ("other", TOKEN)
    monkeypatch.delenv("DISCREET_TOKEN")
    for wrong in ("two words", "", "a\nb", "ü", "x" * 501):
        file.write_text(wrong)
        with pytest.raises(InvalidInputError, match="a single word") as found:
            read_token()
        assert not wrong or wrong not in str(found.value)
        with pytest.raises(InvalidInputError, match="a single word"):
            read_token(wrong)
    file.unlink()
    with pytest.raises(InvalidInputError, match="DISCREET_TOKEN_FILE"):
        read_token()
    with pytest.raises(InvalidInputError, match="a single word"):
        read_token(5)


def test_no_token_is_shown() -> None:
    way = ServiceAddress(HOST, TOKEN, None, 60.0)
    assert TOKEN not in f"{way!r} {way}"


@pytest.mark.parametrize("patience", [-1, "5", None, True, float("nan"), 1e9])
def test_patience(patience: Any) -> None:
    with pytest.raises(InvalidInputError, match="patience"):
        RemoteTrial.open(HOST, "dose", token="x", patience=patience)


def test_certificates_are_always_checked(tmp_path: Path) -> None:
    assert _options(ServiceAddress(HOST, None, None, 1.0))["verify"] is True
    wrong = tmp_path / "none.pem"
    wrong.write_text("nothing")
    for ca in (wrong, tmp_path / "absent.pem"):
        with pytest.raises(InvalidInputError, match="certificates"):
            RemoteTrial.open(HOST, "dose", token="x", ca=str(ca))
    plain = _options(ServiceAddress("http://localhost", None, None, 1.0))
    assert (plain["trust_env"], plain["follow_redirects"]) == (False, False)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Of an authority of one's own, for this machine."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl is installed")
    files = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    names = "subjectAltName=IP:127.0.0.1"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext {names}".split()
    subprocess.run(
        [program, *words, "-out", files[0], "-keyout", files[1]], capture_output=True, check=True
    )
    return files


def test_an_authority_of_ones_own(
    certificate: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with far_away(f"sqlite:///{tmp_path}/trial.db", certificate) as far:
        assert far.base.startswith("https://")
        monkeypatch.setenv("DISCREET_TOKEN", far.secret)
        sent, send = list[str](), HttpClient._send

        def noted(client: HttpClient, request: ApiRequest, *rest: Any) -> Any:
            sent.append(request.path)
            return send(client, request, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(HttpClient, "_send", noted)
            with pytest.raises(StoreError, match="certificate cannot be trusted") as refused:
                Trial.open(far.base, "dose")
        assert "later" not in str(refused.value)
        assert len(sent) == 1, "it was not tried again"
        assert far.calls == [], "and no token was sent"
        settings: Any = {"arms": ["a", "b"], "strategy": bet_se(0.1, 1.0), "max_participants": 100}
        trial = Trial.create(far.base, "dose", **settings, ca=certificate[0])
        assert len(trial.ask(2).assignments) == 2
        assert Trial.open(trial.url, ca=certificate[0]).status().participants == 2
        trial.close()


def test_a_wrong_certificate_is_not_tried_again() -> None:
    import httpx

    error = httpx.ConnectError("refused")
    assert (_lost(error).reached, _lost(error).again) == (False, True)
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    assert (_lost(error).reached, _lost(error).again) == (False, False)
    assert _lost(httpx.ReadTimeout("late")).reached
    assert _lost(httpx.RemoteProtocolError("gone")).reached


def test_neither_database_nor_noise_is_loaded() -> None:
    """Nor are the kernels: a clerk's machine needs httpx, and the base."""
    code = (
        "import sys; sys.modules['sqlalchemy'] = sys.modules['opendp'] = None\n"
        "import discreet; discreet.RemoteTrial\n"
        "import discreet.client.trial\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "httpx" in loaded
    assert not {"numba", "polars", "matplotlib", "starlette"} & set(loaded)
