"""The tests; what is set here is set before llama.cpp's libraries are loaded."""

import os

# Two processes share two cores, so threads that wait for each other must sleep soon (docs/performance.md).
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
os.environ["LOCALSIM_LANES"] = "8"  # nothing is measured in the middle of tests
