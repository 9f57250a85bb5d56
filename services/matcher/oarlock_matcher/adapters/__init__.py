"""The matcher's edges: lease books, and the translation between what travels and what the core decides on."""
