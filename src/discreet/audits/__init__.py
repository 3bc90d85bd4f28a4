"""Empirical checks of what is promised."""
