"""Turns a trace into peaks: the frameworks' allocators, the device's own share, and the replay."""
