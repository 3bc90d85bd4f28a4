"""The version, in a room of its own so that every other one may know it."""

__version__ = "0.1.0.dev0"
