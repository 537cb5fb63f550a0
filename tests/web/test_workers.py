"""Workers: what they answer, what they say when they cannot, and that they end at once."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from banditmesh.web import workers
from banditmesh.web.choices import DEFAULTS
from banditmesh.web.workers import StoppedError, Worker, WorkError

ENDLESS = {**DEFAULTS, "network.name": "ring", "network.n": "6", "arms.n_arms": "4", "arms.per_agent": "2"}
ENDLESS |= {"protocols": "fwa(2)", "horizon": "1000000"}


async def begun(worker, *question):
    """A question that will not be answered, once its worker has told something."""
    told = asyncio.Event()
    asking = asyncio.create_task(worker.ask(*question, tell=lambda value: told.set()))
    await told.wait()
    return asking


def test_worker_answers_fails_in_a_line_and_ends_at_once(tmp_path, monkeypatch):
    async def live_through():
        worker = Worker()
        with pytest.raises(WorkError, match=r"must be a study's folder, got no manifest.json in it"):
            await worker.ask("study", str(tmp_path), {})
        with pytest.raises(WorkError, match="horizon must be an integer"):
            await worker.ask("simulate", {**ENDLESS, "horizon": "x"}, Path())
        with pytest.raises(WorkError, match="there are no results to take away"):
            await worker.ask("curves_csv")
        # `record` steps through rounds on the reference engine, so nothing is compiled for this test.
        asking = await begun(worker, "record", ENDLESS, Path(), "", None)
        with pytest.raises(WorkError, match="something else is still running"):
            await worker.ask("curves_csv")
        process = worker._process
        worker.stop()
        with pytest.raises(StoppedError):
            await asking
        process.join(workers.PATIENCE)
        assert process.exitcode == -signal.SIGKILL
        # It can be asked again, by a new process; one that is lost says so.
        asking = await begun(worker, "record", ENDLESS, Path(), "", None)
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(WorkError, match="ended unexpectedly"):
            await asking
        monkeypatch.setattr(workers, "MOST_WORKERS", 0)
        with pytest.raises(WorkError, match="0 workers are running, which is the most"):
            await worker.ask("curves_csv")

    workers.prepare()
    asyncio.run(live_through())
    assert not workers._running


def test_frames_that_are_told_at_a_time_are_bounded(monkeypatch):
    from banditmesh.web import desk

    monkeypatch.setattr(desk, "TELL_EVERY", 0.0)
    told = []
    chosen = {**ENDLESS, "horizon": "60"}
    answer = desk.Desk(told.append).record(chosen, Path(), "", None)
    frames = [frame for news in told[1:] for frame in news["frames"]]
    assert answer["round"] == 60
    assert [frame["round"] for frame in frames] == sorted({frame["round"] for frame in frames})
    monkeypatch.setattr(desk, "MOST_CHARACTERS", 1)
    small = []
    desk.Desk(small.append).record(chosen, Path(), "", None)
    assert all(len(news["frames"]) == 1 for news in small[1:])
    assert [frame for news in small[1:] for frame in news["frames"]] == frames
