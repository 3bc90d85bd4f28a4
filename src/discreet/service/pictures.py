"""Pictures for pages that allow no styles but those of our own sheet."""

import re

STYLE_SHEET = re.compile(r"<style\b[^>]*>.*?</style>", re.DOTALL)
TAG = re.compile(r"<\w[^<>]*>")
STYLE = re.compile(r'\sstyle="([^"]*)"')
FONT = re.compile(r"(?:(?P<weight>bold|\d+)\s+)?(?P<size>[\d.]+px)\s+(?P<family>.+)")
KNOWN = re.compile(
    r"fill|fill-opacity|stroke|stroke-width|stroke-opacity|stroke-dasharray|stroke-dashoffset|"
    r"stroke-linecap|stroke-linejoin|opacity|font-size|font-family|font-weight|text-anchor"
)
"""Properties that SVG takes as attributes too."""
LINES = ' stroke-linejoin="round" stroke-linecap="butt"'
"""What the sheet in matplotlib's pictures says of all lines."""


def without_styles(drawing: str) -> str:
    """A drawing with attributes in place of styles, which our policy forbids in a page;
    and without its white ground, so that it stands on a dark page as well.
    """
    bare = STYLE_SHEET.sub("", drawing).replace("<svg", f"<svg{LINES}")
    return TAG.sub(lambda tag: STYLE.sub(_attributes, tag[0]), bare)


def _attributes(style: re.Match[str]) -> str:
    return "".join(map(_attribute, _properties(style[1])))


def _properties(text: str) -> list[tuple[str, str]]:
    pairs = [part.split(":", 1) for part in text.split(";") if ":" in part]
    found = list[tuple[str, str]]()
    for name, value in ((name.strip(), value.strip()) for name, value in pairs):
        font = FONT.fullmatch(value) if name == "font" else None
        if font is None:
            found.append((name, value))
            continue
        parts = {"font-size": font["size"], "font-family": font["family"]}
        found += [*parts.items(), *([("font-weight", font["weight"])] if font["weight"] else [])]
    return found


def _attribute(pair: tuple[str, str]) -> str:
    name, value = pair
    if not KNOWN.fullmatch(name):
        return ""
    ground = name == "fill" and value.lower() in ("#ffffff", "white")
    return f' {name}="{"none" if ground else value}"'
