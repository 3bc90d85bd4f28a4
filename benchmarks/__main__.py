"""Print ratios within one run, and how the cost grows: `make bench`, or with the names of
some benchmarks `python -m benchmarks store service`. Nothing here asserts a time.
"""

import sys

from benchmarks import (
    bench_crowds,
    bench_engine,
    bench_service,
    bench_store,
    bench_theory,
    bench_verify,
)

BENCHMARKS = {
    "theory": bench_theory.run,
    "engine": bench_engine.run,
    "store": bench_store.run,
    "verify": bench_verify.run,
    "crowds": bench_crowds.run,
    "service": bench_service.run,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
