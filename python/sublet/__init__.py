"""Sublet for programs in Python. `from sublet import checkpoint` lets a program save a small
checkpoint, leave a machine when its owner returns, and resume on another."""
