"""Questions of programs, as agents are, by the Model Context Protocol (docs/programs.md).

They are answered from a store, a state or a service, in few words.
"""
