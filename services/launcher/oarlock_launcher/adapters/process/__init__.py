"""Runs as plain processes of this machine: each under a shim that outlives the launcher.

``shim.py`` runs alone (standard library only) and must import nothing of ours.
"""
