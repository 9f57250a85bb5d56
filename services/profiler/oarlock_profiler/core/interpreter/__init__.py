"""An abstract interpreter over ``ast``: Python as people write it, with unknowns. Knows nothing of frameworks."""
