"""Counts and durations of calls, for Prometheus; of trials and people nothing."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OTHER = "other"
"""The endpoint of calls that meant none: what was typed is not a label."""
METHODS = frozenset({"GET", "HEAD", "POST"})
LABELS = ("endpoint", "method", "status")


class _Took:
    """How long the calls of one endpoint and method took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Calls(Collector):
    """The calls that were answered. They are counted in the event loop's thread alone,
    and put into the words of Prometheus when it asks: a call is counted in no time.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, int], int] = {}
        """By endpoint, method and class of status: no more than there are."""
        self._took: dict[tuple[str, str], _Took] = {}

    def count(self, template: str, method: str, status: int, seconds: float) -> None:
        """Count a call."""
        about = (template or OTHER, method if method in METHODS else OTHER)
        kind = (*about, status // 100)
        self._calls[kind] = self._calls.get(kind, 0) + 1
        took = self._took.get(about)
        if took is None:
            took = self._took[about] = _Took()
        took.counts[bisect_left(BUCKETS, seconds)] += 1
        took.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """What Prometheus reads."""
        calls = CounterMetricFamily(
            "discreet_requests",
            "Calls that were answered, by the class of the status.",
            labels=LABELS,
        )
        for (endpoint, method, status), count in self._calls.items():
            calls.add_metric((endpoint, method, f"{status}xx"), count)
        yield calls
        seconds = HistogramMetricFamily(
            "discreet_request_seconds", "How long they took.", labels=LABELS[:2]
        )
        edges = [*map(str, BUCKETS), "+Inf"]
        for about, took in self._took.items():
            below = zip(edges, map(float, accumulate(took.counts)), strict=True)
            seconds.add_metric(about, list(below), took.seconds)
        yield seconds


class Metrics:
    """What one process has served."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._calls = Calls()
        self._registry.register(self._calls)
        self.count = self._calls.count

    def watch(self, name: str, says: str, look: Callable[[], float]) -> None:
        """Tell a number that goes up and down, as it is when Prometheus asks."""
        Gauge(name, says, registry=self._registry).set_function(look)

    def text(self) -> bytes:
        """What Prometheus reads."""
        return generate_latest(self._registry)
