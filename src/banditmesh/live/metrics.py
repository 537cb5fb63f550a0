"""What Prometheus reads of a node: values are taken from the node when it is asked, and none is kept twice.

Only the lag of the event loop is measured here: a task sleeps for a while and looks how late it wakes up.

A scrape runs on the node's own event loop and must not hold it up, so series by arm are left out where there are more
than `MOST_ARMS` arms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from ..version import __version__

if TYPE_CHECKING:
    from .node import Node

#: The most arms that have series of their own.
MOST_ARMS: Final = 200
#: How often the loop's lag is measured, in seconds.
LAG_EVERY: Final = 0.25
LAG_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
