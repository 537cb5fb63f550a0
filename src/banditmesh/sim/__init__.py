"""The simulator: `engine` is its public edge, `arguments` reads what it gets, `reference` defines what is correct."""
