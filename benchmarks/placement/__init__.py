"""Placement quality on the public openb traces, beside the published figures."""
