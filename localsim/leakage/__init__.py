"""The leakage detector: does an utterance disclose a private fact? `LeakageDetector().classify(pairs)`."""

from localsim.leakage.detector import Finding, LeakageDetector
from localsim.leakage.pairs import Pair

__all__ = ["Finding", "LeakageDetector", "Pair"]
