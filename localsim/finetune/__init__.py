"""Fine-tuning on what was simulated: episodes -> rows of tokens -> a LoRA adapter that llama.cpp loads."""
