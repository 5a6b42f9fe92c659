"""Evaluators: what can be said about an episode without a language model. Each score cites its evidence."""

from localsim.evaluators.base import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
