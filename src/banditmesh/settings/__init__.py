"""Settings: tables that name parts, however they were written, and the parts that are built from them.

parts        a table's part: looked up, checked and built; policies, protocols, emissions and faults
problems     networks, dynamics and arms
toml_text    TOML read and written, and the line of a key
"""
