"""If a talk plays: what it must have before its outcome counts."""

from localsim.evaluators.play.evaluator import PLAY

__all__ = ["PLAY"]
