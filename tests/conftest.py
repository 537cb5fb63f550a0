"""What all tests share: a deterministic hypothesis profile, a browser, and the engines that pass the same suite."""

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["browser"]

settings.register_profile(
    "banditmesh", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("banditmesh")

# A new engine is added here, and then has to pass everything that takes `engine`.
ENGINES = ("reference", "compiled")


@pytest.fixture(scope="session", params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="session", params=["sound", "published"])
def rules(request):
    return request.param
