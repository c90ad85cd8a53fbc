"""What a model sees instead of the data as they are: compressed values, logarithms of coordinates."""
