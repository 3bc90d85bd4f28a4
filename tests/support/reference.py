"""Reference values (computed at 30 digits, see the file's `_about`)."""

import json
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent.parent / "assets"
REFERENCE: dict[str, Any] = json.loads((ASSETS / "theory.json").read_text())
INSTANCES: dict[str, Any] = REFERENCE["instances"]
SCALARS: dict[str, Any] = REFERENCE["scalars"]
LEVELS = [(name, epsilon) for name, row in INSTANCES.items() for epsilon in row["eps"]]
