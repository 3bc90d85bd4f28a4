"""Transcripts as somebody would forge them who can compute a hash."""

from typing import Any

from discreet.trials.protocol import canonical, digest
from discreet.trials.record import link


def rechained(transcript: Any) -> Any:
    """With hashes that fit, as somebody would write them who can compute a hash."""
    previous = transcript["protocol_hash"] = digest(canonical(transcript["protocol"]))
    for event in transcript["events"]:
        body = {key: part for key, part in event.items() if key not in ("seq", "kind", "hash")}
        previous = event["hash"] = link(previous, event["seq"], event["kind"], canonical(body))
    transcript["status"]["head"] = f"{len(transcript['events'])}:{previous}"
    transcript["status"]["protocol_hash"] = transcript["protocol_hash"]
    return transcript
