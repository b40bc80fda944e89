"""Questions of programs, as agents are, by the Model Context Protocol (docs/programs.md)."""
