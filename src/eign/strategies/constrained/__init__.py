"""Methods under constraints: what is feasible so far, steps on models of all outputs, and SLSQP on the functions."""
