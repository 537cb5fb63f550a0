"""The decision log: what is written, what is dropped, and what a table of it says."""

import json
import os
import threading
from collections import Counter

import pandas as pd
import pytest
from processes import NodeProcess, wait_until

import banditmesh as bm
from banditmesh.cli import main
from banditmesh.errors import FileError, InputError
from banditmesh.live import Ticket
from banditmesh.live.disk import decisions
from banditmesh.live.disk.decisions import DecisionLog, join, read, save, shortened


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_files_are_private_rotated_and_read_in_order(tmp_path):
    path = tmp_path / "decisions.jsonl"
    log = DecisionLog(path, n_bytes=100, n_files=3)
    for number in range(40):
        log.add({"kind": "choice", "n_lines": number, "text": "x" * 17})
    log.close()
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["decisions.jsonl", *(f"decisions.jsonl.{n}" for n in (1, 2, 3))]
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    assert all(file.stat().st_size <= 100 for file in tmp_path.iterdir())
    found = [line["n_lines"] for line in read(path, Counter())]
    assert found == list(range(found[0], 40))
    assert log.counters == {"decisions_written": 40}


def test_a_line_longer_than_a_file_has_one_of_its_own(tmp_path):
    log = DecisionLog(tmp_path / "log", n_bytes=100, n_files=2)
    for text in ("a", "b" * 300, "c"):
        log.add({"text": text})
    log.close()
    assert [lines_of(tmp_path / name)[0]["text"][0] for name in ("log.2", "log.1", "log")] == ["a", "b", "c"]


def test_what_does_not_fit_is_dropped_counted_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(decisions, "MAX_WAITING", 5)
    may_write = threading.Event()
    append = DecisionLog._append
    monkeypatch.setattr(DecisionLog, "_append", lambda self, data: may_write.wait() and append(self, data))
    log = DecisionLog(tmp_path / "log")
    log.add({"time": 0})
    while not log._lines.empty():  # the first is being written, and takes long
        pass
    for number in range(1, 20):
        log.add({"time": number})
    n_dropped = log.counters["decisions_dropped"]
    assert n_dropped >= 10
    may_write.set()
    log.close()
    found = lines_of(tmp_path / "log")
    assert [line["n_lines"] for line in found if line.get("kind") == "dropped"] == [n_dropped]
    assert log.counters["decisions_written"] == 20 - n_dropped == len(found) - 1


def test_a_disk_that_fails_costs_lines_and_nothing_else(tmp_path):
    folder = tmp_path / "later"
    log = DecisionLog(folder / "log")
    log.add({"time": 0})
    while not log.trouble:
        pass
    assert "No such file" in log.trouble
    folder.mkdir()
    log.add({"time": 1})
    log.close()
    assert lines_of(folder / "log") == [{"kind": "dropped", "n_lines": 1}, {"time": 1}]
    assert (log.trouble, log.counters) == ("", {"decisions_dropped": 1, "decisions_written": 1})


def test_a_line_that_was_cut_off_ends_where_the_next_begins(tmp_path):
    path = tmp_path / "log"
    path.write_text('{"kind":"cho')
    path.chmod(0o644)
    log = DecisionLog(path)
    log.add({"kind": "choice", "node": "a", "ticket": "1"})
    log.close()
    assert path.stat().st_mode & 0o777 == 0o600
    _, counts = join([path])
    assert (counts["unreadable"], counts["choices"], counts["open"]) == (1, 1, 1)


def test_a_shortened_ticket_settles_nothing():
    ticket = Ticket(7, 1, 3, "red", "0" * 24)
    with pytest.raises(InputError, match="one that choose"):
        Ticket.parse(shortened(ticket))


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"choice","arm":5,"ticket":"t"}',
        '{"kind":"choice","arm":"a","arms":"a","ticket":"t"}',
        '{"kind":"reward","arm":"a","reward":"x"}',
        f'{{"kind":"reward","arm":"a","reward":1{"0" * 400}}}',
        '{"kind":"dropped","n_lines":"many"}',
        '{"kind":["choice"]}',
        '{"kind":' * 50_000,
        "[" * 50_000,
        "\0\0",
    ],
    ids=str.__len__,
)
def test_a_line_of_anything_else_is_counted_as_unreadable(tmp_path, line):
    good = '{"kind":"reward","node":"a","arm":"red","ticket":"t","time":1,"reward":1,"lapsed":false,"later":[{}]}'
    (tmp_path / "log").write_text(f"{line}\n{good}\n")
    columns, counts = join([tmp_path / "log"])
    assert (columns["reward"], counts["unreadable"]) == ([1.0], 1)


def test_a_log_that_cannot_be_read_or_written_is_one_line(tmp_path):
    with pytest.raises(FileError, match="cannot read"):
        join([tmp_path / "none"])
    with pytest.raises(FileError, match="cannot write"):
        save({}, tmp_path / "no" / "folder.csv")


def test_a_node_logs_what_it_chose_and_a_table_of_it_is_a_reward_log(tmp_path, capsys):
    node = NodeProcess(tmp_path / "a", "a", ("red", "blue"), more='decisions = "log.jsonl"\n')
    with node, node.client() as client:
        first, second, third, fourth = (client.choose(among=["blue", "red"]) for _ in range(4))
        assert client.observe(first, 0.5) == "counted"
        assert client.observe(first, 0.5) == "already_counted"
        client.withdraw(third)
        wait_until(lambda: client.state()["counters"].get("decisions_written") == 6)
        node.kill()
        node.start()
        assert client.observe(second, 0.25) == "counted"
        assert client.observe(None, 1.0, arm="red", key="mine") == "counted"
        node.leave()
    path = tmp_path / "a" / "log.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert all(one.ticket not in text for one in (first, second, third, fourth))
    out = tmp_path / "clicks.parquet"
    with pytest.raises(SystemExit) as stop:
        main(["node", "decisions", str(path), "--out", str(out)])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "3 rewards (0 lapsed) of 4 choices; 1 withdrawn, 1 without a reward" in said
    frame = pd.read_parquet(out)
    assert frame["reward"].tolist() == [0.5, 0.25, 1.0]
    assert frame["arm"].tolist() == [first.arm, second.arm, "red"]
    assert [None if arms is None else list(arms) for arms in frame["arms"]] == [["blue", "red"]] * 2 + [None]
    assert os.stat(out).st_mode & 0o777 == 0o600
    log = bm.arms.read_log(out)
    assert set(log.agents) == {"a"}
    assert set(log.arms) <= {"red", "blue"}


def test_rewards_meet_their_choices_in_any_order(tmp_path):
    path = tmp_path / "log"
    log = DecisionLog(path)
    for number in (1, 2, 3):
        choice = {"kind": "choice", "node": "n", "ticket": f"t-{number}", "time": float(number), "arm": f"arm{number}"}
        log.add({**choice, "arms": ["arm1", "arm2"], "probability": 0.5})
    for number, lapsed in ((3, False), (1, True)):
        reward = {"kind": "reward", "node": "n", "ticket": f"t-{number}", "arm": f"arm{number}", "time": 10.0}
        log.add({**reward, "reward": float(number), "lapsed": lapsed})
    log.add({"kind": "reward", "node": "n", "ticket": None, "arm": "arm9", "time": 11.0, "reward": 9.0})
    log.close()
    columns, counts = join([path])
    assert columns["time"] == [3.0, 1.0, 11.0]
    assert columns["rewarded_at"] == [10.0, 10.0, 11.0]
    assert columns["lapsed"] == [False, True, False]
    assert columns["probability"] == [0.5, 0.5, None]
    assert dict(counts) == {"choices": 3, "rewards": 3, "lapsed": 1, "open": 1}
    save(columns, tmp_path / "table.csv")
    assert json.loads(pd.read_csv(tmp_path / "table.csv")["arms"][0]) == ["arm1", "arm2"]
    assert dict(bm.arms.read_log(tmp_path / "table.csv").catalogue) == {"n": ("arm3", "arm1", "arm9")}


def test_arms_of_one_name_of_two_bandits_are_told_apart(tmp_path, capsys):
    path, out = tmp_path / "log", tmp_path / "table.csv"
    log = DecisionLog(path)
    for number, (bandit, segment) in enumerate([("offers", "de"), ("offers", "fr"), ("default", None)]):
        line = {"node": "n", "ticket": f"t-{number}", "arm": "red", "bandit": bandit, "segment": segment, "time": 1.0}
        log.add({"kind": "choice", **line, "arms": ["red"], "probability": 1.0})
        log.add({"kind": "reward", **line, "reward": float(number)})
    log.close()
    for options, rewards, warns in (
        ([], [0.0, 1.0, 2.0], True),
        (["--bandit", "offers"], [0.0, 1.0], True),
        (["--bandit", "offers", "--segment", "fr"], [1.0], False),
        (["--bandit", "default"], [2.0], False),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["node", "decisions", str(path), "--out", str(out), *options])
        assert stop.value.code == 0
        said = capsys.readouterr()
        assert f"{len(rewards)} rewards (0 lapsed) of {len(rewards)} choices" in said.out
        assert ("several bandits or segments have arms named red" in said.err) is warns
        assert pd.read_csv(out)["reward"].tolist() == rewards
    with pytest.raises(InputError, match=r"the segment must be one of those in the logs \(de, fr\), got 'it'"):
        join([path], "offers", "it")
