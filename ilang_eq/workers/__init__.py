"""Searches in processes of their own, which can be stopped at any moment: egglog cannot be interrupted in a step.

A worker is a fresh interpreter, not a fork and not multiprocessing: threads and locks of the caller stay out of it, and
a script without ``if __name__ == "__main__"`` is not run again. It reads requests and writes results as JSON, a line
each.
"""
