"""The demo practice: an invented directory, patients and appointments, generated from a given day."""

from frontdesk.demo.bookings import DemoBooking, demo_bookings
from frontdesk.demo.practice import TIME_ZONE, demo_practice

__all__ = ["TIME_ZONE", "DemoBooking", "demo_bookings", "demo_practice"]
