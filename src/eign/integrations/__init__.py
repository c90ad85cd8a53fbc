"""Where people already work: thin files over other packages, each imported only when it is used."""
