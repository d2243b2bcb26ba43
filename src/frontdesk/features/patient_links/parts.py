from frontdesk.feature import Parts
from frontdesk.features.patient_links import actions, staff_pages
from frontdesk.features.patient_links.links import ACTOR_PREFIX
from frontdesk.features.patient_links.making import PatientLinks
from frontdesk.features.patient_links.my_appointments import MyAppointments
from frontdesk.features.patient_links.patients_pages import my_appointment_routes
from frontdesk.texts import N_

PARTS = Parts(
    actions=(actions.MAKE, actions.END, actions.READ),
    actors={ACTOR_PREFIX: N_("Patient's link")},
    pages=staff_pages.PAGES,
    notices=staff_pages.NOTICES,
    panels=(staff_pages.PANEL,),
    routes=my_appointment_routes,
    services=lambda core: (
        PatientLinks(core.database, core.settings.public_url),
        MyAppointments(core.database, core.engine),
    ),
)
