"""What touches the world: /proc, the vendors' libraries, files, the bus, Prometheus."""
