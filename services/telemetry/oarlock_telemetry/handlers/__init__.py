"""From samples and messages to the core's events, and from its effects to what the adapters do."""
