"""Files of reports: the HTML page, and with --pdf the same on paper."""

from collections.abc import Sequence

import click

from discreet.errors import InvalidInputError
from discreet.files import check_writable, same_file, write

pdf_option = click.option(
    "--pdf",
    type=click.Path(dir_okay=False),
    help="Also write the report as a PDF to this file. A browser prints it: Chromium, Chrome or "
    "Edge must be installed.",
)


def check_report(page: str | None, pdf: str | None, taken: Sequence[str] = ()) -> None:
    """Refuse a report that could not be drawn, printed or written, before the work is
    done, and files that are `taken` or named twice.
    """
    from discreet.reports import charts
    from discreet.reports.browser import require_browser

    if page is None and pdf is None:
        return
    charts.require_matplotlib()
    if pdf is not None:
        require_browser()
        check_writable(pdf, taken)
    if page is not None:
        check_writable(page, taken)
    if page is not None and pdf is not None and same_file(page, pdf):
        raise InvalidInputError("--pdf needs a file of its own: another option names that one")


def write_report(page: str | None, pdf: str | None, document: str) -> list[str]:
    """Write the page and its PDF, as far as they are wanted; the files that were
    written.
    """
    if page is not None:
        write(page, document)
    if pdf is not None:
        from discreet.reports.browser import write_pdf

        write_pdf(pdf, document)
    return [file for file in (page, pdf) if file is not None]
