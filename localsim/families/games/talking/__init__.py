"""Games whose outcome hangs on what people find out from each other by talking."""
