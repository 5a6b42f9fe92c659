"""llama.cpp: the batched engine, its caches, sampling, chat templates and memory."""
