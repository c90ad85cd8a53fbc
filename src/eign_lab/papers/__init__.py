"""Papers that are reproduced, one package each."""
