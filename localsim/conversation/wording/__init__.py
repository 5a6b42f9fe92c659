"""The words around the content of a prompt: instructions in several wordings, variants, decoys."""
