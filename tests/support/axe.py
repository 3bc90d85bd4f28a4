"""What axe-core, an engine that checks pages for accessibility, finds in a page.

It is a tool of development, and no part of the project: `npm install --no-save
axe-core@4.14.0` puts it into node_modules, and the tests hand it to the browser.
"""

from pathlib import Path
from typing import Any

REQUIRED = "DISCREET_REQUIRE_AXE"
"""If this is set in the environment, a missing engine is an error."""
ENGINE = Path(__file__).parent.parent.parent / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html)]);
}"""


def load(page: Any) -> None:
    """Hand the engine to the page that is shown."""
    page.evaluate(ENGINE.read_text("utf-8"))


def violations(page: Any) -> list[str]:
    """What is wrong with that page; nothing, if all is well."""
    return [f"{id}: {words}: {nodes}" for id, words, nodes in page.evaluate(RUN)]
