"""Bridges to other libraries, each an extra, imported where it is used.

pettingzoo    a problem as a PettingZoo environment, in which agents learn by whatever means
river         river's bandit policies for agents, and agents' policies for river
"""
