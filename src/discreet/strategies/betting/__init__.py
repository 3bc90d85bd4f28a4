"""Betting elimination (bet-se)."""
