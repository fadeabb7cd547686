"""A documented model of taxi trips: a stylised city, its tariffs, its riders, and the dirt of their records."""
