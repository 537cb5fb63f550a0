"""Comparisons on the paper's networks that are asked for by name, as in `compare --preset beyond`.

beyond      what beats Flooding with Absorption
losses      what lost transmissions cost
instances   the arm instances that both simulate
"""
