"""The command `demo-agent`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.demo.settings import DemoAgentSettings


@takes("ci_evals.extensions.demo.settings", "DemoAgentSettings", CommandFacts(is_supervised=False))
def demo_agent(settings: "DemoAgentSettings", _: RunContext) -> None:
    """Serve the demo agent, which speaks the AUI task API.

    It keeps to its playbooks. To see what a gate makes of a worse agent, add random errors or break a
    workflow:

    \b
    ci-evals demo-agent --noise=0.1 --seed=1
    ci-evals demo-agent --break=RETURN_REQUEST

    To see what a suite detects, add one misbehavior to every conversation (--misbehave=leak):

    \b
    skip_rules         no rule fires, and no rule's confirmation is asked for
    wrong_integration  a wrong integration is called
    forget_parameter   one extracted parameter is missing
    escalate_early     a person is called at the first request
    leak               every reply reveals another customer's data
    rude               every reply begins with an insult; only a judge notices
    claims             replies and traces say what was done, but nothing is booked
    err                every reply is an error response
    """
    from ci_evals.extensions.demo.serving import DemoBehavior, serve

    behavior = DemoBehavior(
        settings.noise, settings.seed, settings.break_, settings.misbehave, settings.drift, settings.day
    )
    serve(settings.host, settings.port, behavior)


COMMANDS = (demo_agent,)
