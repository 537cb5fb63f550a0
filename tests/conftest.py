"""What all tests share: a deterministic hypothesis profile, a browser, and the engines that pass the same suite."""

import gc

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["browser"]

settings.register_profile(
    "banditmesh", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("banditmesh"), max_examples=50)
settings.load_profile("quick")

#: Files whose few tests take long. They come first, so that no worker is left with one of them at the end.
LONG = ("tests/test_kernel_cache", "tests/test_runner", "tests/test_examples", "tests/live/test_worlds")


# Collecting makes a million objects that all stay. Looking for garbage among them took a third of its time, in each
# worker, and what tests leave behind is found sooner if these are not looked at again.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    # Figures, parsers and simulated nodes are many objects, too: after every 700 new ones is too often.
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


# A new engine is added here, and then has to pass everything that takes `engine`.
ENGINES = ("reference", "compiled")


@pytest.fixture(scope="session", params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="session", params=["sound", "published"])
def rules(request):
    return request.param
