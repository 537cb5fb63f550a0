"""Protocols side by side on the same rewards and networks.

compare             several protocols on one problem
frontier            protocols, ttls and emissions on one problem, by what they cost
configurations      what a frontier gives: fronts, budgets and the recommendation
entries, runnable   what is compared, and what of it runs on a live mesh
measuring, kept     configurations are simulated, and stored as they are
screening           which of many are worth simulating to the end
intervals           confidence intervals for paired differences and for means
first_pulls, link_loads, weaknesses   regret of first pulls; what links carry; faults that are handled poorly
shown, report       rows of text; one HTML file with all of it
presets             named comparisons on the paper's networks
"""
