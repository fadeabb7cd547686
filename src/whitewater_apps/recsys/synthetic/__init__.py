"""The parts of the simulated click log; see `whitewater_apps.recsys.steps.simulate`."""
