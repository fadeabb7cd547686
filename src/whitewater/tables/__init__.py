"""Tables: columns, categories, and statistics of groups of rows."""
