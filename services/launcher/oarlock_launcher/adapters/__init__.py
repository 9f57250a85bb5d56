"""What touches the world: processes, Docker, files, the bus, accelerators. Nothing here decides over a run's life."""
