"""`kubectl wfs`: the command line. Shares api and core with the operator, so that a preview is what runs."""
