"""What the operator says about itself. Inputs and secrets are never logged."""
