"""Codes that a camera reads, as pictures in the page itself."""

import segno


def qr_picture(text: str) -> str:
    """The address of a picture that is all in the address: dark on white, with the
    quiet zone that cameras need, on dark pages too.
    """
    code = segno.make(text, error="m", micro=False)
    return str(code.svg_data_uri(dark="#000", light="#fff", border=4, omitsize=True))
