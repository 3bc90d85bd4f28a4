"""What `make bench` prints: ratios within one run, and how the cost grows. Nothing here
asserts a time.
"""

from benchmarks import (
    bench_crowds,
    bench_engine,
    bench_service,
    bench_store,
    bench_theory,
    bench_verify,
)

if __name__ == "__main__":
    bench_theory.run()
    bench_engine.run()
    bench_store.run()
    bench_verify.run()
    bench_crowds.run()
    bench_service.run()
