"""Grids of simulations, resumable; the paper's study."""
