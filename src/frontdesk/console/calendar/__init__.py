"""The calendar page: what is read, how it is laid out, and the grid it is drawn on."""
