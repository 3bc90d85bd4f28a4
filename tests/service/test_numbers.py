"""Numbers in a browser: a float is the same fraction as in Python, and written the
same.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from playwright.sync_api import Page

EDGES = [
    *(0.0, -0.0, 1.0, -2.5, 0.1, 0.0001, 9.9999e-5, 1e-5, 1e15, 123456789012345.6, 2.0**53),
    *(9999999999999998.0, 1e16, 1.5e16, 1e17, 1e20, 1e21, 1e22, 1e100, 1.7976931348623157e308),
    *(5e-324, 2.2250738585072014e-308, 1e-7, 1e-6, math.pi, 1 / 3, 1e23, 9.5e-100),
]
CODE = """async (texts) => {
  const { exact, written } = await import("/numbers.js");
  const shown = (one) => [written(one), ...exact(one).map(String)].join(" ");
  return texts.split(" ").map(Number).map(shown).join("\\n");
}"""


def test_a_float_is_written_and_taken_apart_as_in_python(script_page: "Page") -> None:
    """Of any size: 5000 patterns of bits, and the edges of every form."""
    bits = np.random.default_rng(1).integers(0, 2**63, 5000, dtype=np.uint64)
    drawn = bits.view(np.float64)
    plain = np.random.default_rng(2).random(1000) * 10.0 ** np.arange(-20, 30).repeat(20)
    floats = [*EDGES, *drawn[np.isfinite(drawn)].tolist(), *plain.tolist()]
    found = script_page.evaluate(CODE, " ".join(map(repr, floats)))
    wanted = ["{!r} {} {}".format(one, *one.as_integer_ratio()) for one in floats]
    assert found.split("\n") == wanted


def test_what_is_no_number_is_no_fraction(script_page: "Page") -> None:
    code = """async () => {
      const { exact } = await import("/numbers.js");
      return [NaN, Infinity, -Infinity].map((one) => {
        try { return exact(one); } catch (error) { return error.message; }
      });
    }"""
    assert script_page.evaluate(code) == ["Only a finite number is a fraction."] * 3
