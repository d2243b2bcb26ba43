from frontdesk.feature import Parts
from frontdesk.features.agent_view import actions, pages
from frontdesk.features.agent_view.agent_view import AgentView

PARTS = Parts(
    actions=(actions.TRY_OUT,),
    pages=pages.PAGES,
    navigation=pages.NAVIGATION,
    search_links=pages.SEARCH_LINKS,
    services=lambda core: (AgentView(core.engine, core.tokens, core.settings.public_url),),
)
