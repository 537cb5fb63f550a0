"""What tests of the live mesh share."""

import pytest

from banditmesh.live import links


@pytest.fixture
def eager(monkeypatch):
    """Nodes that dial again at once: no test waits for pauses that grow to 30 s."""
    monkeypatch.setattr(links, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(links, "COURTESY", 0.05)
