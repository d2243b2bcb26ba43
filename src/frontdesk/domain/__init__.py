"""Pure rules: no I/O, no framework, no clock of their own. Everything here is a function of its arguments."""
