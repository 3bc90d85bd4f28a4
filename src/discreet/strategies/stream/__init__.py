"""Strategies that learn from every sample (TTUCB, CTB-TT, Gaussian responses)."""
