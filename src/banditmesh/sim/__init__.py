"""The simulator: `engine` is its public edge, `reference` the definition of correct."""
