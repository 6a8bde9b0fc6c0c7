"""The wire contract: models of the three kinds, names, and the generator of the CRDs from them. No I/O, no rules."""
