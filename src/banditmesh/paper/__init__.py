"""The published experiments, run again: Lee, Schmid and Yun, OPODIS 2023, Section 6.

reproduction    the experiments themselves
published       the values that the paper gives
agreement       ours compared with the published ones
claims          which of the paper's claims hold
tables          tables to print and CSV files
pictures        the figures
explained       words and columns, in plain sentences
report          one HTML file with all of it
"""
