"""What library calls mean, one file per area. An operator, a layer or a function is one entry."""
