"""The composition root: settings, everything built once, run, drain. Nothing else may read the environment."""
