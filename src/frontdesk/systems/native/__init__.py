"""The native calendar on PostgreSQL; availability is computed from the directory and appointments, never stored."""

from frontdesk.systems.native.slots import NativeCalendar
from frontdesk.systems.native.system import NativeSystem

__all__ = ["NativeCalendar", "NativeSystem"]
