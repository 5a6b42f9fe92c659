"""The comparison with other engines: its workloads, the conversations that a peer writes, and the table."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.bench_engine import workload
from scripts.bench_others import table
from scripts.peers import Drawn, Reply, chosen, converse


class Counting:
    """A peer that draws 1, 2, 3, ... for each reply, and finishes the newest reply first."""

    def __init__(self, *, short: int = 0) -> None:
        self.short = short
        self.prompts: list[list[int]] = []
        self.running: list[tuple[int, Reply]] = []
        self.most = 0

    def submit(self, lane: int, reply: Reply, prompt: list[int]) -> None:
        self.prompts.append(prompt)
        self.running.append((lane, reply))
        self.most = max(self.most, len(self.running))

    def poll(self) -> list[Drawn]:
        lane, reply = self.running.pop()
        return [(lane, list(range(1, reply["body"]["n_predict"] + 1 - self.short)), 2)]

    def close(self) -> None:
        pass


def reply(prompt: list[int], draws: int) -> Reply:
    return {"prompt": prompt, "body": {"n_predict": draws}, "agent": True, "kept": draws - 1, "tokens": draws - 1}


TALKS = [[reply([70], 3), reply([71], 2), reply([70, -1, 72], 4)], [reply([80], 2)], [reply([90], 2), reply([-1], 2)]]


def test_a_peer_reads_what_it_wrote_itself_without_the_token_that_ended_it() -> None:
    peer = Counting()
    converse(peer, TALKS[:1], 8)
    assert peer.prompts == [[70], [71], [70, 1, 2, 72]]


def test_so_many_conversations_run_at_a_time_and_all_are_counted() -> None:
    peer = Counting()
    totals = converse(peer, TALKS, 2)
    assert peer.most == 2
    assert totals == {"tokens": 9, "drawn": 15, "prompt": 9, "read": 12}


def test_a_peer_that_writes_fewer_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens drawn instead of 3"):
        converse(Counting(short=1), TALKS, 1)


def test_a_peer_without_batches_runs_the_sample() -> None:
    work = {"conversations": [{"replies": talk, "sample": number == 1} for number, talk in enumerate(TALKS)]}
    assert chosen(work, 1) == TALKS[1:2]
    assert chosen(work, 8) == TALKS


def test_both_workloads_are_bargains_and_searches_for_friends() -> None:
    for name, episodes in (("independent", 8), ("study", 12)):
        plan = workload(name, 2, "starter")
        assert {loaded.scenario.family for loaded in plan.scenarios} == {"craigslist", "mutual_friends"}
        assert len(plan.specs()) == episodes


def test_the_table_has_medians_and_what_could_not_be_installed() -> None:
    lines: list[dict[str, Any]] = [
        {"peer": "openvino", "workload": "study", "rate": rate, "lanes": 8, "version": "1", "mb": 99.6, "kind": "wheel"}
        for rate in (10.0, 30.0, 20.0)
    ]
    lines.append({"peer": "vllm", "failed": "pip failed"})
    rows = table(lines).splitlines()[2:]
    assert len(rows) == 2
    assert "| 1 | wheel, 100 MB | Q8_0, read from the GGUF file | 8 | - | 20.0 |" in rows[0]
    assert "| pip failed |" in rows[1]
