"""Experiments: several simulations put side by side."""
