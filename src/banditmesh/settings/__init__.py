"""Settings: tables that name parts, however they were written, and the parts that are built from them.

parts        the reader of tables: a part is looked up, checked and built
problems     networks, dynamics and arms
toml_text    TOML read and written, and the line of a key
"""
