"""OpenVINO as the library that evaluates GGUF files, for processors on which it is faster than llama.cpp."""
