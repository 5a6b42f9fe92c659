"""From a plan to rows: planning, scheduling, recording, and evaluating a run."""
