"""The ways in: each door knows its wire format and nothing about calendars, stores or scheduling systems."""
