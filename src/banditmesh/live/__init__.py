"""The live mesh: the same agents as in the simulator, as real processes on real links."""
