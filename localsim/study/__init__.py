"""The paper as one function (arXiv 2403.05020): families x conditions x seeds, fine-tuning with controls, and a page.

Stages: *compare* (the modes on the same scenarios and seeds), the *twin* (the same by a constructed control), *teach*
(scripts and agents' talks of other scenarios), *learn* (an adapter for each arm, from equally many tokens and targets),
each arm as agents on the compared scenarios, *naturalness*. A study recognises each stage by its plan, so it continues
where it was interrupted.

    from pathlib import Path
    from localsim.study import SIZES, Study, run_study
    results = run_study(Study(SIZES["small"], "starter", Path("study")))
"""

from localsim.study.design import ARMS, AUTO, NONE, SIZES, TURNS, WRITTEN, Arm, Size, Study, hours
from localsim.study.lessons import Lora, Taught, Teacher
from localsim.study.run import run_study

__all__ = [
    "ARMS",
    "AUTO",
    "NONE",
    "SIZES",
    "TURNS",
    "WRITTEN",
    "Arm",
    "Lora",
    "Size",
    "Study",
    "Taught",
    "Teacher",
    "hours",
    "run_study",
]
