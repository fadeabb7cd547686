"""The parts of the simulated click log; see `whitewater.recsys.simulate`."""
