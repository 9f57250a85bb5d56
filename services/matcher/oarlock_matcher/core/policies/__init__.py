"""Placement policies: each scores the rows that the filters admit; the machine takes the best.

One class per policy behind `base.PlacementPolicy`. A policy never filters, books or looks at the queue. What it
learns it learns from the demands that have arrived so far; `registry.build` makes one by name.
"""
