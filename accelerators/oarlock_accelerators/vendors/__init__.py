"""One module per vendor, each with a ``VENDOR``. Put a new vendor's file here and nothing else needs a change.

Does not belong here: anything two vendors share (that is the parent package), or any choice between vendors.
"""
