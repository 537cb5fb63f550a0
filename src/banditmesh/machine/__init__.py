"""The machine: its cores, its memory, and where many runs are computed."""
