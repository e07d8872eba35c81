"""How calls are computed: as the process, its environment or the code around a call asks for."""
