"""Writers of text: llama.cpp models, servers, scripted players, people."""
