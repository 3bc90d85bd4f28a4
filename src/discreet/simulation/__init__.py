"""Simulate trials: laws, draws, compiled loops, and `simulate`."""
