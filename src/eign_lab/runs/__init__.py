"""Runs: what there is to do, who does it, where results are kept and what they say together."""
