"""Bike share: how long are rides, by hour of the day and kind of rider."""
