"""Trials as a service: an API and pages in front of the store, for people who log in
with what they may do.
"""

from importlib.util import find_spec

from discreet.errors import MissingExtraError

LIBRARIES = (
    *("httptools", "jinja2", "msgspec", "prometheus_client", "python_multipart"),
    *("segno", "starlette", "uvicorn"),
)

for _library in LIBRARIES:
    if find_spec(_library) is None:
        raise MissingExtraError(f'the service needs {_library}: pip install "discreet[serve]"')
