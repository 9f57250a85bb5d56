"""The launcher: starts what was placed on its site, isolated, and follows it until its end is known.

Belongs here: the life of a run, how a run is started by each runtime (adapters), where its code comes from. Does not
belong here: choosing devices (the matcher), measuring what a run uses (telemetry), how messages travel (the runtime).
"""
