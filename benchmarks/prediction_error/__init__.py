"""How far estimates stand from measured peaks: scripts rebuilt from public measurements, read and compared.

Belongs here: generators that turn a row of a public table into the training script it came from, and the scoring.
Does not belong here: any constant of the estimator (those live in the product, with their sources).
"""
