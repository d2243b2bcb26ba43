"""The parts of generate.py: one module for each kind of file it makes."""
