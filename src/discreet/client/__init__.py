"""Trials on another machine, through its service: the methods of a local trial, with
the same answers and the same errors.
"""
