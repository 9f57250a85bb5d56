"""Abstract tensors, autograd and the trace of allocations and operators. Knows nothing of Python source."""
