"""How far a report can be trusted: controls, the answer in one sentence, errors of instruments, robustness."""
