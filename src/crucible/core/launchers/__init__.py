"""How each framework is started: argv and environment of one rank, from the spec and the gang. Pure."""
