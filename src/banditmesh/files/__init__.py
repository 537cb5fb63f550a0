"""Files on disk: opened, read within limits, written whole, locked."""
