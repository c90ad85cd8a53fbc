"""Stationarity-aware expected improvement (EI-GN): its experiments, claims and report."""
