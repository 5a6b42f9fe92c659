"""Writers of text: llama.cpp models, servers, scripted players, people.

Whoever imports a part of this folder loads llama.cpp's libraries first, before those of numpy, torch and duckdb.
"""

from localsim.backends.llama.libraries import load_first

load_first()
