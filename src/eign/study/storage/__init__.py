"""Studies in files: one transaction an event, one process at a time."""
