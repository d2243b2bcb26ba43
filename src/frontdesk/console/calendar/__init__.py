"""Layout of the calendar page: the time axis, columns, lanes and the grid."""
