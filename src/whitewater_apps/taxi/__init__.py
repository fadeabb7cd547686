"""NYC taxi trips: one schema for all eras, cleaning without loss, and how people tip."""
