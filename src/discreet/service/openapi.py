"""What the API is, for programs (OpenAPI 3.1) and as a page: made of the table of
endpoints and the typed structures, so that it says what is so.
"""

import re
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.reports.document import Document, Paragraph, Section, Table
from discreet.reports.html import render
from discreet.service.auth import ACTIONS, KEY, PUBLIC
from discreet.service.endpoints import ENDPOINTS, PREFIX, Endpoint
from discreet.service.limits import MOST_BYTES
from discreet.service.middleware import REPORT_POLICY, TYPE, Problem
from discreet.trials.names import MAX_NAME_LENGTH
from discreet.version import __version__

REF = "#/components/schemas/{name}"
DESCRIPTION = (
    "Trials as a service. Send a token as `Authorization: Bearer …`; what anyone may see of a "
    "published trial needs none. Outcomes go in and never come out. If the answer to a POST is "
    "lost, repeat it with the same `Idempotency-Key`: it is done only once. (For a token or a "
    "link the key counts for a day, for the token that it was sent with.) Names in paths are "
    "percent-encoded, including slashes; a name that is `.` or `..` gets a `=` in front."
)
PATH = {
    "name": "The name of the trial, percent-encoded.",
    "number": "The number of the token.",
}
REFUSALS = {
    "400": "The call cannot be read.",
    "401": "This needs a token, or the token that was sent is unknown, was revoked or has expired.",
    "403": "This token does not let its holder do this.",
    "404": "There is no such trial, or no such token.",
    "408": "The body did not arrive in time.",
    "409": "The record of the trial cannot be trusted.",
    "413": f"The body has more than {MOST_BYTES} bytes.",
    "422": "Refused, with the reason and what to do.",
    "429": "Too many calls; `Retry-After` says when to try again.",
    "500": "Something is wrong with the service.",
    "503": "The database cannot be used now, or the service is too busy: try again.",
}
"""Every call may be answered so, with a problem document (RFC 9457)."""


SHEET = (
    "th,td{text-align:left}"  # no cell is a number
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a4aeb8;"
    "--line:#353d45;--back:#14181c;color-scheme:dark}a{color:#7db8f2}"
    "th,td{border-bottom-color:var(--line)}}"
)
"""What the page has beside the style of reports, which are for paper and always light:
in the dark the colours of the service's other pages (static/style.css).
"""


def document() -> dict[str, Any]:
    """The whole description."""
    types = [one for row in ENDPOINTS for one in (row.result, row.body) if _structured(one)]
    found, components = msgspec.json.schema_components([*types, Problem], ref_template=REF)
    schemas = dict(zip(map(repr, types), found, strict=False))
    _open_tuples(components)
    paths: dict[str, Any] = {}
    for row in ENDPOINTS:
        paths.setdefault(f"{PREFIX}{row.path}", {})[row.method.lower()] = _operation(row, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "discreet", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {status: _refusal(words) for status, words in REFUSALS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _open_tuples(schema: Any) -> None:
    """Leave out `"items": false` of tuples, whose lengths are limited anyway: a boolean
    is a schema of JSON, and many generators of clients do not know it.
    """
    if isinstance(schema, dict) and schema.get("items") is False:
        del schema["items"]
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            _open_tuples(part)


def _structured(type: Any) -> bool:
    return type not in (None, str, bytes)


def _operation(row: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": row.operation,
        "tags": [row.path.split("/")[1]],
        "summary": row.help,
        "description": f"For: {', '.join(roles_of(row))}.",
        "security": [{"token": []}, *([{}] if row.action in PUBLIC else [])],
        "parameters": _parameters(row),
        "responses": {
            "200": {"description": row.help, "content": {row.media: _given(row, schemas)}},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in REFUSALS},
        },
    }
    if row.body is not None:
        content = {"application/json": {"schema": schemas[repr(row.body)]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _given(row: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    if _structured(row.result):
        return {"schema": schemas[repr(row.result)]}
    return {"schema": {"type": "string"}} if row.result is str else {}


def _parameters(row: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "description": PATH[name], "schema": text}
        for name in re.findall(r"{(\w+)}", row.path)
    ]
    found += [
        {"name": name, "in": "query", "description": words, "schema": {"type": "string"}}
        for name, words in row.query
    ]
    if row.method == "POST":
        key = {
            "name": KEY.title(),
            "in": "header",
            "schema": {**text, "maxLength": MAX_NAME_LENGTH},
        }
        words = (
            "A text of your own for this request: repeated with the same text, it is done only "
            "once."
        )
        found.append({**key, "description": words})
    if row.media == "text/event-stream":
        seen = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}
        found.append({**seen, "description": "The id of the last event that was received."})
    return found


def _refusal(words: str) -> dict[str, Any]:
    return {
        "description": words,
        "content": {TYPE: {"schema": {"$ref": REF.format(name=Problem.__name__)}}},
    }


def roles_of(row: Endpoint) -> list[str]:
    """Who may call it, in words."""
    found = sorted(ACTIONS[row.action])
    return [*found, *(["anyone, of a published trial"] if row.action in PUBLIC else [])]


# --- the page -------------------------------------------------------------------------


def docs_page(described: dict[str, Any]) -> str:
    """The same for people: one file, no script, no network."""
    rows = [_row(row) for row in ENDPOINTS]
    sections = [
        Section("How to call it", [Paragraph(DESCRIPTION.replace("`", "")), Paragraph(_example())]),
        Section(
            "Calls",
            [
                Table(
                    ["method", "path", "what", "takes", "gives", "for"],
                    rows,
                    words=["what", "takes", "gives", "for"],
                )
            ],
        ),
        Section(
            "Refusals",
            [
                Paragraph(
                    "As problem documents (RFC 9457): type, title, status, and detail, which "
                    "says what to do."
                ),
                Table(["status", "means"], list(REFUSALS.items()), words=["means"]),
            ],
        ),
    ]
    for name, schema in sorted(described["components"]["schemas"].items()):
        sections.append(Section(name, _fields(schema)))
    lead = "Everything a trial can do, over HTTP."
    text = render(Document("The API of discreet", sections, lead))
    return text.replace("</style>", f"{SHEET}</style>", 1)


def _example() -> str:
    return (
        f'For instance: curl -H "Authorization: Bearer $DISCREET_TOKEN" -H "Idempotency-Key: '
        f'monday-1" -d \'{{"n": 1}}\' http://127.0.0.1:8642{PREFIX}/trials/dose/ask'
    )


def _row(row: Endpoint) -> list[str]:
    said = "".join(f" ?{name}= {words}" for name, words in row.query)
    takes = "–" if row.body is None else row.body.__name__
    gives = _shown(row.result) if _structured(row.result) else row.media
    told = [f"{row.help}{said}", takes, gives, ", ".join(roles_of(row))]
    return [row.method, f"{PREFIX}{row.path}", *told]


def _shown(type: Any) -> str:
    """A type without the modules of its parts."""
    name = str(getattr(type, "__name__", type))
    parts = ", ".join(map(_shown, get_args(type)))
    return f"{name}[{parts}]" if parts else name


def _fields(schema: dict[str, Any]) -> list[Paragraph | Table]:
    needed = schema.get("required", [])
    rows = [
        [name, _kind(one), "" if name in needed else _usual(one)]
        for name, one in schema.get("properties", {}).items()
    ]
    words = Paragraph(schema.get("description", ""))
    return [words, Table(["field", "kind", "if left out"], rows)] if rows else [words]


def _usual(schema: dict[str, Any]) -> str:
    return msgspec.json.encode(schema.get("default")).decode()


def _kind(schema: dict[str, Any]) -> str:
    """What a field holds, in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema.get("type") == "array":
        items = schema.get("items") or schema.get("prefixItems", [{}])[0]
        return f"list of {_kind(items)}"
    return str(schema.get("type", "anything"))


# --- served ---------------------------------------------------------------------------


def routes() -> list[Route]:
    """The description, for anyone: it holds nothing of trials."""
    described = document()
    text, shown = msgspec.json.encode(described), docs_page(described)

    async def for_programs(_: Request) -> Response:
        return Response(text, media_type="application/json")

    async def for_people(_: Request) -> Response:
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(shown, headers=headers, media_type="text/html")

    return [Route(f"{PREFIX}/openapi.json", for_programs), Route("/api/docs", for_people)]
