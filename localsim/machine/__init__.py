"""The abilities of this computer: checks, build flags, benchmarks, conversions, forecasts."""

PORT = 7580
"""The first port that a server of localsim tries."""
