"""How fast the matcher's core decides, on one core."""
