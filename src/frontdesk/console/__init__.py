"""The console: pages for the staff of a practice."""
