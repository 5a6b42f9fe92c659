"""The expected hours of each stage of a study, from the measured speed of its model."""

from __future__ import annotations

from localsim.machine.bench import Bench
from localsim.study.design import ARMS, HEARD, TURNS, WRITTEN, Size
from localsim.study.natural import JUDGED

TRAINING = 0.4
"""Assumed speed of training, as a part of the speed of evaluating a prompt: 235 of 568 tokens a second were measured
with the starter in float32 on two cores.
"""
BESIDE = 30
"""Assumed seconds of a stage beside its work: opening a model, searching for leaks, writing an adapter."""
PAIR, REASON = 500, 40
"""Assumed tokens of a question about two conversations, and of its answer."""


def hours(size: Size, bench: Bench, *, twin: bool = False, judge: bool = False) -> dict[str, float]:
    """Estimate the hours of each stage from the rates of `models bench`, in the order of the stages."""
    per_turn = HEARD / bench.turn + WRITTEN / bench.decode_together
    simulating = {stage: (count * TURNS * per_turn + BESIDE) / 3600 for stage, count in size.counts(twin=twin).items()}
    learning = (size.most_tokens() / (bench.prefill * TRAINING) + BESIDE) / 3600
    found: dict[str, float] = {}
    for stage, value in simulating.items():
        if stage == ARMS[0].name:
            found |= {f"learn, {arm.name}": learning for arm in ARMS}
        found[stage] = value
    if judge:
        questions = 2 * len(JUDGED) * size.counts()[ARMS[0].name]
        found["naturalness"] = (questions * (PAIR / bench.prefill + REASON / bench.decode_together) + BESIDE) / 3600
    return found
