"""The command line: one module for each group of commands, one table of them in ``main.py``."""
