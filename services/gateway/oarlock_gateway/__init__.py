"""HTTP, server-sent events and the web page, in front of the bus.

Belongs here: translating between HTTP and the bus. Does not belong here: any decision; the gateway knows only what
streams and buckets say.
"""
