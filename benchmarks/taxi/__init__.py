"""The taxi benchmark: tips by hour, weekday and borough from months of yellow-taxi records."""
