"""Games about money and points."""
