"""Protocols side by side on the same rewards and networks.

compare             several protocols on one problem
frontier            protocols, ttls and emissions on one problem, by what they cost
configurations      what a frontier gives: fronts, budgets and the recommendation
intervals           confidence intervals for paired differences and for means
presets             named comparisons on the paper's networks
"""
