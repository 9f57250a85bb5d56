"""What the matcher does with each message while it leads."""
