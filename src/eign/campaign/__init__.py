"""Many runs, compared: demonstrations, measurements of speed, experiments and their report."""
