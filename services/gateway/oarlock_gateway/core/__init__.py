"""What the page shows, as plain values: no bus, no HTTP."""
