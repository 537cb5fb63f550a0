"""Bandit agents that learn together over any network."""
