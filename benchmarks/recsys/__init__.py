"""Features for recommenders: Whitewater against the tools that a user would pick, and loading what they made."""
