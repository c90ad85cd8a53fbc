"""The judge of `auto`: problems, rivals, budgets and bars, fixed before the method."""
