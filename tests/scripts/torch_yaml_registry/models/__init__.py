from .mlp import ResidualMLP

__all__ = ['ResidualMLP']
