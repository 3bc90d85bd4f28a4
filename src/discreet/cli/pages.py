"""The service's page of the demonstration's trial: served on this machine, looked at by
a browser if there is one, and stopped.
"""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.reports.browser import take_picture
from discreet.reports.terminal import say

SIZE = "1100,3600"
"""The page from its head to the record."""


def show_pages(url: str, name: str, folder: Path) -> None:
    """Publish the trial, take a picture of its page, and say how to look at it
    oneself.
    """
    with _served(url, name) as address:
        picture = _pictured(f"{address}/p/{name}", folder / "service.png")
    if picture is None:
        say(
            "There is no picture: neither chromium nor chrome was found, or it made none. The "
            "page was served for a moment."
        )
    else:
        say("The page was served for a moment, and a browser took a picture of it:")
        say(str(picture.absolute()), wrap=False)
    say(
        "To look at the trial in your own browser as its manager, run this command and open "
        "the link that it prints."
    )
    say(f"discreet serve --url {url}", wrap=False)


@contextmanager
def _served(url: str, name: str) -> Iterator[str]:
    """The address of a service of the trials, until it is left; the trial is
    published.
    """
    from discreet.service.home import Home
    from discreet.service.serve import Place, make_server, open_door

    place = Place(port=0)
    with open_door(place) as door, closing(Home(url, who="discreet demo")) as home:
        home.doors.publish(name, "discreet demo")
        server = make_server(home, place)
        thread = threading.Thread(target=server.run, args=([door],), name="service")
        thread.start()
        try:
            yield replace(place, port=door.getsockname()[1]).url
        finally:
            server.end()
            thread.join()


def _pictured(address: str, file: Path) -> Path | None:
    """A picture of a page, if there is a browser that makes one."""
    try:
        take_picture(address, file, SIZE)
    except DiscreetError:
        return None
    return file
