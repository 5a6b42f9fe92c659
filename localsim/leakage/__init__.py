"""The leakage detector: does an utterance give a private fact away? `LeakageDetector().classify(pairs)`."""

from localsim.leakage.detector import Finding, LeakageDetector
from localsim.leakage.pairs import Pair

__all__ = ["Finding", "LeakageDetector", "Pair"]
