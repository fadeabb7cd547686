"""The steps of the workflow, a module for each."""
