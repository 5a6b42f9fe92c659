"""Models that choose between conversations: `naturalness` between two, `candidates` among any number."""
