"""The demo practice as a practice file, with patients generated from lists of names."""

from dataclasses import replace
from datetime import date, timedelta
from random import Random
from string import Template

from frontdesk.practice_file import PatientRecord, PracticeFile, parse

# The patient of the examples in the documentation. She has no appointments, so every example can book for her.
ADA = PatientRecord(1, "Ada", "Lovelace", date(1985, 12, 10), "+1 555 010 0199", seen=True)

TIME_ZONE = "America/New_York"
_DIRECTORY = Template("""
practice:
  slug: demo
  name: Harborside Medical Group
  timeZone: $zone
  phone: +1 781 555 0100
  minimumNoticeMinutes: 60
  bookingHorizonDays: 90
  sandbox: true
  # Limits that somebody's first test suite does not meet. Other practices start with lower ones.
  patientsPerHour: 1000
  patientsPerDay: 10000
  writesPerHour: 1000
  upcomingPerPatient: 200
  phoneMatch: ending
locations:
  - id: 1
    name: Downtown
    aliases: [Main Street, Boston]
    phone: +1 781 555 0101
    address: {line1: 1 Main Street, city: Boston, state: MA, postalCode: 02110, country: US}
  - id: 2
    name: Harborview
    aliases: [Waterfront]
    phone: +1 781 555 0102
    address: {line1: 48 Seaport Lane, line2: Suite 300, city: Quincy, state: MA, postalCode: 02169, country: US}
  - id: 3
    name: Lakeside
    aliases: [Chicago, Lake Shore]
    timeZone: America/Chicago
    phone: +1 773 555 0103
    address: {line1: 220 Lake Street, city: Chicago, state: IL, postalCode: 60601, country: US}
    closures:
      - {from: $training, to: $training, reason: Staff training}
providers:
  - id: 10
    name: Dr. Robert Chen
    aliases: [Bob Chen, Rob Chen]
    specialty: Family medicine
    hours:
      - {location: 1, days: [mon, tue, wed, thu, fri], from: 09:00, to: 12:00}
      - {location: 1, days: [mon, tue, wed, thu, fri], from: 13:00, to: 17:00}
  - id: 11
    name: Dr. María González-Ruiz
    aliases: [Maria Gonzalez, Dr. Ruiz]
    specialty: Allergy and immunology
    procedures: [100, 101, 102, 103, 104, 106]
    hours:
      - {location: 1, days: [mon, wed, fri], from: 09:00, to: 12:00}
      - {location: 1, days: [mon, wed, fri], from: 13:00, to: 17:00}
      - {location: 2, days: [tue, thu], from: 08:00, to: 12:30}
      - {location: 2, days: [tue, thu], from: 13:15, to: 16:00}
    timeOff:
      - {from: "${conference}T12:00", to: "${conference_end}T00:00", reason: Conference}
  - id: 12
    name: Dr. Sarah O'Neill
    aliases: [Sally O'Neill]
    specialty: Internal medicine
    acceptsNewPatients: false
    procedures: [102, 103, 104, 105, 108]
    hours:
      - {location: 1, days: [mon, tue, wed, thu], from: 08:00, to: 12:00}
      - {location: 1, days: [mon, tue, wed, thu], from: 13:00, to: 16:00}
  - id: 13
    name: Jasmine Patel, RN
    aliases: [Nurse Jasmine, Jas Patel]
    specialty: Nursing
    capacity: 2
    procedures: [106, 107]
    hours:
      - {location: 1, days: [mon, tue, wed, thu, fri], from: 08:00, to: 12:30}
      - {location: 1, days: [mon, tue, wed, thu, fri], from: 13:15, to: 16:00}
  - id: 14
    name: Dr. Aoife Murphy
    aliases: [Eva Murphy]
    specialty: Dermatology
    procedures: [101, 102, 103, 108]
    hours:
      - {location: 2, days: [mon, tue, wed, thu, fri], from: 09:00, to: 12:00}
      - {location: 2, days: [mon, tue, wed, thu, fri], from: 13:00, to: 17:00}
    timeOff:
      - {from: "${leave}T00:00", to: "${leave_end}T00:00", reason: Leave}
  - id: 15
    name: Dr. James Whitfield
    aliases: [Jim Whitfield, Jamie Whitfield]
    specialty: Family medicine
    hours:
      - {location: 2, days: [mon, tue, wed, thu], from: 08:00, to: 12:00}
      - {location: 2, days: [mon, tue, wed, thu], from: 12:45, to: 16:00}
      - {location: 2, days: [sat], from: 09:00, to: 13:00}
  - id: 16
    name: Dr. Chloë Dubois
    aliases: [Chloe Dubois]
    specialty: Cardiology
    procedures: [101, 102, 103, 105, 108]
    hours:
      - {location: 3, days: [tue, wed, thu, fri], from: 09:00, to: 12:00}
      - {location: 3, days: [tue, wed, thu, fri], from: 13:00, to: 17:00}
  - id: 17
    name: Dr. Kwame Mensah
    aliases: [Kwame]
    specialty: Family medicine
    hours:
      - {location: 3, days: [mon, tue, wed, thu, fri], from: 08:30, to: 12:30}
      - {location: 3, days: [mon, tue, wed, thu, fri], from: 13:30, to: 17:00}
  - id: 18
    name: Dr. Anna Kowalska
    aliases: [Ania Kowalska]
    specialty: Endocrinology
    procedures: [100, 101, 102, 103, 104, 108]
    hours:
      - {location: 3, days: [mon, wed, fri], from: 09:00, to: 12:00}
      - {location: 3, days: [mon, wed, fri], from: 12:45, to: 16:00}
      - {location: 3, days: [tue], from: 13:00, to: 16:00}
      - {location: 3, days: [tue], from: 17:00, to: 20:00}
visitTypes:
  - id: 20
    name: New patient visit
    aliases: [first visit, first appointment]
    description: For people the practice has not seen before.
    patientKind: new
    procedures:
      - {id: 100, name: Comprehensive exam, aliases: [full exam], durationMinutes: 45, bufferAfterMinutes: 15}
      - {id: 101, name: Introductory consultation, durationMinutes: 30}
      - {id: 108, name: Specialist consultation, aliases: [specialist], durationMinutes: 40}
  - id: 21
    name: Follow-up
    aliases: [return visit, check-up]
    patientKind: existing
    procedures:
      - {id: 102, name: Follow-up visit, durationMinutes: 15}
      - {id: 103, name: Extended follow-up, description: For several concerns at once., durationMinutes: 30}
      - {id: 108, name: Specialist consultation, aliases: [specialist], durationMinutes: 30}
  - id: 22
    name: Annual physical
    aliases: [yearly exam, wellness visit]
    patientKind: existing
    procedures:
      - {id: 104, name: Annual physical exam, durationMinutes: 45, bufferAfterMinutes: 5}
      - {id: 105, name: Annual physical with ECG, durationMinutes: 60, bufferAfterMinutes: 15}
  - id: 23
    name: Nurse visit
    aliases: [shots, lab]
    procedures:
      - {id: 106, name: Vaccination, aliases: [flu shot, immunization], durationMinutes: 10, bufferAfterMinutes: 5}
      - {id: 107, name: Blood draw, aliases: [blood test], durationMinutes: 20}
""")

_PATIENTS = 300
_FIRST_NAMES = """
    Aaliyah Amara Anna Benjamin Björn Camila Carlos Chloé Daniel David Diego Elena Emily Esperança Ethan Fatima Grace
    Hannah Henry Ibrahim Ingrid Isabella Jack James Jean-Luc José Julia Kenji Layla Leah Liam Lucía Mary-Anne Mateo
    Mei Michael Mohammed Nia Noah Olivia Omar Priya Rachel Ravi René Samuel Siân Sofia Sophie Thomas Wei William Zoë
"""
_LAST_NAMES = """
    Adams Ahmed Anderson Bailey Barnes Becker Brown Cohen Cruz Davies Diaz Dubois Eriksson Evans Fernández Fischer
    Garcia-Lopez Gonçalves Green Hall Hassan Hernández Hughes Ivanova Jackson Johnson Kaya Kelly Kim King Kowalski
    Lee Lewis Lopez MacDonald Martin Mensah Miller Moore Müller Murphy Nguyen Núñez O'Brien Okafor Park Parker Patel
    Peterson Ramírez Reed Rossi Sato Schmidt Silva Singh Smith-Jones Sørensen Taylor Turner Walker Wang Wright Young
"""
_AREA_CODES = (617, 857, 312)  # 555-0100 to 555-0199 are reserved for fictional use
_BORN = (date(1938, 1, 1).toordinal(), date(2022, 12, 31).toordinal())


def demo_practice(today: date) -> PracticeFile:
    text = _DIRECTORY.substitute(
        zone=TIME_ZONE,
        training=_weekday_from(today + timedelta(days=9)),
        conference=_weekday_from(today + timedelta(days=2)),
        conference_end=_weekday_from(today + timedelta(days=2)) + timedelta(days=2),
        leave=today - timedelta(days=4),
        leave_end=today - timedelta(days=1),
    )
    return replace(parse(text), patients=_patients())


def _weekday_from(day: date) -> date:
    while day.weekday() > 4:
        day += timedelta(days=1)
    return day


def _patients() -> tuple[PatientRecord, ...]:
    random = Random("patients")  # noqa: S311 - invented people, no secret
    patients = [ADA]
    for number in range(2, _PATIENTS + 1):
        first, last = random.choice(_FIRST_NAMES.split()), random.choice(_LAST_NAMES.split())
        area, line = divmod(number - 1, 100)
        patients.append(
            PatientRecord(
                number,
                first,
                last,
                dob=date.fromordinal(random.randint(*_BORN)),
                phone=f"+1 {_AREA_CODES[area]} 555 01{line:02}",
                email=f"patient{number}@example.com" if random.random() < 0.6 else None,
                seen=random.random() < 0.75,
            )
        )
    return tuple(patients)
