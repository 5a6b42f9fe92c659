"""The abilities of this computer: checks, build flags, benchmarks, conversions, forecasts."""
