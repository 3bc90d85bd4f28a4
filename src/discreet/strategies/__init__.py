"""Before the wall: what a strategy is and how it decides, from released numbers and
public counts alone.
"""
