"""Configuration of the bike share application: one section for each step."""

from pydantic import Field

from whitewater.config.base import Section


class Simulate(Section):
    """Simulated rides, a few of them impossible."""

    rides: int = Field(5000, ge=1, description="Rides to simulate.")
    seed: int = Field(2025, ge=0, description="Seed of the simulation; equal seeds give equal rides.")


class Clean(Section):
    """What a plausible ride is."""

    minimum_seconds: int = Field(60, ge=0, description="Shortest ride to keep.")
    maximum_hours: int = Field(24, ge=1, description="Longest ride to keep.")


class Durations(Section):
    """Duration of rides by hour of the day and kind of rider."""

    minimum_rides: int = Field(10, ge=1, description="Rides that a group needs to be listed.")


class Bikes(Section):
    """How long are bike rides."""

    simulate: Simulate = Simulate()
    clean: Clean = Clean()
    durations: Durations = Durations()
