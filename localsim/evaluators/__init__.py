"""Evaluators: what can be said about an episode without a language model. Each score cites its evidence."""

from localsim.evaluators.base import Evaluation, Evaluator, evaluate, guarded

__all__ = ["Evaluation", "Evaluator", "evaluate", "guarded"]
