"""Who writes text: llama.cpp models, servers, scripted players, people."""
