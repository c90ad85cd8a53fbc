"""Many runs, compared: experiments, statistics, reports and speed measurements."""
