"""Runs as containers of a Docker engine, through the Docker SDK."""
