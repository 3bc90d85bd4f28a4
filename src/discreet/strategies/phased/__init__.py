"""Strategies whose means are renewed at the ends of phases (AdaP-TT, AdaP-TT*, TTUCB in
batches).
"""
