"""Constrained problems with exact gradients as a judge: problems, rivals, scores, report."""
