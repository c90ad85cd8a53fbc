"""Single questions, one script each: `python -m eign_lab.studies.NAME`."""
