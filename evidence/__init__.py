"""The studies behind the measured claims of README, docs and `recommended()`, with
their results as JSON.
"""
