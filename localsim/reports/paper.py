"""What arXiv 2403.05020 reports for GPT-3.5 (sections 4 and 5): reference marks in reports, never targets."""

from __future__ import annotations

PAPER: dict[str, dict[str, float]] = {
    "first_mention": {"script": 0.13, "agents": 0.39},
    "deal_rate": {"script": 0.94, "agents": 0.30, "agents-ft": 0.93},
    "words_per_turn": {"script": 16.0, "agents": 29.8, "mindreaders": 27.8, "agents-ft": 15.0},
}
"""Measure of a report -> condition -> value; `agents-ft`: agents finetuned on scripts."""
