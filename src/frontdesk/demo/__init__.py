"""The demo practice: a made-up group practice whose calendar always lies around a given day.

Owns its places, people and appointments, all invented. The same day always gives the same. Refuses storage.
"""

from frontdesk.demo.bookings import DemoBooking, demo_bookings
from frontdesk.demo.practice import demo_practice

__all__ = ["DemoBooking", "demo_bookings", "demo_practice"]
