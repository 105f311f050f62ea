"""Extraction: machine descriptions, cost models, and the search that picks a schedule out of the e-graph."""
