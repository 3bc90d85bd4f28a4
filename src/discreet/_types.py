"""Types that many rooms use: arrays of one kind of number, and how work tells how far
it is.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Progress = Callable[[int, int], None]
"""Called now and then with how much is done, and of how much."""
Doing = Callable[[str], None]
"""Called with what is done next, in words."""
