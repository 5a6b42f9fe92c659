"""What this computer can do: checks, build flags, benchmarks, conversions, forecasts."""
