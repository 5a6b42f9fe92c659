"""Pages for people: view what was simulated, annotate it, play along. Server-rendered, nothing from a network."""
