"""The chain of a record, checked in a browser: what Python wrote holds, and no change
of it does.
"""

import hashlib
import json
import math
import random
import re
import struct
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from discreet import InvalidInputError, RoundedWarning, Trial, bet_se, verify_transcript
from discreet.trials.listing import list_trials
from discreet.trials.protocol import canonical, digest
from discreet.trials.record import SALT, Head, chain_hash
from discreet.trials.transcript import read_transcript
from tests.support.browser import call

if TYPE_CHECKING:
    from playwright.sync_api import Page

ASSETS = Path(__file__).parent.parent / "assets"
ODD = [
    'a "quoted" \\ arm\\n',
    "😀 pill",
    "q\u0307\u0323 e\u0301",
    "\uffee ﬀ <b>&amp;</b>",
    "नि\u200dष 5 µg/\u00a0kg",
]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')


def published(transcript: dict[str, Any]) -> str:
    """As `discreet trial transcript` writes it."""
    return json.dumps(transcript, indent=1, ensure_ascii=False) + "\n"


def checked(page: "Page", texts: list[str], known: str | None = None) -> list[dict[str, Any]]:
    """What the script says of each."""
    code = """async ([texts, known]) => {
      const { checkChain } = await import("/chain.js");
      return JSON.stringify(JSON.parse(texts).map((text) => checkChain(text, known)));
    }"""
    found: list[dict[str, Any]] = json.loads(page.evaluate(code, [json.dumps(texts), known]))
    return found


def holding(transcript: dict[str, Any]) -> dict[str, Any]:
    """What must be said of one that was not changed."""
    total, head = len(transcript["events"]), transcript["status"]["head"]
    rest = {"total": total, "head": head, "protocol": True, "problem": None}
    return {"holds": True, "events": total, **rest}


def in_python(transcript: dict[str, Any]) -> int:
    """How many events are in order, by discreet's own functions."""
    begin = digest(canonical(transcript["protocol"]))
    head, salts = Head(0, begin), set[str]()
    for said in transcript["events"]:
        seq, kind, hash = (said.get(name) for name in ("seq", "kind", "hash"))
        body = {name: part for name, part in said.items() if name not in ("seq", "kind", "hash")}
        linked = hash == chain_hash(head.hash, seq, kind, canonical(body))
        named = {"protocol": begin, "salt": body.get("salt")}
        first = head.seq > 0 or (kind, body) == ("created", named)
        if type(seq) is not int or seq != head.seq + 1 or not linked or not first:
            break
        salt = body.get("salt")
        if not isinstance(salt, str) or not SALT.fullmatch(salt) or salt in salts:
            break
        salts.add(salt)
        head = Head(seq, hash)
    return head.seq


# --- what holds -----------------------------------------------------------------------


def stored(folder: Path) -> Iterator[dict[str, Any]]:
    """The transcripts of every trial in the assets that can be continued."""
    copy = folder / "trials.db"
    copy.write_bytes((ASSETS / "pins" / "trials.db").read_bytes())
    copy.chmod(0o600)
    url = f"sqlite:///{copy}"
    for listed in list_trials(url):
        trial = Trial.open(url, listed.name)
        yield trial.transcript()
        trial.close()


def test_stored_and_published_records_hold(script_page: "Page", tmp_path: Path) -> None:
    transcripts = list(stored(tmp_path))
    assert len(transcripts) > 25
    found = checked(script_page, [published(one) for one in transcripts])
    assert found == [holding(one) for one in transcripts]
    assert [one["events"] for one in found] == [in_python(one) for one in transcripts]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A trial of which everything is named oddly, with floats and a manager in its
    record.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('odd')}/trials.db"
    sites = ['"\\u0041"', "Çeşme 🏥", "/\\/"]
    options: dict[str, Any] = {"sites": sites, "range": (-0.1, 1e-05), "deadline": 12345.678}
    strategy = bet_se(0.05, 0.1 + 0.2)
    with pytest.warns(RoundedWarning):
        trial = Trial.create(url, f"x{ODD[0]}{ODD[1]}", ODD, strategy, 1000, **options)
    for site in sites:
        for one in trial.ask(2, site=site).assignments:
            trial.tell(one.id, 0.0)
    trial.manage("close-site", 'so "odd" \\ 😀', sites[1])
    trial.manage("lower-maximum", "7.0 is not 7", 900)
    trial.manage("stop", "end \\u0000 \\")
    transcript = trial.transcript()
    trial.close()
    return transcript


def test_odd_names_hold_however_the_file_is_written(script_page: "Page", odd: Any) -> None:
    """Escaped or not, with any spaces and order of names, and with numbers written in
    another way: what Python reads as the same is the same.
    """
    assert verify_transcript(odd).intact
    text = published(odd)
    texts = [
        *(text, "\ufeff" + text, json.dumps(odd), json.dumps(odd, sort_keys=True, indent="\t")),
        json.dumps(odd, ensure_ascii=False, separators=(" ,\r\n", "\t: ")),
        json.dumps(turned(odd)),
        text.replace("/", "\\/"),
        text.replace("1e-05", "0.000010").replace("-0.1,", "-1.0E-1,").replace(": 0,", ": -0,"),
        re.sub(r"\\u([0-9a-f]{4})", lambda found: found[0].upper().replace("U", "u"), text),
    ]
    assert {canonical(json.loads(one.lstrip("\ufeff"))) for one in texts} == {canonical(odd)}
    assert len(set(texts)) == len(texts) - 1
    assert checked(script_page, texts) == [holding(odd)] * len(texts)


def turned(value: Any) -> Any:
    """The same with names in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(value[name]) for name in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


ALPHABET = [
    *(chr(one) for one in range(1, 0x30)),
    *'"\\/{}[]:,abAB\x7f\x80\xa0é\u0301\u200d\u2028\u2029\ud7ff\ue000\ufeff\uffee\uffff',
    *"\U00010000😀\U0010ffff",
]


CHOICES: list[list[Any]] = [
    [0.0, -0.0, 1.0, 1e16, 1e-5, 5e-324, 123456.0, 1e22, 0.1 + 0.2],
    [0, -1, 7, 2**53 + 1, -(10**40), 10**18],
    [True, False, None, [], {}],
]


def made_up(rng: random.Random, depth: int = 0) -> Any:
    """Any value that JSON has."""
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind == 0:
        (number,) = struct.unpack("d", rng.randbytes(8))
        return number if math.isfinite(number) else 0.5
    if kind < 4:
        return rng.choice(CHOICES[kind - 1])
    if kind == 4:
        return "".join(rng.choices(ALPHABET, k=rng.randrange(6)))
    if kind == 5:
        return [made_up(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {made_up_name(rng): made_up(rng, depth + 1) for _ in range(rng.randrange(8))}


def made_up_name(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(1, 4)))


def linked(protocol: dict[str, Any], bodies: list[dict[str, Any]], first: Any = None) -> Any:
    """A record that says these things, with the hashes that Python gives them."""
    begin = digest(canonical(protocol))
    says = [{"protocol": begin} if first is None else first, *bodies]
    says = [{"salt": f"{place:032x}", **body} for place, body in enumerate(says)]
    events, head = list[dict[str, Any]](), begin
    for seq, body in enumerate(says, start=1):
        kind = "created" if seq == 1 else f"k{seq}"
        head = chain_hash(head, seq, kind, canonical(body))
        events.append({"seq": seq, "kind": kind, **body, "hash": head})
    status = {"head": f"{len(events)}:{head}"}
    return {"protocol": protocol, "protocol_hash": begin, "events": events, "status": status}


def test_whatever_can_be_said_has_the_same_hash(script_page: "Page") -> None:
    """Every escape, code point, order of names and form of a number, many times."""
    rng = random.Random(11)
    texts, wanted = list[str](), list[Any]()
    for _ in range(60):
        bodies = [{made_up_name(rng): made_up(rng) for _ in range(4)} for _ in range(12)]
        transcript = linked({made_up_name(rng): made_up(rng) for _ in range(9)}, bodies)
        texts += [json.dumps(transcript), json.dumps(transcript, ensure_ascii=False, indent=1)]
        wanted += [holding(transcript)] * 2
    assert checked(script_page, texts) == wanted


def test_hashes_are_those_of_hashlib(script_page: "Page") -> None:
    texts = [
        *("ab" * 70)[:130],
        *("x" * length for length in range(260)),
        "é😀" * 5000,
        "0" * 10**6,
    ]
    code = """async (texts) => {
      const { sha256 } = await import("/sha256.js");
      return JSON.parse(texts).map(sha256).join(" ");
    }"""
    found = script_page.evaluate(code, json.dumps(texts)).split()
    assert found == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


# --- what does not --------------------------------------------------------------------


class Edit(NamedTuple):
    """One change of a transcript: other words from a place to another."""

    start: int
    end: int
    words: str

    def of(self, text: str) -> str:
        return text[: self.start] + self.words + text[self.end :]


def edits(text: str) -> Iterator[Edit]:
    """A change of every name, text, number and word of the protocol and the events."""
    for found in TOKEN.finditer(text, 0, text.index('\n "status": {')):
        for words in others(found[0]):
            yield Edit(found.start(), found.end(), words)


def as_json(text: str) -> Any:
    """What it says; None if it is no JSON any more."""
    with suppress(ValueError):
        return json.loads(text)
    return None


def others(token: str) -> list[str]:
    """What could stand there instead."""
    if token[0] == '"':
        return [token[:-1] + 'x"', f'"{token[2:]}' if len(token) > 2 else '"y"']
    if token in ("true", "false", "null"):
        return [{"true": "false", "false": "true", "null": "0"}[token], f'"{token}"']
    digit = re.search(r"[1-9]|0$|0(?=[.e])", token)
    assert digit is not None
    another = token[: digit.start()] + str(int(digit[0]) % 9 + 1) + token[digit.end() :]
    retyped = token.removesuffix(".0") if token.endswith(".0") else f"{token}.0"
    whole = [retyped] if "e" not in token and ("." not in token or token.endswith(".0")) else []
    return [another, f'"{token}"', *whole]


def test_every_change_is_found(script_page: "Page", odd: Any, tmp_path: Path) -> None:
    """A digit, a letter, a name, a hash, a type, at every place, with the number of
    events before it.
    """
    pinned = {one["protocol"]["name"]: one for one in stored(tmp_path)}
    code = """async ([text, edits]) => {
      const { checkChain } = await import("/chain.js");
      const apply = ([start, end, words]) => text.slice(0, start) + words + text.slice(end);
      return JSON.stringify(JSON.parse(edits).map((edit) => checkChain(apply(edit))));
    }"""
    for transcript in (odd, pinned["bet-se"]):
        text = json.dumps(transcript, indent=1)  # in ASCII, where places are those of the page
        made = list(edits(text))
        assert len(made) > 400
        found = json.loads(script_page.evaluate(code, [text, json.dumps(made)]))
        starts = [one.start() for one in re.finditer(r"\n  \{\n", text)]
        for edit, said in zip(made, found, strict=True):
            changed = as_json(edit.of(text))
            before = 0 if changed is None else max(bisect(starts, edit.start) - 1, 0)
            assert (said["holds"], said["events"]) == (False, before), edit
            assert said["problem"].endswith("."), edit
            if changed is not None and edit.start > starts[0]:
                assert in_python(changed) == before, edit


CHANGES: dict[str, Callable[[list[Any], int], list[Any]]] = {
    "dropped": lambda events, at: events[:at] + events[at + 1 :],
    "twice": lambda events, at: [*events[: at + 1], *events[at:]],
    "in another order": lambda events, at: [
        *events[:at],
        *reversed(events[at : at + 2]),
        *events[at + 2 :],
    ],
}


def test_events_that_are_dropped_moved_or_repeated_are_found(script_page: "Page", odd: Any) -> None:
    events = odd["events"]
    for name, change in CHANGES.items():
        places = range(len(events) - (name == "in another order"))
        texts = [published({**odd, "events": change(events, at)}) for at in places]
        found = checked(script_page, texts)
        assert not [one for one in found if one["holds"]], name
        assert [one["events"] for one in found] == [at + (name == "twice") for at in places], name
        assert all(one["protocol"] for one in found)


def test_other_beginnings_and_ends_are_found(script_page: "Page", odd: Any) -> None:
    begin = odd["protocol_hash"]
    more = linked(odd["protocol"], [], {"protocol": begin, "more": 1})
    other = linked(odd["protocol"], [], {"protocol": begin[::-1]})
    salt = odd["events"][0]["salt"]
    same = linked(odd["protocol"], [], {"protocol": begin, "salt": salt})
    assert same["events"] == odd["events"][:1]
    short = {**odd, "events": odd["events"][:-1]}
    none = {**odd, "events": []}
    anew = {**linked(odd["protocol"], []), "status": odd["status"]}
    found = checked(script_page, [published(one) for one in (more, other, short, none, anew)])
    assert [one["problem"] for one in found] == [
        *["The first event is not the one that names the protocol's hash."] * 2,
        "The record does not end where the status says.",
        "The record has no beginning.",
        "The record does not end where the status says.",
    ]


def test_a_record_goes_on_from_a_known_head(script_page: "Page", odd: Any) -> None:
    text = published(odd)
    for event in odd["events"]:
        (found,) = checked(script_page, [text], f"{event['seq']}:{event['hash']}")
        assert found == holding(odd)
    (found,) = checked(script_page, [text], f"2:{odd['events'][0]['hash']}")
    assert found["problem"] == "The record does not continue from the head that is known."


def test_what_is_no_transcript_is_said_to_be_none(
    script_page: "Page", odd: Any, tmp_path: Path
) -> None:
    """Python refuses all of these too."""
    text, file = json.dumps(odd), tmp_path / "transcript.json"
    status = json.dumps(odd["status"])
    wrong = [text.replace(status, one) for one in NOT_JSON]
    texts = ["", "[]", "{}", "0", text + "x", text + "{}", *wrong]
    texts += [text[:length] for length in range(0, len(text), 97)]
    for one in texts:
        file.write_text(one)
        with pytest.raises(InvalidInputError, match="not a transcript"):
            read_transcript(file)
    found = checked(script_page, texts)
    assert all(one["problem"].startswith("This is no transcript of a trial: ") for one in found)
    assert not [one for one in found if one["holds"] or one["events"]]


NOT_JSON = [
    *('{"a":1,"a":1}', '{"a":1,}', '{"a" 1}', '{"a"}', "{,}", '{a":1}', '{"a":}', "{1:1}"),
    *('{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}', '{"a":1e400}', '{"a":-1e999}'),
    *('{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":1e}', '{"a":0x1}', '{"a":--1}'),
    *('{"a":"\\x"}', '{"a":"\\u12g4"}', '{"a":"\n"}', '{"a":"\t"}', "{'a':1}", '{"a":"}'),
    *('{"a":tru}', '{"a":True}', '{"a":[1,]}', '{"a":[1 2]}', '{"a":[}', '{"a":1}}', "[]", "1"),
    '{"a":' + "9" * 5000 + "}",
    '{"a":' + "[" * 3000 + "]" * 3000 + "}",
    '{"a":1\u00a0}',
]


def test_half_a_character_is_no_text(script_page: "Page", odd: Any) -> None:
    """Python could not hash it either."""
    for half in ("\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\ud83d\\ud83d\\ude00"):
        text = json.dumps(odd).replace('"stop"', f'"{half}"')
        with pytest.raises(ValueError, match="surrogates not allowed"):
            in_python(json.loads(text))
        assert not verify_transcript(json.loads(text)).intact
        (found,) = checked(script_page, [text])
        assert found["problem"].endswith("half a character in it.")


def test_the_script_can_be_called_by_its_name(script_page: "Page", odd: Any) -> None:
    assert call(script_page, "chain.js", "checkChain", published(odd)) == holding(odd)
