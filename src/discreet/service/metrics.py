"""Counts and durations of calls, for Prometheus; of trials and people nothing."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OTHER = "other"
"""The endpoint of calls that meant none: what was typed is not a label."""
METHODS = frozenset({"GET", "HEAD", "POST"})


class Metrics:
    """What one process has served."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        labels = ("endpoint", "method", "status")
        self._calls = Counter(
            "discreet_requests",
            "Calls that were answered, by the class of the status.",
            labels,
            registry=self._registry,
        )
        self._seconds = Histogram(
            "discreet_request_seconds",
            "How long they took.",
            labels[:2],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        """Those of one endpoint, method and class of status: no more than there are."""
        self.under_way = Gauge(
            "discreet_requests_under_way", "Calls that are served now.", registry=self._registry
        )
        self.streams = Gauge(
            "discreet_streams", "Streams of events that are open.", registry=self._registry
        )

    def count(self, template: str, method: str, status: int, seconds: float) -> None:
        """Count a call."""
        about = (template or OTHER, method if method in METHODS else OTHER, f"{status // 100}xx")
        if about not in self._known:
            self._known[about] = (self._calls.labels(*about), self._seconds.labels(*about[:2]))
        calls, took = self._known[about]
        calls.inc()
        took.observe(seconds)

    def text(self) -> bytes:
        """What Prometheus reads."""
        return generate_latest(self._registry)
