"""Tables and figures that compare methods."""
